"""Groups that bend, each in its own way: what learner, data and page of a table say of it."""

import json

import numpy as np
import pandas
import pytest
import torch

import piaget
from piaget.cli import main
from piaget.lab.folder import RunFolder
from piaget.lab.table_columns import straight_weights
from piaget.prior_learner import PriorLearner
from piaget.report.page import table_page
from piaget.report.reading import read
from piaget.report.table_bends import _change, bends_of
from piaget.report.table_data import OwnReportData
from piaget.report.table_describe import report_data
from piaget.report.table_inputs import Input, inputs_of
from tests import page_schema
from tests.commands import words
from tests.sample_report import data_of

HOSTILE = '</script><img src=x onerror=alert(1)> & "age"'
KINDS = ("waves", "turns", "classes")


def table(kind, groups=12, rows=120):
    """Along the hostile column, each group is a sine of its own phase (cut into classes), or turns the weight
    of dose at its own place."""
    rng = np.random.default_rng(0)
    n = groups * rows
    age, dose, none = rng.uniform(-2, 2, size=(3, n))
    place, weight = (np.repeat(rng.normal(size=groups), rows) for _ in range(2))
    z = 2 * np.sin(2 * age + 1.5 * place) + weight * dose
    if kind == "turns":
        z = np.where(age > place, 2.0, -1.0) * dose
    z = z + 0.3 * rng.normal(size=n)
    y = 10 * z if kind != "classes" else np.select([z < -0.8, z < 0.8], ["low", "mid"], "high")
    names = np.repeat([f"g{i}" for i in range(groups - 1)] + [HOSTILE], rows)
    ward = rng.choice(["red", "green", "blue"], n, p=[0.2, 0.5, 0.3])
    columns = {"site": names, HOSTILE: 50 + 12 * age, "dose": dose, "none": none, "ward": ward, "y": y}
    return pandas.DataFrame(columns)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bends")
    for kind in KINDS:
        path = folder / f"{kind}.csv"
        table(kind).to_csv(path, index=False)
        command = words("run --group site --target y --quiet --table", path, "--out", folder / kind)
        assert main(command) == 0
    return folder


def described(folder):
    results = read([folder])
    return report_data(results.runs, results.notes, title="t", command="c")


def learner_of(runs, kind):
    return PriorLearner.load(runs / kind / "seed-0" / "learner")


@pytest.mark.parametrize("kind", KINDS)
def test_components_are_those_that_answer(runs, kind):
    learner = learner_of(runs, kind)
    known = learner.known
    assert known.bent is not None
    k = known.bent.known.scales.k
    assert learner.components == k > 0 == known.scales.k
    assert f"{k} component" in repr(learner)
    assert all(len(psi) == k for psi in learner.structures().values())
    rows = list(RunFolder(runs / kind / "seed-0").rows())
    assert [row["value"] for row in rows if row["metric"] == "components"][-1] == k
    (run,) = described(runs / kind)["runs"]
    facts = dict(run["facts"])
    assert facts["shared components"] == str(k)
    assert facts["groups bend along"].startswith(HOSTILE)


def test_components_are_those_of_settled_knowledge_before_anybody_asked():
    learner = PriorLearner()
    x = np.random.default_rng(1).uniform(-2, 2, size=(960, 2))
    place = np.repeat(np.random.default_rng(2).normal(size=8), 120)
    y = 2 * np.sin(2 * x[:, 0] + 1.5 * place)
    learner.learn_all(piaget.streams.from_arrays(x, y, groups=np.repeat(list("abcdefgh"), 120)))
    scales = learner.known.answering.scales
    assert scales is not None
    assert learner.components == scales.k > 0
    assert f"{learner.components} components" in repr(learner)


