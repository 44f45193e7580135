"""The page for tables of one's own: its data against rows, and what it does in a browser."""

import datetime
import json
import math
import shutil
import statistics
import warnings

import numpy as np
import pytest
import torch

from piaget.cli import main
from piaget.files import write_json
from piaget.lab.folder import RunFolder
from piaget.prior_learner import PriorLearner
from piaget.report import table_map
from piaget.report.page import table_page
from piaget.report.reading import read
from piaget.report.table_data import OwnReportData
from piaget.report.table_describe import describe, report_data
from piaget.report.write import report
from piaget.scoring.rows import SHARES
from tests import page_schema
from tests.commands import said, words
from tests.sample_report import data_of
from tests.tables import visits

HOSTILE = '</script><img src=x onerror=alert(1)>{{data}} & "quotes"'
MEANT = {"ill": "auc", "stay": "rmse", "length": "loss"}


def table(target, groups=range(12), rows=60, seed=0):
    made = visits(groups, rows, seed)
    made["length"] = np.select([made["stay"] < 8, made["stay"] < 12], ["short", "middle"], "long")
    made["site"] = made["site"].replace({"site 4": HOSTILE})
    return made[["site", "age", "dose", "bmi", "ward", target]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run of each kind; of the regression, with February's table learned, and a group forgotten."""
    folder = tmp_path_factory.mktemp("runs")
    for target in MEANT:
        table(target).to_csv(folder / "january.csv", index=False)
        run = words(f"run --group site --target {target} --quiet --table", folder / "january.csv")
        assert main([*run, "--out", str(folder / target)]) == 0
    table("stay", range(9, 14), 25, seed=3).to_csv(folder / "february.csv", index=False)
    assert main(words("learn", folder / "stay", folder / "february.csv")) == 0
    assert main(words("forget", folder / "stay", "site 5")) == 0
    return folder


def described(folder):
    results = read([folder])
    return report_data(results.runs, results.notes, title="t", command="c")


@pytest.mark.parametrize("target", MEANT)
def test_data_are_what_their_types_say(runs, target):
    data = described(runs / target)
    page_schema.check(data, OwnReportData)
    assert data["runs"][0]["metrics"][0]["key"] == MEANT[target]
    assert data_of(table_page(data)) == json.loads(json.dumps(data))


@pytest.mark.parametrize("target", MEANT)
def test_scores_are_those_of_rows(runs, target):
    """Computed here once more, from rows alone."""
    (run,) = described(runs / target)["runs"]
    rows = list(RunFolder(runs / target / "seed-0").rows())
    for metric in run["metrics"]:
        key, sign = metric["key"], 1 if metric["higher_is_better"] else -1
        of: dict[str, dict[str, float]] = {}
        for row in rows:
            if row["split"] == "test" and row["metric"].split(" by ")[0] == key and row["evaluated"]:
                model = row["metric"].partition(" by ")[2] or "piaget"
                of.setdefault(model, {})[row["evaluated"]] = row["value"]
        of.pop(SHARES, None)  # is not shown
        means = {model: statistics.fmean(scores.values()) for model, scores in of.items()}
        shown = {model["key"]: model["means"][key] for model in run["models"]}
        assert shown == pytest.approx(means, abs=1e-6)
        simple = {model: sign * mean for model, mean in means.items() if model not in ("piaget", "majority")}
        assert simple[metric["best"]] == max(simple.values())
        for group in run["groups"]:
            scores, name = group["scores"][key], group["name"]
            assert scores["piaget"] == pytest.approx(of["piaget"][name], abs=1e-6)
            gain = sign * (of["piaget"][name] - of[metric["best"]][name])
            assert scores["gain"] == pytest.approx(gain, abs=2e-6)
            assert scores["majority"] == pytest.approx(of["majority"][name], abs=1e-6)


@pytest.mark.parametrize("target", MEANT)
def test_sizes_of_groups_are_those_of_the_table(runs, target):
    (run,) = described(runs / target)["runs"]
    frame = table(target)
    gone = {"site 5"} if target == "stay" else set()
    assert {group["name"] for group in run["groups"]} == set(frame["site"]) - gone
    for group in run["groups"]:
        rows = frame[frame["site"] == group["name"]]
        assert group["rows"] == len(rows) == 60
        assert 11 <= group["tested"] <= 13
        assert group["positives"] == ((rows[target] == "yes").sum() if target == "ill" else None)
    forgotten = 12 if gone else 0
    assert run["tested"] == sum(group["tested"] for group in run["groups"]) + forgotten
    assert run["positive"] == ("yes" if target == "ill" else "")


def test_trust(runs):
    (binary,) = described(runs / "ill")["runs"]
    bins = binary["bins"]
    assert sum(one["rows"] for one in bins) == binary["tested"]
    error = sum(one["rows"] * abs(one["predicted"] - one["observed"]) for one in bins) / binary["tested"]
    assert binary["calibration_error"] == pytest.approx(error, abs=1e-5)
    assert all(one["error"] > 0 for one in bins)
    assert binary["coverage"] == []
    (values,) = described(runs / "stay")["runs"]
    assert values["bins"] == []
    levels = {one["level"]: one["observed"] for one in values["coverage"]}
    assert sorted(levels) == list(levels) == [0.5, 0.6, 0.7, 0.8, 0.9, 0.95]
    assert sorted(levels.values()) == list(levels.values())  # wider intervals hold more
    rows = RunFolder(runs / "stay" / "seed-0").rows()
    assert levels[0.9] == pytest.approx(next(row["value"] for row in rows if row["metric"] == "coverage"))


@pytest.mark.parametrize("target", MEANT)
def test_the_map_keeps_distances(runs, target):
    """All directions together: as far apart as groups' shared weights are, and near ones are named."""
    (run,) = described(runs / target)["runs"]
    learner = PriorLearner.load(runs / target / "seed-0" / "learner")
    known, shown = learner.known, run["map"]
    phi = known.components.phi.numpy()
    weights = np.stack([(psi.numpy() @ phi.T).ravel() for psi in known.coordinates().values()])
    assert shown["groups"] == list(known.coordinates())
    places = np.array(shown["places"])
    assert sum(one["share"] for one in shown["directions"]) > 0.9
    for i in range(len(places)):
        far = np.linalg.norm(weights - weights[i], axis=1)
        assert np.linalg.norm(places - places[i], axis=1) == pytest.approx(far, rel=0.15, abs=0.15)
        nearest = np.argsort(np.where(np.arange(len(far)) == i, math.inf, far))[:3]
        assert shown["near"][i] == [shown["groups"][j] for j in nearest]
    assert all(one["words"] for one in shown["directions"])


def test_directions_are_told_as_they_are(runs):
    """Sites were made to differ along one: age for, dose against, and bmi a little for."""
    (run,) = described(runs / "stay")["runs"]
    first = run["map"]["directions"][0]
    assert first["share"] > 0.9
    assert first["words"][:2] == ["age raises stay more", "dose lowers stay more"]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((True, "number", ["BMI", "Age"], True), "higher BMI and Age point more towards icu"),
        ((False, "number", ["BMI"], True), "higher BMI points less towards icu"),
        ((True, "category", ["Sex=m"], True), "Sex=m points more towards icu"),
        ((False, "level", [""], True), "icu is rarer"),
        ((True, "number", ["a", "b"], False), "a and b raise icu more"),
    ],
)
def test_directions_in_words(told, expected):
    assert table_map._told("icu", *told) == expected


