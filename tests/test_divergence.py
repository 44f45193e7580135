"""Numbers that are not finite are noticed: while a task is learned, alone and in a cohort, and in answers."""

import pickle
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

import piaget
from piaget.knowledge.snapshot import describe
from piaget.knowledge.storage import flatten
from piaget.method import consolidation
from piaget.method.curvature import draw_labels, sample_gradients
from tests.small import binary_tasks, make_task, mixed_tasks

SMALL: dict[str, Any] = {"components": piaget.Dense(6), "initial_components": 2, "epochs": 4}
SMALL |= {"initial_tasks": 2, "batch_size": 8}


def tensors(learner):
    return {name: t.clone() for name, t in flatten(describe(learner.state)[1]).items() if name != "generator"}


def is_sound(learner):
    """Nothing in the state is NaN, or infinite where it should not be (logits of unused components)."""
    return all(
        bool(t.isfinite().all()) or (name.endswith("logits") and not bool(t.isnan().any()))
        for name, t in tensors(learner).items()
    )


def large(task: piaget.Task, factor: float, splits: tuple[str, ...]) -> piaget.Task:
    """The task, with inputs so large that computing with them overflows."""
    changed: Any = {
        name: piaget.Split(getattr(task, name).x * factor, getattr(task, name).y) for name in splits
    }
    return replace(task, **changed)


DIVERGING = [
    {"learning_rate": 1e30},
    {"learning_rate": 1e30, "structure": "soft-gating", "adaptation": "ewc", "algorithm": "joint"},
    {"learning_rate": 1e20, "optimizer": "sgd", "algorithm": "no-components"},
    {"learning_rate": 1e30, "adaptation": "nft", "stop": piaget.Patience(2)},
]


@pytest.mark.parametrize("settings", DIVERGING, ids=str)
def test_a_learner_that_diverges_says_so_and_stays_finite(settings):
    learner = piaget.Learner(**(SMALL | settings), seed=3)
    tasks = mixed_tasks(3, n=20)
    learner.learn(tasks[0])
    with pytest.raises(piaget.Diverged) as caught:
        learner.learn(tasks[1])
    error = caught.value
    assert (error.task, error.stage, error.seed) == ("task 1", "initialization", 3)
    assert 0 < error.epoch <= 4
    rate = f"smaller learning_rate than {settings['learning_rate']:g}"
    assert all(word in str(error) for word in ("'task 1'", "'initialization'", f"epoch {error.epoch}", rate))
    assert is_sound(learner)
    assert learner.tasks == []
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.epoch, again.seed) == (str(error), error.epoch, error.seed)


def test_the_state_is_the_last_finite_one():
    """The second task diverges; what was learned before answers as before."""
    good, bad = mixed_tasks(3, n=20), large(make_task("bad", n=20), 1e25, ("train", "validation", "test"))
    learner = piaget.Learner(**SMALL)
    for task in good[:2]:
        learner.learn(task)
    before = learner.predict_proba(good[0].test.x, "task 0")
    with pytest.raises(piaget.Diverged, match=r"'bad' diverged: .*'assimilation'"):
        learner.learn(bad, every=1)
    assert is_sound(learner)
    assert (learner.predict_proba(good[0].test.x, "task 0") == before).all()
    # It is as it was before that task: others can be learned, as if there had been none.
    undisturbed = piaget.Learner(**SMALL)
    for task in good[:2]:
        undisturbed.learn(task)
    for one in (learner, undisturbed):
        one.learn(good[2])
    assert (learner.predict(good[2].test.x, "task 2") == undisturbed.predict(good[2].test.x, "task 2")).all()


def test_it_is_noticed_early():
    """Of 10,000 epochs, each a single batch, only a small share is trained."""
    learner = piaget.Learner("linear", "nft", "joint", learning_rate=1e38, initial_tasks=1, compile="never")
    with pytest.raises(piaget.Diverged) as caught:
        learner.learn(binary_tasks(1)[0])
    assert caught.value.epoch <= 300
    assert learner.state.progress is None
    assert learner.tasks == learner.pending == []


# --- in company -----------------------------------------------------------------------------------------


class Notes:
    """A keeper that only notes what it is told; it keeps after every epoch."""

    def __init__(self, learners):
        self.learners, self.told = learners, []

    def due(self):
        return True

    def keep(self):
        assert all(is_sound(learner) for learner in self.learners)
        self.told.append("keep")

    def diverged(self, learner, error):
        assert is_sound(learner)
        self.told.append((learner.settings.seed, error.seed, error.task))