@pytest.mark.parametrize("kind", KINDS)
def test_the_map_is_of_what_answers(runs, kind):
    (run,) = described(runs / kind)["runs"]
    known, shown = learner_of(runs, kind).known.answering, run["map"]
    phi = known.components.phi.numpy()
    weights = np.stack([(psi.numpy() @ phi.T).ravel() for psi in known.coordinates().values()])
    places = np.array(shown["places"])
    for i in range(len(places)):
        far = np.linalg.norm(weights - weights[i], axis=1)
        assert np.linalg.norm(places - places[i], axis=1) == pytest.approx(far, abs=0.1 * far.max())
    told = [word for one in shown["directions"] for word in one["words"]]
    assert any(f"where {HOSTILE} is near " in word for word in told)
    what = {"waves": "y is higher", "turns": "dose raises y more", "classes": "high is more frequent"}[kind]
    assert any(word.startswith(f"{what} where") for word in told)


def test_places_in_words_are_in_order_and_in_units_of_the_table(runs):
    (run,) = described(runs / "waves")["runs"]
    for direction in run["map"]["directions"]:
        for word in direction["words"]:
            _, found, places = word.partition(" is near ")
            numbers = [float(part) for part in places.replace(" and", ",").split(",")] if found else []
            assert numbers == sorted(numbers)
            assert all(26 <= number <= 74 for number in numbers)


@pytest.mark.parametrize("kind", KINDS)
def test_curves_are_answers(runs, kind):
    """Asked once more with rows of a table: other columns at their middle."""
    (run,) = described(runs / kind)["runs"]
    bend, learner = run["bends"][0], learner_of(runs, kind)
    frame = table(kind)
    middle = {"dose": frame["dose"].median(), "none": frame["none"].median(), "ward": "green"}
    assert bend["groups"] == learner.tasks
    assert len(bend["unlike"]) == len(set(bend["unlike"])) == 6
    assert bend["places"][0] == pytest.approx(frame[HOSTILE].quantile(0.01), rel=1e-4)
    assert bend["places"][-1] == pytest.approx(frame[HOSTILE].quantile(0.99), rel=1e-4)

    def said(group, **other):
        rows = pandas.DataFrame({HOSTILE: bend["places"], **middle, **other})
        return learner.predict(rows, group) if kind != "classes" else learner.predict_proba(rows, group)

    subjects = [curve["subject"] for curve in bend["curves"]]
    assert subjects == (list(learner.labels) if kind == "classes" else [""])
    for g, group in enumerate(bend["groups"]):
        if kind == "turns":
            low, high = frame["dose"].quantile([0.1, 0.9])
            expected = [said(group, dose=high) - said(group, dose=low)]
        else:
            expected = [said(group)] if kind == "waves" else list(said(group).T)
        lines = [curve["lines"][g] for curve in bend["curves"]]
        assert np.allclose(lines, expected, rtol=1e-3, atol=1e-3)


def test_curves_are_those_of_the_groups(runs):
    """As they were made: sines of their own phases."""
    (run,) = described(runs / "waves")["runs"]
    (bend,) = run["bends"]
    place = np.random.default_rng(0)
    place.uniform(-2, 2, size=(3, 12 * 120))
    phases = 1.5 * place.normal(size=12)
    age = (np.array(bend["places"]) - 50) / 12
    for line, phase in zip(bend["curves"][0]["lines"], phases, strict=True):
        assert np.abs(np.array(line) - 20 * np.sin(2 * age + phase)).mean() < 3


def test_sentences(runs):
    (waves,) = described(runs / "waves")["runs"][0]["bends"]
    assert waves["words"].startswith(f"Each site bends along {HOSTILE} in its own way")
    assert (waves["title"], waves["drawn"], waves["note"]) == (f"Along {HOSTILE}", "y", "")
    turns = described(runs / "turns")["runs"][0]["bends"][0]
    assert turns["words"] == f"How much dose counts changes along {HOSTILE}, for each site in its own way."
    assert turns["drawn"].startswith("change of y, from dose = \N{MINUS SIGN}1.")
    classes = described(runs / "classes")["runs"][0]["bends"][0]
    assert classes["drawn"] == "the probability of y"