def test_a_category_of_two_values_is_one_column(tmp_path):
    """From the first value to the second one, as answers change; and in words it is said once."""
    made = visits(range(12), 60, 0)
    made["sex"] = np.random.default_rng(1).choice(["f", "m"], len(made))
    slope = made["site"].map({f"site {i}": i - 5.5 for i in range(12)})
    made["stay"] += (1 + slope) * (made["sex"] == "m")
    made[["site", "age", "sex", "ward", "stay"]].to_csv(tmp_path / "january.csv", index=False)
    command = words("run --group site --target stay --quiet --table", tmp_path / "january.csv")
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    (run,) = described(tmp_path / "out")["runs"]
    learner = PriorLearner.load(tmp_path / "out" / "seed-0" / "learner")
    shown = {one["name"]: one for one in run["columns"]}
    assert not any("sex=" in name for name in shown)
    encoding = learner.encoding()
    assert encoding is not None
    inputs = encoding.inputs
    x = torch.zeros(2, len(inputs))
    x[0, inputs.index("sex=f")] = x[1, inputs.index("sex=m")] = 1
    answers = [learner.answered(x, task).values.double() for task in learner.tasks]
    changes = np.array([float(one[1] - one[0]) for one in answers]) / float(learner.known.standard_frame.unit)
    one = shown["sex: f \N{RIGHTWARDS ARROW} m"]
    assert (one["common"], one["differs"]) == pytest.approx((changes.mean(), changes.std()), abs=1e-3)
    told = "; ".join(run["map"]["directions"][0]["words"])
    assert told.count("sex=") == 1


