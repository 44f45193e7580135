"""Wrong calls: each is refused in plain words, and leaves the learner as it was."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
import torch

import piaget
from piaget.knowledge.snapshot import describe
from piaget.knowledge.storage import flatten
from piaget.method.choices import SETTINGS
from piaget.method.values import NUMBER
from tests.small import make_task, mixed_tasks

SMALL: dict[str, Any] = {"components": piaget.Dense(6), "initial_components": 2, "epochs": 3}
SMALL |= {"initial_tasks": 2, "batch_size": 8}
NAN, INF = float("nan"), float("inf")
ODD = [
    np.zeros(3),
    np.array(["auto", "er"]),
    torch.zeros(3),
    2.5j,
    [],
    {},
    object(),
    INF,
    NAN,
]
ODD += [10**5000, "?", b"x", True, type]
NO_COUNTS = [-1, 10**30, 2.5]


@pytest.fixture
def learner():
    learner = piaget.Learner(**SMALL)
    for task in mixed_tasks(2, n=12):
        learner.learn(task)
    return learner


def knowledge(learner):
    return {name: tensor.clone() for name, tensor in flatten(describe(learner.state)[1]).items()}


@pytest.mark.parametrize("name", [*SETTINGS, "structure", "adaptation", "algorithm"])
def test_settings(name):
    counts = name not in SETTINGS or SETTINGS[name].about.values is not NUMBER
    for odd in [*ODD, *NO_COUNTS] if counts else ODD:
        with pytest.raises(piaget.SettingError, match=f"{name}="):
            cast(Any, piaget.Learner)(**{name: odd})


PARTS = [
    piaget.Dense,
    piaget.Conv,
    piaget.Linear,
    piaget.Replay,
    piaget.KroneckerEWC,
    piaget.ComponentDropout,
]
PARTS += [piaget.Adam, piaget.SGD, piaget.CosineRate, piaget.Patience, piaget.Staged, piaget.Joint]
PARTS += [piaget.LinearEncoder, piaget.LinearDecoder]


@pytest.mark.parametrize("part", PARTS)
def test_fields_of_parts(part):
    for name, field in part.__dataclass_fields__.items():
        odd = [*ODD, None] if isinstance(field.default, float) else [*ODD, *NO_COUNTS, None]
        for value in odd:
            if type(value) is not type(field.default):  # the others are right
                with pytest.raises(piaget.SettingError, match=f"{name}="):
                    part(**{name: value})


def test_numbers_of_numpy_are_numbers(tmp_path):
    settings: Any = {
        "epochs": np.int64(5),
        "width": np.uint8(6),
        "learning_rate": np.float32(0.5),
        "seed": np.int32(3),
    }
    learner = piaget.Learner(adaptation=piaget.Replay(cast(Any, np.int64(4))), **settings)
    assert (
        learner.settings
        == piaget.Learner(adaptation=piaget.Replay(4), epochs=5, width=6, learning_rate=0.5, seed=3).settings
    )
    learner.save(tmp_path)
    assert piaget.Learner.load(tmp_path).settings == learner.settings


@pytest.mark.parametrize("given", [None, 5, "task 0", [None], [5], object()])
def test_tasks_that_are_none(learner, given):
    before = knowledge(learner)
    calls = [
        lambda: learner.evaluate(given),
        lambda: learner.learn(given),
        lambda: learner.learn(make_task("new", n=12), evaluate_on=given),
        lambda: learner.try_task(given),
        lambda: piaget.Cohort([learner]).learn(given),
        lambda: piaget.Cohort([learner]).learn([make_task("new", n=12)], evaluate_on=[given]),
    ]
    for call in calls[:2] if given is None else calls:
        with pytest.raises(piaget.TaskError, match="task"):
            call()
    assert all(torch.equal(tensor, before[name]) for name, tensor in knowledge(learner).items())


def test_nothing_to_evaluate(learner):
    with pytest.raises(piaget.TaskError, match="no task at all"):
        learner.evaluate([])


def test_cohorts():
    odd: Any
    for odd in ([], None, 5, piaget.Learner(), [5], "ab"):
        with pytest.raises(piaget.SettingError, match="nothing but learners"):
            piaget.Cohort(odd)
    cohort, tasks = (
        piaget.Cohort(piaget.Learner(**SMALL, seed=s) for s in range(2)),
        [make_task("t", n=12)] * 2,
    )
    for odd in ([], [tasks], [tasks] * 3, 5, {}):
        with pytest.raises(piaget.SettingError, match="evaluate_on: expected a list of 2"):
            cohort.learn(tasks, evaluate_on=odd)
    assert [learner.pending for learner in cohort.learners] == [[], []]


class Odd:
    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise KeyError("odd")


@pytest.mark.parametrize(
    "x",
    [
        None,
        5,
        "text",
        {},
        Odd(),
        [[1, 2], [3]],
        [["a"] * 6],
        np.zeros((2, 6)) + 1j,
        torch.zeros(2, 6) + 1j,
        torch.zeros(2, 6).to_sparse(),
        torch.zeros(2, 6, device="meta"),
        np.zeros((2, 6), "datetime64[s]"),
        np.full((2, 6), INF),
    ],
    ids=lambda x: type(x).__name__,
)
def test_inputs(learner, x):
    for ask in (learner.predict, learner.predict_proba):
        with pytest.raises(piaget.TaskError, match=r"'task 0': .*inputs"):
            ask(x, "task 0")


def test_inputs_in_any_form_of_numbers(learner):
    x = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    expected = learner.predict_proba(x, "task 0")
    for same in (x.astype(">f4"), x.astype(np.longdouble), x.tolist(), list(torch.from_numpy(x))):
        assert np.array_equal(learner.predict_proba(same, "task 0"), expected)
    assert np.array_equal(learner.predict_proba(x[::-1], "task 0"), expected[::-1])


def test_no_task_at_all(learner):
    """It would be inferred, if the learner had noted by what."""
    with pytest.raises(piaget.SettingError, match="inference"):
        learner.predict(np.zeros((1, 6)), None)
    with pytest.raises(piaget.UnknownTaskError, match="known tasks: 'task 0', 'task 1'"):
        learner.record(None)


@pytest.mark.parametrize("name", [[], 5, NAN, np.zeros(3), {}, "nobody"])
def test_names_of_tasks(learner, name):
    for ask in (lambda: learner.predict(np.zeros((1, 6)), name), lambda: learner.record(name)):
        with pytest.raises(piaget.UnknownTaskError, match="known tasks: 'task 0', 'task 1'"):
            ask()


def test_folders(learner, tmp_path):
    (tmp_path / "file").write_text("x")
    odd: Any
    for odd in (tmp_path / "file", tmp_path / "file" / "below", None, 5, [], "a\0b", tmp_path / ("x" * 5000)):
        with pytest.raises(piaget.SettingError, match="folder"):
            learner.save(odd)
        with pytest.raises(piaget.LoadError, match=r"folder|holds no learner"):
            piaget.Learner.load(odd)
    assert (tmp_path / "file").read_text() == "x"


@dataclass(frozen=True)
class Deciding(piaget.SoftOrdering):
    """An `if` on a tensor's value: nothing that can be batched."""

    name = "deciding"

    def transform(self, params, depth, mixture):
        return mixture if mixture.sum() > 0 else -mixture


