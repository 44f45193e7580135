"""The report's page: what is in the file, and what it does in a browser."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
import operator
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest
import torch

from piaget.lab.progress import duration
from piaget.method.structures import SoftOrdering
from piaget.report import metrics
from piaget.report.page import page
from piaget.report.reading import read
from piaget.report.write import report
from piaget.scoring import probing
from tests import page_schema
from tests.browser import Browser
from tests.sample_report import (
    HOSTILE_NOTE,
    HOSTILE_STREAM,
    HOSTILE_TASK,
    data_of,
    empty_report,
    odd_report,
    sample_report,
    small_report,
)

OLD_RUNS = Path(__file__).parent / "written_by_0_1" / "sweep"
FIGURES = ("performance", "curves", "forgetting", "matrix", "structures", "candidates", "reuse")


# --- the file ---


class Parsed(HTMLParser):
    """The elements of a page and the contents of its scripts and styles."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.contents: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style", "title"):
            self.contents.append((self.open[-1], data))


@pytest.fixture(scope="module")
def text():
    return page(sample_report())


@pytest.fixture(scope="module")
def parsed(text):
    return Parsed(text)


@pytest.mark.parametrize("made", [sample_report, empty_report, small_report, odd_report])
def test_data_are_what_their_types_say(made):
    page_schema.check(made())


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (["runs", 0, "final"], ..., "report.runs"),
        (["runs", 0, "final", 1], "90", "report.runs"),
        (["streams", 0, "digits"], True, "report.streams"),
        (["explorers", 0, "tasks", 0, "usable"], None, "report.explorers"),
        (["paper", 0], [0, 1, 2.0], "report.paper"),
        (["more"], 1, "report has"),
    ],
)
def test_what_is_missing_or_of_another_type_is_seen(path, value, place):
    report = json.loads(json.dumps(sample_report()))
    page_schema.check(report)
    *parents, last = path
    inner = functools.reduce(operator.getitem, parents, report)
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    with pytest.raises(AssertionError, match=re.escape(place)):
        page_schema.check(report)


def test_scripts_are_checked_against_the_types_of_now():
    """If this fails: python -m tests.page_schema, and make js."""
    assert page_schema.FILE.read_text() == page_schema.typescript()


def test_structure(text, parsed):
    assert text.startswith("<!DOCTYPE html>")
    assert parsed.open == []  # every element is closed
    tags = [tag for tag, _ in parsed.elements]
    for tag in ("html", "head", "title", "body", "header", "nav", "main", "footer", "style"):
        assert tags.count(tag) == 1, tag
    assert tags.count("script") == 2
    assert dict(parsed.elements)["html"]["lang"] == "en"
    assert "{{" not in re.sub(r"<script.*?</script>", "", text, flags=re.S)


def test_data_come_back(text, parsed):
    report = sample_report()
    assert data_of(text) == json.loads(json.dumps(report))
    data = next(data for tag, data in parsed.contents if tag == "script")
    assert re.fullmatch("[A-Za-z0-9+/=]+", data)
    assert HOSTILE_TASK not in text
    assert HOSTILE_STREAM not in text
    assert HOSTILE_NOTE not in text


def test_title_is_escaped():
    report = sample_report()
    report["title"] = "</title><script>alert(4)</script>{{data}}"
    assert [data for tag, data in Parsed(page(report)).contents if tag == "title"] == [report["title"]]


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_only_finite_numbers(number):
    report = sample_report()
    report["runs"][0]["components"] = number
    with pytest.raises(ValueError, match="JSON compliant"):
        page(report)


