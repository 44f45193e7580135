"""The first look of the report's page, in a browser."""

from __future__ import annotations

import pytest

from tests.sample_report import (
    HOSTILE_STREAM,
    LONG,
    long_report,
    odd_report,
    sample_report,
    small_report,
    written,
)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    one = {"one": sample_report(streams=1), "small": small_report()}
    many = {"sample": sample_report(), "long": long_report(), "odd": odd_report()}
    return written(tmp_path_factory.mktemp("pages"), one | many)


def test_answers_come_before_figures_and_these_before_tables(browser):
    browser.open()
    assert browser.texts("nav a") == [
        *(
            "At a glance",
            "Figures",
            "Which parts helped",
            "Which task is it?",
            "Tables",
            "Component explorer",
            "Runs",
        )
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


def test_no_line_goes_through_a_name(browser):
    """On a phone, names stand above the rows: a line at the most frequent class would cross them."""
    browser.open("odd", view="streams=0&at=performance", width=400)
    browser.draw("#performance")
    above = browser.run(
        "document.querySelector('#performance svg[role=img]').scrollIntoView({block: 'center'});"
        "const {x} = document.querySelector('#performance line.majority').getBoundingClientRect();"
        "return [...document.querySelectorAll('#performance text.name')].map((name) => {"
        "  const {y, height} = name.getBoundingClientRect();"
        "  return [1, height / 2, height - 1].map((below) =>"
        "    document.elementFromPoint(x, y + below).getAttribute('class')); })"
    )
    assert len(above) == 5
    assert {each for name in above for each in name} <= {"clear", "name"}


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
    assert lines[0][5:] == ["3", "\u22122.6", "\u22123.6", "\u22121.6", "0.0200", "0.50", "0.75"]


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


def test_curves_of_hundreds_of_tasks_are_summed_up(browser):
    """The mean over tasks so far at first; then how they change, and some of them one by one."""
    browser.open("long")
    browser.draw("#curves")
    assert len(browser.all("#curves svg[role=img] .line")) == 1
    assert len(browser.all("#curves svg[role=img] .band")) == 1
    after = long_report()["runs"][0]["after"]
    lines = browser.numbers("curves")
    assert lines[0][1:] == ["1", "90.0", "90.0", "90.0", "1"]
    tenth = [score for score in after[9] if score is not None]
    assert lines[9][1:] == ["10", f"{sum(tenth) / 10:.1f}", "89.9", "90.0", "10"]
    browser.open("long", view="curves-show=age")
    lines = browser.numbers("curves")
    browser.click("#curves .numbers .table > button")
    rows = browser.wait(
        "const rows = [...document.querySelectorAll('#curves .numbers tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent));"
        "return rows.length > 100 && rows"
    )
    assert lines[0][1:] == ["0", "0.0", "0.0", "0.0", f"{LONG}"]
    assert rows[100][1:] == ["100", "\u22121.0", "\u22121.0", "\u22121.0", f"{LONG - 100}"]
    assert rows[-1][1] == "270"  # of a tenth of the tasks
    browser.open("long", view="curves-show=24")
    assert [line[1] for line in browser.numbers("curves")][:2] == ["25 grid-024", "26 grid-025"]
    assert len(browser.all("#curves svg[role=img] .line")) == 24


def test_few_tasks_have_a_curve_each(browser):
    browser.open(view="streams=0&methods=0")
    browser.draw("#curves")
    assert "each task" in browser.texts("#curves option:checked")
    assert len(browser.all("#curves svg[role=img] .line")) == 6


def test_structures_of_any_task_can_be_seen(browser):
    browser.open("long", view="structures-tasks=48")
    browser.draw("#structures")
    names = browser.texts("#structures svg[role=img] .name")
    assert names[0] == "49 grid-048"
    assert len(names) == 24


# --- inference ----------------------------------------------------------------------------------------------


def test_which_tasks_are_taken_for_which(browser):
    browser.open(view="streams=0&methods=0")
    lines = browser.numbers("confusion")
    assert "Which task is it?" in browser.texts("nav a")
    (words,) = browser.texts("#confusion .words")
    # Of three seeds: 0, 1 and 2 (the fourth is unfinished). Of six tasks, one loses 30 %, the others 20 %.
    own, none = 70 - 1 - (5 * 20 + 30) / 6, 31
    assert f"{own:.1f}\u00a0% are taken for those of their own task" in words
    assert f"and {none:.1f}\u00a0% for none of them" in words
    assert f"told of {own + 5:.1f}\u00a0% if one must be named, 99.0\u00a0% from ten inputs" in words
    assert lines[0][1:] == ["3 <img src=x onerror=alert(1)>", "30.0"]
    assert "Show all 18 rows" in browser.texts("#confusion button")  # pairs, none of them, their own
    assert len(browser.all("#confusion svg[role=img] .cell")) == 6 * 7
    label = browser.run("return document.querySelector('#confusion svg[role=img]').ariaLabel")
    assert words in label


def test_tasks_that_are_not_chosen_are_others(browser):
    browser.open(view="streams=0&methods=0&tasks=0-1")
    browser.draw("#confusion")
    assert browser.texts("#confusion svg[role=img] .tick.middle")[:4] == ["1", "2", "other", "none"]
    assert len(browser.all("#confusion svg[role=img] .cell")) == 2 * 4


@pytest.mark.parametrize("width", [1200, 360])
def test_confusion_of_hundreds_of_tasks(browser, width):
    browser.open("long", width=width)
    browser.draw("#confusion")
    cells = browser.run(
        "return [...document.querySelectorAll('#confusion svg[role=img] .cell')]"
        ".map((e) => e.getBoundingClientRect().width)"
    )
    assert min(cells) >= 3
    assert len(cells) < 4_000
    assert len(browser.all("#confusion .pairs li")) == 8
    assert browser.run("return document.documentElement.scrollWidth") <= width