def test_columns_are_effects_of_a_standard_deviation(runs):
    """Of a regression without trees: answers change as much, in the mean of groups."""
    (run,) = described(runs / "stay")["runs"]
    learner = PriorLearner.load(runs / "stay" / "seed-0" / "learner")
    encoding = learner.encoding()
    assert encoding is not None
    assert not run["trees"]
    assert run["columns"][0]["name"] == "age"
    common = {one["name"]: one["common"] for one in run["columns"]}
    frame = learner.known.standard_frame
    x = torch.zeros(2, len(frame.center), dtype=torch.float64) + frame.center
    number = encoding.inputs.index("dose")
    x[1, number] += frame.scale[number]
    answers = [learner.answered(x.float(), task).values.double() for task in learner.tasks]
    change = statistics.fmean(float(one[1] - one[0]) for one in answers) / float(frame.unit)
    assert common["dose"] == pytest.approx(change, abs=1e-3)


def test_what_came_later_and_what_is_forgotten(runs):
    (run,) = described(runs / "stay")["runs"]
    came = {one["group"]: one for one in run["arrivals"]}
    came_rows = [row for row in RunFolder(runs / "stay" / "seed-0").rows() if row["stage"] == "arrival"]
    assert list(came) == [f"site {i}" for i in range(9, 14)]
    assert [one["is_new"] for one in came.values()] == [False] * 3 + [True] * 2
    assert all(one["rows"] == 25 and one["table"] == "february" for one in came.values())
    for new in ("site 12", "site 13"):
        found, usual, spread = (
            next(row["value"] for row in came_rows if (row["evaluated"], row["metric"]) == (new, metric))
            for metric in ("explained", "usually explained", "usual spread")
        )
        word = "unusual" if found < usual - 2 * spread else "typical"
        assert came[new]["fit"].startswith(f"{word} (")
        assert "usual is" in came[new]["fit"]
    assert not came["site 9"]["fit"]
    assert {"site 12", "site 13"} < set(run["map"]["groups"])
    assert any("1 group was forgotten" in note for note in run["notes"])
    assert "site 5" not in json.dumps(run)


def test_the_same_runs_give_the_same_page(runs, tmp_path, monkeypatch):
    class Day(datetime.date):
        @classmethod
        def today(cls):
            return cls(2026, 1, 1)

    monkeypatch.setattr("piaget.report.wording.datetime.date", Day)
    pages = []
    for name in ("one", "two"):
        report([runs / "length"], tmp_path / name, title="t", command="c")
        files = {p.relative_to(tmp_path / name): p.read_bytes() for p in (tmp_path / name).rglob("*.*")}
        pages.append(files)
    assert pages[0] == pages[1]
    assert "the paper" not in (tmp_path / "one" / "report.html").read_text().lower()
    assert {path.name for path in pages[0]} == {
        ".files.txt",
        "report.html",
        "tables.md",
        *(f"{name}.{end}" for name in ("models", "groups", "classes") for end in ("md", "csv", "tex")),
    }