def test_policy_allows_only_what_is_there(parsed):
    policy = next(
        a["content"] for _, a in parsed.elements if a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for tag, content in (parsed.contents[1], parsed.contents[-1]):  # after the title; after the data
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_nothing_is_loaded(text, parsed):
    addresses = set(re.findall(r"\w+://[^\s\"'`]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert not [a for tag, a in parsed.elements if "src" in a or tag == "link"]
    style = next(data for tag, data in parsed.contents if tag == "style")
    assert "url(" not in style
    assert "@import" not in style


def test_text_enters_as_text(parsed):
    script = parsed.contents[-1][1]
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function("):
        assert way not in script


def test_size(text):
    data = len(json.dumps(sample_report()))
    assert len(text) < 0.5 * data + 150_000


# --- in a browser ---


@pytest.fixture(scope="module")
def addresses(tmp_path_factory, text):
    """The pages as files: as they are opened by people."""
    folder = tmp_path_factory.mktemp("pages")
    pages = {"sample": text}
    for name, made in {"empty": empty_report(), "small": small_report(), "odd": odd_report()}.items():
        pages[name] = page(made)
    for name, content in pages.items():
        (folder / f"{name}.html").write_text(content, encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in pages}


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
    assert first[:6] == ["objects-random", "ER Dyn. + Comp.", "3", forward, final, "91.6"]
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
            assert line[5:8] == ["\u2013", name, tasks]
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


def test_the_rest_is_shared_among_the_components_that_a_task_may_use(browser):
    """Where all others have nothing: by the page as by Python, also for components that came later."""
    explorer = odd_report()["explorers"][0]
    task = explorer["tasks"][0]
    assert task["usable"] < explorer["components"]
    browser.open("odd")
    browser.draw("#explorer")
    browser.slide(0, 1, 0.4)
    browser.wait("return document.querySelector('.result svg').ariaLabel.includes('0.40')")
    label = browser.run("return document.querySelector('.result svg').ariaLabel")
    change = probing.at_intensity(SoftOrdering(), 0, 0.4, 0, task["usable"])
    expected = change(0, torch.tensor(task["weights"][0])).tolist()
    assert re.findall(r"\d\.\d\d", label) == [f"{weight:.2f}" for weight in expected]


def test_the_best_is_compared_with_the_next_by_the_paired_test(browser):
    browser.open()
    text = browser.texts("#overview .sentences li")[0]
    assert "a significant difference (paired t-test over 3 seeds, p = 0.0123)" in text
    browser.open(view="seeds=0-2")
    assert "significant" not in browser.texts("#overview .sentences li")[0]


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
    browser.wait("return document.querySelector('#overview .sentences')")


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


def test_a_slider_changes_the_score(browser):
    report = sample_report()
    task = report["explorers"][0]["tasks"][0]
    browser.open()
    browser.draw("#explorer")
    learned = browser.wait("return document.querySelector('.score').textContent")
    assert learned == f"{task['score']:.1f}"
    browser.slide(1, 1, 0.85)
    assert task["scores"] is not None
    expected = sum(score or 0.0 for score in task["scores"][0][1][8:10]) / 2  # half way between 0.8 and 0.9
    browser.wait("return document.querySelector('.score').textContent !== arguments[0]", learned)
    assert float(browser.texts(".score")[0]) == pytest.approx(expected, abs=0.051)
    others = [weight for c, weight in enumerate(task["weights"][0]) if c != 1]
    weights = browser.run("return document.querySelector('.result svg').ariaLabel")
    shares = [float(number) for number in re.findall(r"0\.\d\d", weights)]
    assert shares[1] == 0.85
    assert shares[0] == pytest.approx(0.15 * others[0] / sum(others), abs=0.006)
    browser.slide(0, 3, 0.5)  # the first slider goes back
    slider = browser.one("input[aria-label='component 1 at depth 1']")
    assert float(slider.get_property("value")) == pytest.approx(task["weights"][0][1], abs=0.006)


def _ink(explorer, weights):
    """The picture, computed plainly."""
    import torch

    numbers = torch.frombuffer(
        bytearray(base64.b64decode(explorer["network"]["numbers"])), dtype=torch.float32
    )
    network = explorer["network"]
    width, k, pixels = network["width"], explorer["components"], math.prod(network["side"])
    shapes = [(pixels, 2), (2, width), (width,), (k, width, width), (k, width), (width, 1), (1,)]
    parts = torch.split(numbers, [math.prod(shape) for shape in shapes])
    x, encoder, bias, w, b, decoder, offset = (
        part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)
    )
    h = x @ encoder + bias
    for mix in weights:
        h = sum(mix[c] * torch.relu(h @ w[c].T + b[c]) for c in range(k))
    return torch.sigmoid(h @ decoder + offset)[:, 0].double()


def test_a_slider_changes_the_picture(browser):
    explorer = sample_report()["explorers"][1]
    task = explorer["tasks"][1]
    browser.open(view="explorer-of=1&explorer-task=1")
    browser.draw("#explorer")
    pixels = (
        "const c = document.querySelectorAll('.picture canvas')[arguments[0]];"
        "if (c.width !== 12) return null;"
        "return [...c.getContext('2d').getImageData(0, 0, 12, 12).data].filter((_, i) => i % 4 === 0)"
    )
    learned = browser.wait(pixels, 0)
    assert learned == browser.run(pixels, 1)
    expected = 255 * (1 - _ink(explorer, task["weights"]))
    assert max(abs(a - b) for a, b in zip(learned, expected.tolist(), strict=True)) <= 1

    browser.slide(0, 2, 0.9)
    browser.slide(2, 4, 0.0)
    weights = [list(mix) for mix in task["weights"]]
    for d, c, a in ((1, 0, 0.9), (3, 2, 0.0)):
        rest = sum(weights[d]) - weights[d][c]
        weights[d] = [a if o == c else (1 - a) * w / rest for o, w in enumerate(weights[d])]
    expected = 255 * (1 - _ink(explorer, weights))
    browser.wait("return document.querySelector('.picture output').textContent")
    browser.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    moved = browser.run(pixels, 0)
    assert moved != learned
    assert max(abs(a - b) for a, b in zip(moved, expected.tolist(), strict=True)) <= 1
    other = browser.one("input[aria-label='component 1 at depth 2']").get_property("value")
    assert float(other) == pytest.approx(weights[1][1], abs=0.006)

    browser.click(".explorer div > button")
    browser.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert browser.run(pixels, 0) == learned
    browser.run("document.querySelector('.strips').scrollIntoView()")
    assert len(browser.all(".strip canvas")) == 2 * 4 * 8
    browser.wait("return [...document.querySelectorAll('.strip canvas')].every((c) => c.width === 12)")


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
        assert browser.texts("nav a") == ["Overview"]
    else:
        browser.wait("return document.querySelectorAll('#performance svg[role=img]').length === 1")
        browser.wait("return document.querySelectorAll('#matrix .cell').length === 1")
        browser.wait("return document.querySelector('#forgetting .mark')")
        assert {figure.get_attribute("id") for figure in browser.all("figure")} == set(FIGURES[:4])
