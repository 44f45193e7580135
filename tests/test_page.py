"""The report's page in a browser."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from piaget.lab.progress import duration
from piaget.report import metrics
from piaget.report.reading import read
from piaget.report.write import report
from tests.browser import Browser
from tests.sample_report import (
    HOSTILE_NOTE,
    HOSTILE_STREAM,
    HOSTILE_TASK,
    empty_report,
    odd_report,
    sample_report,
    small_report,
    written,
)

OLD_RUNS = Path(__file__).parent / "written_by_0_1" / "sweep"
FIGURES = (
    *("performance", "curves", "forgetting", "matrix"),
    *("structures", "candidates", "reuse", "variations", "confusion"),
)


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    made = {"sample": sample_report(), "empty": empty_report(), "small": small_report(), "odd": odd_report()}
    return written(tmp_path_factory.mktemp("pages"), made)


def test_everything_is_drawn_and_named(browser):
    browser.open()
    for figure in FIGURES:
        browser.draw(f"#{figure}")
        browser.click(f"#{figure} details.numbers > summary")
        rows = browser.wait(
            "return document.querySelectorAll(`#${arguments[0]} .numbers tbody tr`).length", figure
        )
        assert rows > 0
        assert browser.texts(f"#{figure} .numbers caption")[0]
    browser.draw("#explorer")
    browser.draw("#runs")
    nameless = browser.run(
        "return [...document.querySelectorAll('svg:not([aria-hidden]), canvas')]"
        ".filter((e) => e.getAttribute('role') !== 'img' || !e.getAttribute('aria-label')).length"
    )
    assert nameless == 0
    levels = browser.run(
        "return [...document.querySelectorAll('h1, h2, h3, h4')].map((e) => Number(e.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    identifiers = browser.run("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(identifiers) == len(set(identifiers))
    assert not browser.run(
        "return [...document.querySelectorAll('input, select, button, summary')]"
        ".filter((e) => !(e.textContent.trim() || e.ariaLabel || e.labels?.length)).length"
    )


def test_hostile_names_are_text(browser):
    browser.open(view="explorer-of=1")
    for place in (*FIGURES, "explorer", "runs"):
        browser.draw(f"#{place}")
    browser.run("document.querySelectorAll('details').forEach((d) => (d.open = true))")
    browser.wait("return document.querySelector('#runs pre')")
    assert browser.run("return document.querySelectorAll('img, b, main script').length") == 0
    assert HOSTILE_NOTE in browser.texts(".notes li")
    assert HOSTILE_TASK in [label.strip() for label in browser.texts("#choosing label")]
    assert HOSTILE_STREAM in browser.texts("#table-final tbody th")
    assert any(HOSTILE_TASK in option for option in browser.texts("#explorer option"))
    assert '"note": "</script>"' in browser.texts("#runs pre")[0]
    browser.one("body").is_displayed()  # an alert would raise an error here


def shown(values, digits=1):
    middle = sum(values) / len(values)
    variance = sum((value - middle) ** 2 for value in values) / (len(values) - 1)
    return f"{middle:.{digits}f} ± {math.sqrt(variance / len(values)):.{digits}f}".replace("-", "\u2212")


def runs_of(report, stream, method):
    """Those that count."""
    runs = report["runs"]
    return [r for r in runs if (r["stream"], r["method"]) == (stream, method) and r["counted"]]


def mean(values):
    return sum(values) / len(values)


def test_numbers(browser):
    """Forward, final, gains, forgetting and reuse, computed here once more."""
    report = sample_report()
    done = runs_of(report, 0, 0)
    assert len(done) == 3
    browser.open()
    (first, *_) = browser.numbers("performance")
    forward, final = (shown([mean(run[key]) for run in done]) for key in ("first", "final"))
    assert first[:6] == ["objects-random", "ER Dyn. + Comp.", "3", forward, final, "91.6 ± 0.6"]
    ratios = [run["ratio"][0] for run in done]
    assert browser.numbers("forgetting")[0][3] == shown(ratios, 3)
    needed = [sorted(map(sum, zip(*run["reused"], strict=True)), reverse=True) for run in done]
    assert browser.numbers("reuse")[0][2] == shown([counts[0] for counts in needed])


@pytest.mark.parametrize("stream", [0, 1])
def test_gains_are_those_of_the_metrics(browser, stream):
    report = sample_report()
    final = pd.Series({str(i): mean(run["final"]) for i, run in enumerate(report["runs"])})
    metric = pd.Series(report["streams"][stream]["metric"], index=final.index)
    pairs = {str(i): str(run["reference"]) for i, run in enumerate(report["runs"])}
    gains = metrics.relative_gain(final, final, metric, pairs)
    browser.open(view=f"streams={stream}&performance-as=gain")
    lines = browser.numbers("performance")
    for method in range(5):
        of_method = [gains[str(report["runs"].index(run))] for run in runs_of(report, stream, method)]
        assert lines[method][4] == shown(of_method)


def test_gains_over_all_streams_are_means_of_each_seeds(browser):
    report = sample_report()
    browser.open(view="performance-as=gain")
    overall = [line for line in browser.numbers("performance") if line[0] == "Mean over the streams"]
    for method in range(5):
        by_seed: dict[int, list[float]] = {}
        for stream, sign in ((0, 1), (1, -1)):
            for run in runs_of(report, stream, method):
                base = mean(report["runs"][run["reference"]]["final"])
                by_seed.setdefault(run["seed"], []).append(100 * sign * (mean(run["final"]) / base - 1))
        everywhere = [mean(gains) for gains in by_seed.values() if len(gains) == 2]
        assert overall[method][2] == f"{len(everywhere)}"
        assert overall[method][4] == shown(everywhere)


def test_other_scores_of_the_same_runs(browser):
    """By AUC and log-loss, of the tasks that have them; with the accuracy of the most frequent class."""
    report = sample_report()
    browser.open()
    usual = browser.numbers("performance")
    for method in range(5):
        of = [mean(run["majority"]) for run in runs_of(report, 0, method)]
        assert usual[method][8] == f"{mean(of):.1f}"
        assert usual[method][7] == "6"
    assert {line[8] for line in usual[5:]} == {"\u2013"}  # errors
    assert len(browser.all("#performance svg[role=img] .majority")) == 1
    for name, tasks in (("AUC", "5"), ("log-loss", "6")):
        browser.open(view=f"performance-score={name}")
        lines = browser.numbers("performance")
        assert len(lines) == 5  # of one stream
        for method, line in enumerate(lines):
            runs = runs_of(report, 0, method)
            assert line[4] == shown([mean(run["further"][name]["final"]) for run in runs], 3)
            assert line[3] == shown([mean(run["further"][name]["first"]) for run in runs], 3)
            assert line[5:] == [name, tasks]  # without columns in which there is nothing
        assert not browser.all("#performance svg[role=img] .majority")
    browser.clean()


def test_a_page_and_the_tables_have_the_same_numbers(driver, tmp_path):
    """Of real runs, by all that Python and the page both compute."""
    tables, _ = report([OLD_RUNS], tmp_path, title="real", command="")
    of = {table.name: [[cell.text for cell in row] for row in table.rows] for table in tables}
    browser = Browser(driver, {"real": (tmp_path / "report.html").as_uri()})
    browser.open("real")
    lines = browser.numbers("performance")
    assert [line[4] for line in lines] == [row[4] for row in of["final"]]
    assert [line[3] for line in lines] == [row[2] for row in of["transfer"]]
    browser.open("real", view="performance-score=log-loss")
    assert [line[4] for line in browser.numbers("performance")] == [row[6] for row in of["scores"]]
    browser.open("real")
    counts = [[method, rank, f"{float(tasks.split()[0]):.1f}"] for _, method, rank, tasks, _ in of["reuse"]]
    assert [[method, rank, tasks.split()[0]] for method, rank, tasks, _ in browser.numbers("reuse")] == counts
    ratios = [float(cell) for row in of["ratios"] for cell in row[2:] if cell]
    on_page = [float(line[3].split()[0]) for line in browser.numbers("forgetting")]
    assert on_page == pytest.approx(ratios[: len(on_page)], abs=0.0051)  # the first rows are shown
    browser.draw("#runs")
    times = {run.costs[0] for run in read([OLD_RUNS]).runs}
    assert set(browser.texts("#runs td:nth-child(5)")) == {
        duration(time) for time in times if time is not None
    }
    browser.clean()


def test_what_is_not_a_number_is_not_passed_over(browser):
    """As in Python: a mean over it is none, except over seeds at one position."""
    report = odd_report()
    browser.open("odd")
    lines = browser.numbers("performance")
    assert [line[4] for line in lines if line[0] == "objects-random"][1] == "\u2013"
    done = runs_of(report, 0, 1)
    forgetting = [line for line in browser.numbers("forgetting") if line[0] == "objects-random"]
    assert forgetting[6][3] == shown([run["ratio"][0] for run in done[1:]], 3)
    assert forgetting[6][4] == "3"
    browser.open("odd", view="streams=0&methods=0&seeds=0")
    first, second, *_ = browser.numbers("forgetting")
    assert first[3] == "1.000"
    assert second[2].startswith("3 ")  # the second task has no ratio


def test_candidates_are_shown_with_the_thresholds_of_their_runs(browser):
    browser.open("odd")
    browser.draw("#candidates")
    labels = [label.strip() for label in browser.texts("#candidates .legend li")]
    assert labels == ["kept", "discarded", "5\u00a0% better", "20\u00a0% better", "the same"]
    report = odd_report()
    gains = [f"{c['gain']:.1f}".replace("-", "\u2212") for r in report["runs"] for c in r["candidates"]]
    assert [line[6] for line in browser.numbers("candidates")] == gains


def test_choosing_changes_figures_and_the_address(browser):
    browser.open()
    browser.draw("#performance")
    before = browser.run("return document.querySelector('#performance .panels').textContent")
    assert len(browser.all("#performance svg[role=img]")) == 2
    browser.click("#choosing > summary")
    browser.click("#choosing input[name=streams][value='1']")
    browser.wait("return document.querySelectorAll('#performance svg[role=img]').length === 1")
    browser.click("#choosing input[name=methods][value='4']")
    browser.wait("return !document.querySelector('#performance .panels').textContent.includes('NFT')")
    browser.click("#choosing input[name=seeds][value='0']")
    browser.click("#choosing input[name=tasks][value='5']")
    browser.wait("return location.hash === '#streams=0&methods=0-3&seeds=1-3&tasks=0-4,6-11'")
    browser.run("document.querySelector('#table-final').scrollIntoView()")
    browser.wait("return document.querySelectorAll('#table-final tbody tr').length === 4")
    for _ in range(4):
        browser.driver.back()
    browser.wait("return document.querySelectorAll('#choosing input:not(:checked)').length === 0")
    browser.draw("#performance")
    browser.wait("return document.querySelector('#performance .panels').textContent === arguments[0]", before)
    browser.run("scrollTo(0, 0)")
    browser.click("button[aria-label='none methods']")
    browser.wait("return document.querySelector('#overview').textContent.includes('No run')")
    browser.click("button[aria-label='all methods']")
    browser.wait("return document.querySelector('#overview .answer')")


def test_a_view_can_be_linked(browser):
    browser.open(
        view="streams=1&methods=0,4&performance-as=gain&theme=dark&matrix-method=4&tasks=7-99,x&seeds=0-2"
    )
    assert "1 of 2 streams · 2 of 5 methods · 3 of 4 seeds · 5 of 12 tasks" in browser.texts("#choosing")[0]
    browser.draw("#performance")
    assert "gain in %" in browser.texts("#performance .panels")[0]
    browser.draw("#matrix")
    assert browser.one("#matrix label:nth-child(2) select").get_property("value") == "4"
    dark = browser.run("return getComputedStyle(document.body).backgroundColor")
    browser.click("button.theme")
    browser.wait("return getComputedStyle(document.body).backgroundColor !== arguments[0]", dark)


def test_tables_are_sorted(browser):
    from selenium.webdriver.common.keys import Keys

    browser.open()
    browser.draw("#table-cost")
    second = "#table-cost thead th:nth-child(2)"
    values = "#table-cost tbody td:nth-child(2)"
    browser.one(f"{second} button").send_keys(Keys.ENTER)
    assert browser.texts(values) == ["40", "98", "1,204"]
    assert browser.one(second).get_attribute("aria-sort") == "ascending"
    browser.one(f"{second} button").click()
    assert browser.texts(values) == ["1,204", "98", "40"]
    assert browser.one(second).get_attribute("aria-sort") == "descending"
    assert browser.texts("#table-final tbody strong") == ["92.5 ± 0.4", "9.92 ± 0.4"]
    browser.run("document.addEventListener('copy', () => (window.copied = getSelection().toString()))")
    browser.run("navigator.clipboard.writeText = async (text) => { window.copied = text; }")
    browser.click("#table-cost .table > button:last-child")
    browser.wait("return window.copied")
    assert browser.run("return window.copied").splitlines()[-1] == '"a ""quoted"", part",40,3 %'


def test_values_are_read_off_by_pointer_and_keys(browser):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.open()
    browser.draw("#matrix")
    chart = browser.one("#matrix svg[role=img]")
    ActionChains(browser.driver).move_to_element(browser.one("#matrix rect.cell")).perform()
    assert "seeds" in browser.wait("return !tip.hidden && tip.textContent")
    browser.run("arguments[0].focus({ focusVisible: true })", chart)
    chart.send_keys(Keys.ARROW_RIGHT)
    first = browser.wait("return !tip.hidden && tip.textContent")
    chart.send_keys(Keys.ARROW_RIGHT)
    second = browser.wait("return !tip.hidden && tip.textContent !== arguments[0] && tip.textContent", first)
    assert second.startswith(f"3 {HOSTILE_TASK}\n")
    chart.send_keys(Keys.ESCAPE)
    browser.wait("return tip.hidden")


def test_keys_reach_everything(browser):
    from selenium.webdriver.common.keys import Keys

    browser.open(height=6000)
    browser.draw("#explorer")
    browser.wait("return document.querySelector('#runs tbody tr')")
    reached = []
    for _ in range(150):
        browser.driver.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(browser.run("const e = document.activeElement; return e.ariaLabel || e.textContent"))
        if reached[-1] == "component 2 at depth 1":
            break
    assert reached[0] == "Skip to the results"
    assert any(name.startswith("Choosing") for name in reached)
    assert "component 0 at depth 1" in reached
    slider = browser.driver.switch_to.active_element
    before = float(slider.get_property("value"))
    slider.send_keys(Keys.ARROW_RIGHT)
    assert float(slider.get_property("value")) == pytest.approx(before + 0.01, abs=0.006)
    assert browser.driver.switch_to.active_element == slider


def test_fits_on_a_phone(browser):
    for view in ("", "explorer-of=1"):
        browser.open(view=view, width=360, height=700)
        for place in (*FIGURES, "tables", "explorer", "runs"):
            browser.draw(f"#{place}")
        browser.run("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        browser.wait("return document.querySelector('#runs pre')")
        assert browser.run("return document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize("name", ["empty", "small"])
def test_little_data(browser, name):
    browser.open(name, height=5000)
    text = browser.run("return document.body.innerText")
    assert "NaN" not in text
    assert "undefined" not in text
    if name == "empty":
        assert "There are no runs yet." in text
        assert browser.all("figure") == []
        assert browser.texts("nav a") == ["At a glance"]
    else:
        browser.wait("return document.querySelectorAll('#performance svg[role=img]').length === 1")
        browser.wait("return document.querySelectorAll('#matrix .cell').length === 1")
        browser.wait("return document.querySelector('#forgetting .mark')")
        assert {figure.get_attribute("id") for figure in browser.all("figure")} == set(FIGURES[:4])
