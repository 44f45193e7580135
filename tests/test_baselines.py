"""The baselines: what they are called, how they go with others; what version 0.1 wrote of the one it had."""

import json
from pathlib import Path

import pytest

import piaget
from piaget.files import read_json, write_json
from piaget.lab.folder import RunFolder
from piaget.method.choices import upgraded_algorithm
from piaget.method.description import from_json, to_json
from piaget.paper.names import BASES, COMPARED, Method, methods, paper_methods
from piaget.report.reading import read
from tests.commands import said, words
from tests.small import binary_tasks, mixed_tasks

RUN = "run digits --option tasks=5 --option train_size=30 --epochs 4 --quiet"


def as_0_1(folder: Path) -> None:
    """A run's files as version 0.1 wrote them, in which past tasks' own parameters never learned."""
    described = read_json(folder / "run.json")
    learner = described["learner"]
    learner["algorithm"]["schedule"].pop("past")
    for named in (described["configuration"], learner["algorithm"]):
        key = "algorithm" if "algorithm" in named else "name"
        named[key] = named[key].replace("-frozen", "")
    described["rows"] = None
    text = (folder / "rows.csv").read_text()
    (folder / "rows.csv").write_text(text.replace("no-components-frozen", "no-components"))
    write_json(folder / "run.json", described)


def test_methods_that_go_together():
    """Tasks alone once; what only repeats another method not at all."""
    every = methods("soft-ordering", BASES, COMPARED)
    assert len(every) == 14 + 2
    assert set(every) - set(paper_methods("soft-ordering")) == {
        Method("er", "no-components-frozen"),
        Method("fm", "alone"),
    }
    assert [m.algorithm for m in methods("soft-ordering", ["er"], COMPARED)] == list(COMPARED)
    linear = {m.algorithm for m in methods("linear", BASES, COMPARED)}
    assert linear == {"compositional", "joint", "no-components", "alone"}


def test_tasks_alone_share_nothing():
    """What is learned of a task does not depend on the others, but for what was drawn for it."""
    learner = piaget.Learner(algorithm="alone", components=piaget.Dense(8), epochs=3, initial_tasks=2, seed=1)
    assert learner.settings.method == "alone/fm/alone"
    tasks = binary_tasks(4)
    rows = [row for task in tasks for row in learner.learn(task)]
    assert {row["value"] for row in rows if row["metric"] == "components"} == {0}
    before = {task.name: learner.predict_proba(task.test.x, task.name) for task in tasks[:3]}
    learner.learn(binary_tasks(5)[4])
    for task in tasks[:3]:
        assert (learner.predict_proba(task.test.x, task.name) == before[task.name]).all()
    assert learner.try_task(binary_tasks(6)[5])


def test_a_single_linear_model_has_one_output():
    learner = piaget.Learner("linear", algorithm="alone", epochs=2, initial_tasks=1)
    with pytest.raises(piaget.SettingError, match="a single linear model has one output"):
        learner.learn(mixed_tasks(1)[0])


@pytest.mark.parametrize(
    ("adaptation", "name", "past"), [("er", "no-components-frozen", False), ("nft", "no-components", True)]
)
def test_settings_of_version_0_1(adaptation, name, past):
    """What makes no difference keeps its name."""
    now = piaget.Learner(adaptation=adaptation, algorithm=name).settings
    written = to_json(now)
    written["algorithm"]["name"] = "no-components"
    written["algorithm"]["schedule"].pop("past")
    settings = from_json(json.loads(json.dumps(written)), {})
    assert settings == now
    assert settings.algorithm.schedule == piaget.Joint(100, past=past)


def test_other_algorithms_are_as_they_were():
    for algorithm in ("joint", "dynamic", "no-components"):
        described = to_json(piaget.Learner(algorithm=algorithm).settings)
        assert upgraded_algorithm(described["algorithm"], described["adaptation"]) == described["algorithm"]
    joint = {"part": "Algorithm", "name": "joint", "schedule": {"part": "Joint", "epochs": 3}}
    assert upgraded_algorithm(joint, {"part": "Replay"})["name"] == "joint"
    assert upgraded_algorithm("mine", None) == "mine"


def test_a_run_of_version_0_1_has_the_present_name(tmp_path, capsys):
    out = tmp_path / "old"
    assert said(capsys, *words(RUN, "--algorithm", "no-components-frozen", out=out)).code == 0
    as_0_1(out / "seed-0")
    run = RunFolder(out / "seed-0")
    assert run.description["configuration"]["algorithm"] == "no-components-frozen"
    assert {row["method"] for row in run.rows()} == {"monolithic/er/no-components-frozen"}
    (reported,) = read([out]).runs
    assert reported.method == "monolithic/er/no-components-frozen"
    code, _, error = said(capsys, *words(RUN, "--algorithm", "no-components", out=out))
    assert code == 2
    assert "'no-components-frozen' there, 'no-components' now" in error
