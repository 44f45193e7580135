"""The first look of the report's page, in a browser."""

from __future__ import annotations

import pytest

from tests.sample_report import HOSTILE_STREAM, LONG, long_report, sample_report, small_report, written


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    one = {"one": sample_report(streams=1), "small": small_report()}
    many = {"sample": sample_report(), "long": long_report()}
    return written(tmp_path_factory.mktemp("pages"), one | many)


def test_answers_come_before_figures_and_these_before_tables(browser):
    browser.open()
    assert browser.texts("nav a") == [
        *("At a glance", "Figures", "Which parts helped", "Tables", "Component explorer", "Runs")
    ]
    look = sample_report()["looks"][0]
    assert browser.texts("#overview .look:first-of-type h4") == [a["question"] for a in look["answers"]]
    for answer, card in zip(look["answers"], browser.texts("#overview .look .answer"), strict=False):
        for text in (answer["headline"], answer["basis"], *answer["evidence"]):
            assert text in card
    assert look["limits"] in browser.texts("#overview .look .note")
    assert browser.texts("#overview .lead") == [sample_report()["overall"]]


@pytest.mark.parametrize(("width", "height"), [(1200, 800), (360, 740)])
def test_all_answers_about_one_stream_are_on_the_first_screen(browser, width, height):
    browser.open("one", width=width, height=height)
    ends = browser.run(
        "return [...document.querySelectorAll('.answer .basis')].map((e) => e.getBoundingClientRect().bottom)"
    )
    assert len(ends) == 2
    assert max(ends) <= height


def test_what_is_wrong_is_said_at_once_and_as_text(browser):
    browser.open()
    (alert,) = browser.texts("#overview .alerts li")
    assert alert == f"unfinished 1 run is unfinished: {HOSTILE_STREAM}."
    below = "a.compareDocumentPosition(b) & Node.DOCUMENT_POSITION_FOLLOWING"
    find = "const [a, b] = ['.alerts', '.look'].map((s) => document.querySelector(s));"
    assert browser.run(f"{find} return {below}")
    assert browser.run("return document.querySelectorAll('img, main script').length") == 0


def test_answers_lead_to_their_evidence(browser):
    browser.open()
    links = browser.texts("#overview .look:first-of-type .answer:first-child a")
    assert links == ["figure", "table"]  # there is no third table
    browser.click("#overview a[href='#at=table-final']")
    browser.wait("return document.activeElement.closest('#table-final')")
    browser.wait("return Math.abs(document.querySelector('#table-final').getBoundingClientRect().top) < 300")


def test_answers_are_about_all_runs_and_say_so(browser):
    browser.open(view="streams=0")
    assert browser.texts("#overview .look h3") == ["objects-random"]
    assert not any("whatever" in text or "These answers" in text for text in browser.texts("#overview .note"))
    browser.open(view="seeds=0&methods=1-2")
    assert any("all methods and seeds" in text for text in browser.texts("#overview .note"))


def test_names_are_told_in_words(browser):
    """By hovering over tables and legends, by arrow keys in figures, and in a list that needs no pointer."""
    from selenium.webdriver.common.keys import Keys

    browser.open()
    methods = sample_report()["methods"]
    assert browser.texts("#overview .names dt") == [method["label"] for method in methods]
    browser.draw("#table-final")
    titles = browser.run(
        "return [...document.querySelectorAll('#table-final td[title]')].map((e) => e.title)"
    )
    assert titles[:5] == [method["words"] for method in methods]
    browser.draw("#performance")
    chart = browser.one("#performance svg[role=img]")
    browser.run("arguments[0].focus({ focusVisible: true })", chart)
    chart.send_keys(Keys.ARROW_DOWN)
    browser.wait("return !tip.hidden && tip.textContent.includes('stand for')")


def test_dots_stand_where_their_numbers_are(browser):
    """On an axis that does not begin at zero; the best first, with the paper's beside them."""
    browser.open("one")
    browser.draw("#performance")
    assert not browser.all("#performance svg[role=img] rect.bar")
    ticks = [float(text) for text in browser.texts("#performance svg[role=img] .tick.middle")]
    assert min(ticks) > 50
    finals = [float(line[4].split()[0]) for line in browser.numbers("performance")]
    names = browser.texts("#performance svg[role=img] .name")
    labels = [method["label"] for method in sample_report()["methods"]]
    assert names == [labels[m] for m in sorted(range(5), key=lambda m: -finals[m])]
    assert len(browser.all("#performance svg[role=img] .mark.paper")) == 5


def test_what_a_report_lacks_is_not_there(browser):
    browser.open("small", height=3000)
    browser.draw("#performance")
    assert browser.texts("nav a") == ["At a glance", "Figures", "Runs"]
    assert not browser.all("#variations, #structures, #candidates, #reuse, .alerts")
    browser.numbers("performance")
    assert "Paper's final" not in browser.texts("#performance .numbers thead th")


def test_parts_are_beside_their_reference(browser):
    browser.open(view="streams=0")
    lines = browser.numbers("variations")
    assert [line[4] for line in lines] == ["Joint", "Compositional"]  # what helps most is left out first
    assert lines[0][5:] == ["3", "\u22122.6", "\u22123.6", "\u22121.6", "0.0200"]


def test_components_come_and_go_on_the_map(browser):
    browser.open()
    browser.draw("#structures")
    labels = [label.strip() for label in browser.texts("#structures .legend li")]
    assert {"there from the start", "removed", "merged into another"} <= set(labels)
    names = browser.texts("#structures svg:first-of-type .tick.end")
    assert "removed" in names
    assert "merged into 0" in names
    assert len(browser.all("#structures .life")) == 2


@pytest.mark.parametrize("width", [1200, 360])
def test_hundreds_of_tasks_are_legible(browser, width):
    """Columns are wide enough to be seen, and there are few enough elements to draw them at once."""
    browser.open("long", width=width)
    for figure in ("structures", "matrix"):
        browser.draw(f"#{figure}")
        cells = browser.run(
            "return [...document.querySelector(arguments[0]).querySelector('svg').querySelectorAll('.cell')]"
            ".map((e) => e.getBoundingClientRect().width)",
            f"#{figure}",
        )
        assert cells
        assert min(cells) >= 3
        assert len(cells) < 10_000
    assert browser.run("return document.documentElement.scrollWidth") <= width
    label = browser.run("return document.querySelector('#structures svg[role=img]').ariaLabel")
    assert f"each of {LONG} tasks" in label