def test_command(runs, tmp_path, capsys):
    done = said(capsys, "report", runs / "ill", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    assert "Piaget beside simple models" in done.out
    assert "paper" not in done.out
    groups = (tmp_path / "out" / "tables" / "groups.csv").read_text().splitlines()
    assert groups[0] == "site,rows,test rows,yes,piaget,simple model,difference,majority"
    assert all(line.endswith(",0.5") for line in groups[1:])  # AUC
    assert HOSTILE not in (tmp_path / "out" / "report.html").read_text()


def test_other_runs_beside(runs, tmp_path, capsys):
    """Both kinds in one folder: both pages, and the usual tables."""
    shutil.copytree(runs / "ill", tmp_path / "both" / "ill")
    deep = words(
        "run digits --algorithm compositional --epochs 2 --option tasks=4 --option train_size=20 --quiet"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main([*deep, "--out", str(tmp_path / "both" / "digits")]) == 0
    done = said(capsys, "report", tmp_path / "both", "--all")
    assert done.code == 0, done.err
    assert "groups.html" in done.err
    place = tmp_path / "both" / "report"
    assert len(data_of((place / "groups.html").read_text())["runs"]) == 1
    assert len(data_of((place / "report.html").read_text())["runs"]) == 2
    assert (place / "tables" / "final.md").is_file()
    assert (place / "tables" / "models.md").is_file()


def test_a_damaged_summary_or_learner_is_told_of(runs, tmp_path):
    place = shutil.copytree(runs / "ill", tmp_path / "ill")
    tensors = next((place / "seed-0" / "learner").glob("*.json"))
    tensors.write_text("{")
    (run,) = described(place)["runs"]
    assert run["map"] is None
    assert run["columns"]  # those of the summary
    assert any("learner cannot be read" in note for note in run["notes"])
    path = place / "seed-0" / "summary.json"
    summary = json.loads(path.read_text())
    del summary["sha256"]
    write_json(path, summary | {"groups": "none"})
    _, notes = report([place], tmp_path / "out", title="t", command="c")
    assert any("summary.json is no summary of a table's run: groups is 'none'" in note for note in notes)


def test_scores_that_are_not_numbers_are_left_out(runs, tmp_path):
    place = shutil.copytree(runs / "ill", tmp_path / "ill")
    path = place / "seed-0" / "summary.json"
    summary = json.loads(path.read_text())
    del summary["sha256"]
    summary["groups"][0]["auc"]["piaget"] = math.nan
    write_json(path, summary)
    run = describe(read([place]).runs[0])
    assert run["groups"][0]["scores"]["auc"]["piaget"] is None
    assert run["groups"][0]["scores"]["auc"]["gain"] is None


def test_names_of_runs_differ(runs, tmp_path):
    for name in ("one", "two"):
        shutil.copytree(runs / "ill", tmp_path / name)
    names = [run["name"] for run in described(tmp_path)["runs"]]
    assert names == [f"january: ill ({tmp_path / name / 'seed-0'})" for name in ("one", "two")]


# --- in a browser ---


@pytest.fixture(scope="module")
def addresses(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    pages = {target: described(runs / target) for target in MEANT}
    pages["all"] = described(runs)
    bare = described(runs / "ill")
    bare["runs"][0] |= {
        "metrics": [],
        "models": [],
        "bins": [],
        "classes": [],
        "map": None,
        "columns": [],
        "tested": None,
    }
    bare["runs"][0]["groups"] = [group | {"scores": {}} for group in bare["runs"][0]["groups"]]
    pages["bare"] = bare
    pages["odd"] = described(runs / "ill")
    odd = pages["odd"]["runs"][0]
    odd |= {"map": None, "no_map": "There is no map, since.", "trees": True}
    odd["moved"] = [{"name": f"column {i}", "moves": 2.5 - i / 10} for i in range(24)]
    for i, group in enumerate(odd["groups"]):
        group["name"] = ("a long name of a hospital " * 4 if i % 2 else "x" * 80) + str(i)
    for name, data in pages.items():
        (folder / f"{name}.html").write_text(table_page(data), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in pages}


def column(browser, number):
    return browser.texts(f"#groups .table tbody tr > :nth-child({number})")


def test_groups_are_sorted_by_whatever_is_chosen(browser):
    browser.open("ill")
    browser.draw("#groups .given")
    heads = browser.texts("#groups .table thead th")
    assert heads == ["Site", "Rows", "ill=yes", "Piaget", "Simple", "Difference", "Majority", "Test rows"]
    scores = [float(text) for text in column(browser, 4)]
    assert scores == sorted(scores)  # the worst first
    assert len(scores) == 12
    before = column(browser, 1)
    browser.click("#groups .table thead th:nth-child(6) button")
    gains = [float(text.replace("\u2212", "-")) for text in column(browser, 6)]
    assert gains == sorted(gains)
    assert browser.one("#groups thead th:nth-child(6)").get_attribute("aria-sort") == "ascending"
    browser.click("#groups .table thead th:nth-child(6) button")
    assert [float(text.replace("\u2212", "-")) for text in column(browser, 6)] == sorted(gains, reverse=True)
    browser.click("#groups .table thead th:nth-child(6) button")
    assert column(browser, 1) == before


def test_another_score(browser, runs):
    browser.open("ill", view="score=loss")
    browser.draw("#groups .given")
    (run,) = described(runs / "ill")["runs"]
    losses = sorted((group["scores"]["loss"]["piaget"] for group in run["groups"]), reverse=True)
    assert column(browser, 4) == [f"{value:.3f}" for value in losses]
    assert "Worst by log-loss" in browser.texts("#groups > p.words")[0]


@pytest.mark.parametrize("target", MEANT)
@pytest.mark.parametrize(("width", "view"), [(1200, ""), (360, "theme=dark")])
def test_everything_is_drawn_named_and_fits(browser, runs, target, width, view):
    browser.open(target, view=view, width=width)
    (run,) = described(runs / target)["runs"]
    assert browser.texts("#overview .lead") == [run["metrics"][0]["verdict"]]
    trust = "coverage" if target == "stay" else "calibration"
    for figure in ("pairs", trust, "alike", "effects"):
        browser.draw(f"#{figure}")
    assert not browser.run(
        "return [...document.querySelectorAll('svg:not([aria-hidden])')]"
        ".filter((e) => e.getAttribute('role') !== 'img' || !e.getAttribute('aria-label')).length"
    )
    assert browser.run("return document.documentElement.scrollWidth") <= width
    later = ["later"] if target == "stay" else []
    sections = browser.run("return [...document.querySelectorAll('main > section')].map((e) => e.id)")
    classes = [] if target == "stay" else ["classes"]
    assert sections == ["overview", "groups", *classes, "trust", "map", "columns", *later, "words"]
    assert len(browser.texts("nav li")) == len(sections)
    assert "paper" not in browser.one("body").text.lower()


def test_names_are_text_and_reached_by_keys(browser):
    browser.open("ill")
    browser.draw("#alike")
    assert HOSTILE in [row[0] for row in browser.numbers("alike")]
    assert browser.run("return document.querySelectorAll('img, main script').length") == 0
    chart = browser.one("#alike svg[role=img]")
    from selenium.webdriver.common.keys import Keys

    seen = set()
    chart.send_keys(Keys.ARROW_DOWN)
    for _ in range(12):
        seen.add(browser.one("#tip").text)
        chart.send_keys(Keys.ARROW_RIGHT)
    seen.discard("")  # hidden for a moment, where a key scrolled
    assert len(seen) > 2
    assert all("most like" in text for text in seen)


def test_several_runs_are_chosen_from(browser):
    browser.open("all")
    names = browser.texts(".toolbar select option")
    assert names == ["january: ill", "january: length", "january: stay"]
    first = browser.texts("#overview .lead")
    browser.run(
        "const s = document.querySelector('.toolbar select'); s.value = '1';"
        "s.dispatchEvent(new Event('change', { bubbles: true }))"
    )
    browser.wait(
        "const e = document.querySelector('#overview .lead'); return e && e.textContent !== arguments[0]",
        first[0],
    )
    assert browser.run("return document.querySelector('.toolbar select').value") == "1"


def test_what_a_run_lacks_is_not_there(browser):
    browser.open("bare")
    sections = browser.run("return [...document.querySelectorAll('main > section')].map((e) => e.id)")
    assert sections == ["overview", "words"]
    assert browser.texts("#overview .lead") == ["There were no test rows to score."]


@pytest.mark.parametrize("width", [1300, 700])
def test_all_sections_are_in_sight_above(browser, width):
    """The list of sections is broken into lines, and nothing of it is cut off."""
    browser.open("stay", width=width)
    cut = browser.run(
        "const right = document.querySelector('nav .theme').getBoundingClientRect().left;"
        "const ends = [...document.querySelectorAll('nav li')].map((e) => e.getBoundingClientRect().right);"
        "return ends.filter((end) => end > right).length"
    )
    assert cut == 0
    assert not browser.one("nav .more").is_displayed()


def test_on_a_phone_an_arrow_leads_to_further_sections(browser):
    browser.open("stay", width=390)
    browser.wait("return document.querySelector('nav ul').classList.contains('after')")
    arrow = browser.one("nav .more")
    assert arrow.is_displayed()
    assert browser.run("return document.querySelector('.toolbar').offsetHeight") < 60  # it stays in sight
    arrow.click()
    browser.wait("return document.querySelector('nav ul').classList.contains('before')")
    browser.run("const e = document.querySelector('nav ul'); e.scrollLeft = e.scrollWidth")
    browser.wait("return !document.querySelector('nav ul').classList.contains('after')")
    assert not arrow.is_displayed()


def test_effects_of_three_classes_are_sizes(browser):
    """None is below 0; of a binary target, effects have a sign."""
    browser.open("length")
    browser.draw("#effects")
    marks = browser.texts("#effects svg[role=img] .tick")
    assert marks
    assert not any("\u2212" in text for text in marks)
    starts = browser.run(
        "return [...document.querySelectorAll('#effects svg[role=img] .bar')].map((e) => e.x.baseVal.value)"
    )
    assert len({round(x, 3) for x in starts}) == 1  # all begin at 0
    assert browser.texts("#effects .legend li") == [
        " in the mean of groups",
        " how much groups differ (standard deviation)",
    ]
    browser.open("ill")
    browser.draw("#effects")
    assert any("\u2212" in text for text in browser.texts("#effects svg[role=img] .tick"))


def test_bins_of_few_rows_are_faint(browser, runs):
    found = {name: described(runs / name)["runs"][0] for name in ("ill", "length")}
    counts = {name: sum(one["rows"] < 10 for one in run["bins"]) for name, run in found.items()}
    name = max(counts, key=counts.__getitem__)
    run, few = found[name], counts[name]
    assert 0 < few < len(run["bins"])
    browser.open(name)
    browser.draw("#calibration")
    assert len(browser.all("#calibration .mark.faint")) == few
    points = browser.run("return document.querySelector('#calibration .line.c0').getAttribute('d')")
    assert points.count("L") == len(run["bins"]) - few - 1
    assert "fewer than 10 rows" in browser.texts("#calibration .note")[0]


def test_groups_have_names_in_the_figure(browser):
    browser.open("ill")
    browser.draw("#pairs")
    names = browser.texts("#pairs svg[role=img] text.beside")
    assert len(names) >= 4
    assert set(names) & {f"site {i}" for i in range(12)}


def test_words_stand_beside_figures_where_there_is_room(browser):
    browser.open("ill", width=1300)
    browser.draw("#effects")
    words, panels = (
        browser.run(f"return document.querySelector('#effects {part}').getBoundingClientRect().toJSON()")
        for part in ("figcaption", ".panels")
    )
    assert words["right"] <= panels["left"]
    assert panels["right"] > 1000


@pytest.mark.parametrize("width", [1300, 1200, 1000])
def test_long_names_leave_room_for_all_columns(browser, width):
    browser.open("odd", width=width)
    browser.draw("#groups .given")
    box, inside, caption = browser.run(
        "const box = document.querySelector('#groups .scroll'); return [box.clientWidth, box.scrollWidth,"
        "box.querySelector('caption').scrollWidth]"
    )
    assert inside <= box
    assert caption <= box


def test_captions_are_as_wide_as_there_is_room(browser):
    """Also where the table is wider, and scrolls."""
    browser.open("odd", width=360)
    browser.draw("#groups .given")
    box, inside, caption = browser.run(
        "const box = document.querySelector('#groups .scroll'); return [box.clientWidth, box.scrollWidth,"
        "box.querySelector('caption').getBoundingClientRect().width]"
    )
    assert inside > box
    assert caption <= box


def test_without_a_map_it_is_said_why(browser):
    browser.open("odd")
    assert browser.texts("#map p") == ["There is no map, since."]
    assert "Map" in browser.texts("nav li")


def test_what_answers_depend_on_is_drawn_where_there_are_trees(browser):
    browser.open("odd")
    browser.draw("#moved")
    assert len(browser.all("#moved svg[role=img] .bar")) == 20
    assert "4 more are in the numbers" in browser.texts("#moved .note")[0]
    assert "with what boosted trees add" in browser.texts("#moved figcaption")[0]
    assert browser.numbers("moved")[0] == ["column 0", "2.500"]
    assert browser.texts("#effects h3") == ["What a change of a column does, as far as that is linear"]
    browser.open("stay")
    assert not browser.all("#moved")


def test_directions_of_scores_in_words(browser):
    browser.open("ill")
    assert (
        "AUC and accuracy: higher is better. Log-loss: lower is better."
        in browser.texts("#overview caption")[0]
    )