@pytest.mark.parametrize("adaptation", ["er", "ewc"])
@pytest.mark.parametrize("runs", [1, 2])
def test_a_part_that_asks_for_a_tensors_value(adaptation, runs):
    """Alone, that is in replay, and where EWC takes gradients sample by sample."""
    learners = [piaget.Learner(Deciding(), adaptation, "joint", **SMALL, seed=s) for s in range(runs)]
    cohort = piaget.Cohort(learners)

    def learn_all():
        for task in mixed_tasks(3, n=12):
            cohort.learn([task] * runs)

    with pytest.raises(piaget.SettingError, match="may not use `if` on a tensor's value"):
        learn_all()


@pytest.mark.parametrize("every", [None, 1])
@pytest.mark.parametrize("at", range(1, 7))
def test_an_on_epoch_that_raises_leaves_a_learner_that_goes_on(at, every, tmp_path):
    tasks = mixed_tasks(3, n=12)
    whole, part = piaget.Learner(**SMALL), piaget.Learner(**SMALL)
    count = iter(range(1, 100))

    def fail(report):
        if next(count) == at:
            raise ZeroDivisionError

    failed = 0
    for task in tasks:
        whole.learn(task)
        try:
            part.learn(task, every=every, on_epoch=fail)
        except ZeroDivisionError:
            failed += 1
            part.save(tmp_path)
            part = piaget.Learner.load(tmp_path)
            part.learn(task)
    assert failed == 1
    ours, theirs = knowledge(whole), knowledge(part)
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