def trained_cohort(bad: tuple[int, ...], keeper: bool) -> tuple[piaget.Cohort, Notes, list[Any]]:
    """Four runs; in the third task, inputs of the bad ones are too large."""
    cohort = piaget.Cohort([piaget.Learner(**SMALL, seed=seed, dtype="float64") for seed in range(4)])
    streams = [
        [make_task(f"t{i}", "binary", seed=10 * seed + i, n=20) for i in range(4)] for seed in range(4)
    ]
    notes = Notes(cohort.learners)
    outcome: list[Any] = []
    for i in range(3):
        tasks: list[piaget.Task] = [tasks[i] for tasks in streams]
        for seed in bad if i == 2 else ():
            tasks[seed] = large(streams[seed][i], 1e200, ("train",))
        try:
            outcome.append(cohort.learn(tasks, keeper=notes if keeper else None))
        except piaget.Diverged as error:
            outcome.append(error)
    for seed in {0, 1, 2, 3} - set(bad):
        assert cohort.learners[seed].tasks == ["t0", "t1", "t2"]
    return cohort, notes, outcome


@pytest.mark.parametrize("bad", [(1,), (0, 3)])
def test_the_others_of_a_cohort_go_on(bad):
    whole = trained_cohort((), keeper=False)[0]
    cohort, _, outcome = trained_cohort(bad, keeper=False)
    again = trained_cohort(bad, keeper=False)[0]
    error = outcome[2]
    assert isinstance(error, piaget.Diverged)
    assert error.seed == bad[0]
    assert all(str(seed) in str(error) for seed in bad)
    for seed in range(4):
        ours, theirs, same = (tensors(c.learners[seed]) for c in (cohort, whole, again))
        assert is_sound(cohort.learners[seed])
        assert all(torch.equal(t, same[name]) for name, t in ours.items())
        if seed not in bad:
            assert all(torch.allclose(t, theirs[name], rtol=1e-7, atol=1e-9) for name, t in ours.items())


def test_a_keeper_is_told_at_once_and_nothing_is_raised():
    cohort, notes, outcome = trained_cohort((1,), keeper=True)
    rows = outcome[2]
    assert [bool(of_run) for of_run in rows] == [True, False, True, True]
    (at,) = [i for i, told in enumerate(notes.told) if told != "keep"]
    assert notes.told[at] == (1, 1, "t2")
    assert notes.told[at + 1 :] == ["keep"] * (len(notes.told) - at - 1)
    assert len(notes.told) - at > 3, "it was told when it happened, and the others were kept on"
    assert cohort.learners[1].tasks == ["t0", "t1"]


def test_a_cohort_of_which_all_diverge():
    cohort = piaget.Cohort([piaget.Learner(**SMALL, learning_rate=1e30, seed=seed) for seed in range(2)])
    tasks = mixed_tasks(2, n=20)
    cohort.learn([tasks[0]] * 2)
    with pytest.raises(piaget.Diverged, match=r"seed 0.*likewise the seeds 1"):
        cohort.learn([tasks[1]] * 2)


# --- outputs, memory, one's own parts --------------------------------------------------------------------


@dataclass(frozen=True)
class Loud(piaget.SoftOrdering):
    """Inputs that are large, but finite, come out infinite."""

    name = "loud"

    def transform(self, params, depth, mixture):
        return mixture * 1e5


def test_outputs_that_overflow_with_finite_weights():
    learner = piaget.Learner(**SMALL, structure=Loud())
    tasks = mixed_tasks(3, n=20)
    learner.learn(tasks[0])
    with pytest.raises(piaget.Diverged, match="outputs for these inputs are not finite"):
        learner.learn(large(tasks[1], 1e30, ("test",)))
    assert is_sound(learner)
    learner.learn(tasks[1])  # it is as it was before
    with pytest.raises(piaget.Diverged, match="'evaluation'"):
        learner.evaluate(large(tasks[1], 1e30, ("test",)))
    with pytest.raises(piaget.NotFinite, match="'task 1': outputs for these inputs are not finite"):
        learner.predict(tasks[1].test.x * 1e30, "task 1")


def test_candidates_are_not_judged_by_outputs_that_overflow():
    learner = piaget.Learner(**SMALL, structure=Loud())
    tasks = mixed_tasks(3, n=20)
    for task in tasks[:2]:
        learner.learn(task)
    with pytest.raises(piaget.Diverged, match="outputs for these inputs"):
        learner.learn(large(tasks[2], 1e30, ("validation",)))


def test_targets_that_are_too_large_to_learn():
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([1e30, -5e29] * 20)
    task = piaget.Task.from_arrays("huge", x, y, kind="regression", standardize=False)
    learner = piaget.Learner(**(SMALL | {"initial_tasks": 1}))
    with pytest.raises(piaget.Diverged, match="'huge'"):
        learner.learn(task)


def test_predictions_are_never_made_of_nan():
    learner = piaget.Learner(**SMALL)
    tasks = mixed_tasks(2, n=20)
    for task in tasks:
        learner.learn(task)
    learner.state.components = {n: t * float("nan") for n, t in learner.state.components.items()}
    for ask in (learner.predict, learner.predict_proba):
        with pytest.raises(piaget.NotFinite, match="'task 0': outputs"):
            ask(tasks[0].test.x, "task 0")