def test_a_category_comes_in_place_of_the_most_frequent_other(runs):
    learner = learner_of(runs, "waves")
    x = torch.cat([record.x.double() for record in learner.known.records.values()])
    inputs = inputs_of(learner, x.shape[1])
    names = [one.name for one in inputs]
    middle = torch.zeros(len(names), dtype=torch.float64)
    for level, before in (("red", "green"), ("green", "blue")):
        change = _change(learner, x, middle, names.index(f"ward={level}"), inputs)
        assert change.words == f"from ward={before} to ward={level}"
        own = slice(names.index("ward=blue"), names.index("ward=blue") + 3)
        assert change.before[own].sum() == change.after[own].sum() == 1
        assert change.before[names.index(f"ward={before}")] == 1
        assert change.after[names.index(f"ward={level}")] == 1


def test_what_is_left_out_is_said(runs, monkeypatch):
    monkeypatch.setattr("piaget.report.table_bends.GROUPS", 5)
    monkeypatch.setattr("piaget.report.table_bends.CLASSES", 2)
    bend = bends_of(learner_of(runs, "classes"), "y", "site")[0]
    assert len(bend["groups"]) == 4
    assert len(bend["curves"]) == 2
    assert bend["note"] == (
        "Of 3 classes, the 2 in which groups differ most are drawn. Of 12 groups, 4 can be chosen."
    )


def test_dates_are_told_as_dates():
    one = Input("day", "number", "", 20_000.0, 10.0, True)
    assert one.told(1.0) == "2024-10-14"
    assert one.axis == "day, in days since 1970"


def test_lines_come_nearest_to_bends(runs):
    """Of a regression without trees, over all rows: what least squares draw through its answers."""
    learner = learner_of(runs, "waves")
    known = learner.known
    assert known.answering.correction is None
    x = torch.cat([record.x.double() for record in known.records.values()])
    features = known.standard_frame.features(x)
    weights = straight_weights(known)
    for number, task in enumerate(known.tasks):
        said = known.standard_frame.targets(learner.answered(x, task).values.double())
        line = torch.linalg.lstsq(features, said[:, None], driver="gelsd").solution[1:, 0]
        numbers = slice(0, 3)  # of categories, only differences are known
        assert torch.allclose(weights[number, 0, numbers], line[numbers], atol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_data_are_what_their_types_say(runs, kind):
    data = described(runs / kind)
    page_schema.check(data, OwnReportData)
    page = table_page(data)
    assert data_of(page) == json.loads(json.dumps(data))
    assert HOSTILE not in page


# --- in a browser ---


@pytest.fixture(scope="module")
def addresses(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for kind in KINDS:
        (folder / f"{kind}.html").write_text(table_page(described(runs / kind)), encoding="utf-8")
    return {kind: (folder / f"{kind}.html").as_uri() for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("width", "view"), [(1200, ""), (360, "theme=dark")])
def test_bends_are_drawn(browser, runs, kind, width, view):
    browser.open(kind, view=view, width=width)
    browser.draw("#bend0")
    (run,) = described(runs / kind)["runs"]
    bend = run["bends"][0]
    assert len(browser.all("#bend0 svg[role=img]")) == len(bend["curves"])
    assert len(browser.all("#bend0 svg[role=img] .line")) == 6 * len(bend["curves"])
    assert bend["words"] in browser.one("#bend0 figcaption").text
    assert len(browser.texts("#bend0 .legend li")) == 6
    assert browser.run("return document.querySelectorAll('img, main script').length") == 0
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_a_group_is_chosen(browser, runs):
    (run,) = described(runs / "waves")["runs"]
    (bend,) = run["bends"]
    number = len(bend["groups"]) - 1
    browser.open("waves", view=f"bend0-group={number}")
    browser.draw("#bend0")
    assert [text.strip() for text in browser.texts("#bend0 .legend li")] == [HOSTILE]
    assert len(browser.all("#bend0 .line.faint")) == 6 - (number in bend["unlike"])
    numbers = browser.numbers("bend0")
    shown = [float(row[1].replace("\N{MINUS SIGN}", "-")) for row in numbers]
    assert shown == pytest.approx(bend["curves"][0]["lines"][number][: len(shown)], abs=0.06)