def test_curvature_that_overflows(monkeypatch):
    huge = lambda *args: {n: g * 1e25 for n, g in sample_gradients(*args).items()}  # noqa: E731
    monkeypatch.setattr(consolidation, "sample_gradients", huge)
    learner = piaget.Learner(**SMALL, adaptation="ewc")
    tasks = mixed_tasks(2, n=20)
    learner.learn(tasks[0])
    with pytest.raises(piaget.Diverged, match="numbers that KroneckerEWC stores are not finite"):
        learner.learn(tasks[1])
    assert is_sound(learner)
    assert learner.tasks == []


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_no_labels_are_drawn_from_what_is_no_probability(kind):
    out = torch.tensor([[0.0, 1.0, 2.0], [0.0, float("inf"), 1.0]])
    with pytest.raises(piaget.NotFinite):
        draw_labels(kind, out.roll(1, 1), torch.Generator())


NAN = float("nan")


@dataclass(frozen=True)
class WrongGradient(piaget.Replay):
    name = "wrong-gradient"

    def correct(self, context):
        return piaget.Correction(piaget.map_tree(lambda g: g * NAN, context.gradient))


@dataclass(frozen=True)
class WrongLoss(piaget.Replay):
    name = "wrong-loss"

    def losses(self, losses, outputs, replayed):
        return losses / replayed.past.logical_not()


@dataclass(frozen=True)
class WrongCounts(piaget.Replay):
    name = "wrong-counts"
    counts = ("odd",)

    def correct(self, context):
        return piaget.Correction(context.gradient, {"odd": context.step * NAN})


@dataclass(frozen=True)
class WrongMemory(piaget.Replay):
    name = "wrong-memory"

    def remember(self, memory, finished):
        return finished.store(memory, finished.sample(3), extra=torch.full((3,), NAN))


@dataclass(frozen=True)
class WrongMixture(piaget.SoftOrdering):
    name = "wrong-mixture"

    def transform(self, params, depth, mixture):
        return mixture / 0


@dataclass(frozen=True)
class WrongDraw(piaget.SoftOrdering):
    name = "wrong-draw"

    def draw(self, generator, frame):
        return {"logits": torch.full((frame.k, frame.depth), NAN)}


@dataclass(frozen=True)
class WrongRate(piaget.RateSchedule):
    def factor(self, epoch, epochs):
        return float("inf")


@pytest.mark.parametrize(
    "part",
    [
        {"adaptation": WrongGradient()},
        {"adaptation": WrongLoss()},
        {"adaptation": WrongCounts()},
        {"adaptation": WrongMemory()},
        {"structure": WrongMixture()},
        {"structure": WrongDraw()},
        {"rate_schedule": WrongRate()},
    ],
    ids=str,
)
def test_parts_of_ones_own_that_are_not_finite(part):
    learner = piaget.Learner(**(SMALL | part))

    def learn_all():
        for task in mixed_tasks(3, n=20):
            learner.learn(task)

    with pytest.raises(piaget.Diverged):
        learn_all()
    assert is_sound(learner)


def test_a_task_that_diverges_after_an_interruption_is_undone_too():
    learner, tasks = piaget.Learner(**SMALL), binary_tasks(4)
    for task in tasks[:2]:
        learner.learn(task)
    before = tensors(learner)

    def interrupt(report):
        if report.epoch == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.learn(tasks[2], on_epoch=interrupt)
    assert learner.state.progress is not None
    learner.settings = replace(learner.settings, learning_rate=1e30)
    with pytest.raises(piaget.Diverged):
        learner.learn(tasks[2])
    assert learner.state.progress is None
    assert learner.tasks == [task.name for task in tasks[:2]]
    assert all(torch.equal(t, before[name]) for name, t in tensors(learner).items())
    learner.settings = replace(learner.settings, learning_rate=1e-3)
    learner.learn(tasks[3])
    assert learner.state.before is None


def test_tasks_that_go_on_learning_are_put_back_too():
    """What is a past task's own learns from stored samples, until a later task diverges."""
    learner = piaget.Learner(**SMALL | {"epochs": 30}, algorithm="no-components", optimizer="sgd",
                             learning_rate=0.05)  # fmt: skip
    for task in binary_tasks(3, n=20):
        learner.learn(task)
    before = tensors(learner)
    bad = make_task("bad", "regression", 0, 6, n=20)
    bad.train.y.mul_(30)
    with pytest.raises(piaget.Diverged) as caught:
        learner.learn(bad, every=1)
    assert caught.value.epoch > 1  # they have learned meanwhile
    after = tensors(learner)
    assert after.keys() == before.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
