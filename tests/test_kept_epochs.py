"""Stages that end with the best epoch on validation data."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

import piaget
from piaget.files import read_json, write_json
from piaget.method.trees import leaves, map_tree
from piaget.scoring.scores import TaskNetwork
from tests.small import binary_tasks, make_task, mixed_tasks
from tests.test_extending import Killed, assert_same, everything, killed_at

SMALL: dict[str, Any] = {
    "width": 8,
    "initial_components": 3,
    "initial_tasks": 2,
    "initial_epochs": 3,
    "batch_size": 8,
    "learning_rate": 0.05,
    "dtype": "float64",
}
DYNAMIC = piaget.Algorithm(piaget.Staged(8, 8, 1), piaget.ComponentDropout(0.02), name="dynamic")
IN_TURNS = piaget.Algorithm(piaget.Staged(9, 3, 1), piaget.ComponentDropout(-9.0), name="in turns")


def learner_of(kept_epoch: Any = "best", **settings: Any) -> piaget.Learner:
    return piaget.Learner(**(SMALL | {"algorithm": DYNAMIC} | settings), kept_epoch=kept_epoch)


def learn_all(learner: piaget.Learner, tasks: Sequence[piaget.Task], **options: Any) -> list[piaget.Row]:
    return [row for task in tasks for row in learner.learn(task, **options)]


def validation_losses(learner, task):
    """With all components, and without the last one."""
    network = TaskNetwork(learner.settings, learner.state, learner.state.records[task.name])
    data = network.encoded(task.validation)
    return [network.scores(data, learner.state.k - hide)["loss"] for hide in (0, 1)]


def seen_while_learning(learner, task, epochs):
    """What a learner that keeps the last epoch has after each: loss, own parameters, candidate."""
    seen = []

    def look(report):
        if report.stage != "assimilation":
            return
        report.score("train")  # brings the state up to date
        losses = validation_losses(learner, task)
        record = learner.state.records[task.name]
        last = {name: p[-1] for name, p in learner.state.components.items()}
        seen.append((sum(losses) / 2, map_tree(torch.clone, (record.params, last))))

    learner.learn(task, on_epoch=look)
    assert len(seen) == epochs
    return seen


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(leaves(one), leaves(other), strict=True))


def after_assimilation(learner, task):
    """The own parameters and the candidate, when adaptation begins."""
    kept = []

    def look(report):
        if report.stage == "adaptation":
            report.score("train")
            record = learner.state.records[task.name]
            kept.append(map_tree(torch.clone, record.params))

    rows = learner.learn(task, on_epoch=look)
    return kept[0], rows


def test_the_best_epoch_of_a_plain_search_is_kept():
    """Every epoch's loss computed from outside: adaptation begins with the own parameters of the best one."""
    *initial, task = mixed_tasks(3, n=20)
    last, best = learner_of("last"), learner_of()
    learn_all(last, initial)
    learn_all(best, initial)
    seen = seen_while_learning(last, task, 8)
    chosen = min(range(8), key=lambda epoch: seen[epoch][0])
    assert chosen < 7, "the test needs a best epoch before the last one"
    kept, rows = after_assimilation(best, task)
    params, _ = seen[chosen][1]
    assert same(kept, params)
    assert not same(kept, seen[7][1][0])
    (told,) = (row for row in rows if row["metric"] == "best epoch")
    assert (told["value"], told["epoch"], told["stage"]) == (chosen + 1, 8, "assimilation")


def test_the_candidate_goes_back_too_and_other_components_do_not_move():
    *initial, task = mixed_tasks(3, n=20)
    fm = {"adaptation": "fm", "algorithm": piaget.Algorithm(piaget.Staged(8, 8, 0), IN_TURNS.expansion)}
    last, best = learner_of("last", **fm), learner_of(**fm)
    learn_all(last, initial)
    learn_all(best, initial)
    before = map_tree(torch.clone, best.state.components)
    seen = seen_while_learning(last, task, 8)
    best.learn(task)
    _, (params, candidate) = min(seen, key=lambda one: one[0])
    assert same(best.state.records[task.name].params, params)
    assert same({name: p[-1] for name, p in best.state.components.items()}, candidate)
    assert same({name: p[:-1] for name, p in best.state.components.items()}, before)
    # The optimizer's numbers are those of that epoch: 3 batches an epoch move the candidate.
    chosen = [loss for loss, _ in seen].index(min(loss for loss, _ in seen)) + 1
    assert int(best.state.moments.updates[-1]) == chosen * 3


def test_first_of_equals_and_what_it_goes_by():
    def validated(*pairs):
        return [piaget.ValidationScores(gain, loss) for gain, loss in pairs]

    loss, score = piaget.BestEpoch(), piaget.BestEpoch(by="score")
    assert loss.prefers(validated((0.5, 1.0)))
    assert loss.prefers(validated((0.5, 1.0), (0.4, 0.9)))
    assert not loss.prefers(validated((0.5, 1.0), (0.9, 1.0)))
    assert score.prefers(validated((0.5, 1.0), (0.6, 2.0)))
    assert score.prefers(validated((0.5, 1.0), (0.5, 0.9)))
    assert not score.prefers(validated((0.5, 1.0), (0.4, 0.9)))
    assert not score.prefers(validated((0.5, 1.0), (0.5, 1.0)))
    with pytest.raises(piaget.SettingError, match="loss or score"):
        piaget.BestEpoch(by="accuracy")
    with pytest.raises(piaget.SettingError, match="1 or more"):
        piaget.BestEpoch(every=0)


@dataclass(frozen=True)
class Always(piaget.KeptEpoch):
    """The last epoch that is looked at is the best."""

    every: int = 1

    def prefers(self, seen):
        return True


@dataclass(frozen=True)
class First(piaget.KeptEpoch):
    """The first epoch that is looked at is the best."""

    every: int = 1

    def prefers(self, seen):
        return len(seen) == 1


def test_looking_changes_nothing():
    tasks = mixed_tasks(4, n=20)
    plain, looking = learner_of("last", algorithm=IN_TURNS), learner_of(Always(), algorithm=IN_TURNS)
    learn_all(plain, tasks)
    learn_all(looking, tasks)
    assert_same(plain, looking)


def test_every_stage_has_its_own_best_epoch_and_joint_ones_have_none():
    tasks = mixed_tasks(3, n=20)
    rows = learn_all(learner_of(First(), algorithm=IN_TURNS), tasks)
    told = [(row["epoch"], row["value"]) for row in rows if row["metric"] == "best epoch"]
    assert told == [(3, 1), (7, 5), (11, 9)]  # three of assimilation, one of adaptation, ...
    rows = learn_all(learner_of(First(every=2), algorithm=IN_TURNS), tasks)
    assert [row["value"] for row in rows if row["metric"] == "best epoch"] == [2, 6, 10]
    rows = learn_all(learner_of(First(every=50), algorithm=IN_TURNS), tasks)  # after the last, in any case
    assert [row["value"] for row in rows if row["metric"] == "best epoch"] == [3, 7, 11]
    joint = learner_of(algorithm="joint", epochs=3)
    assert not [row for row in learn_all(joint, tasks) if row["metric"] == "best epoch"]


def test_tasks_alone_are_initialized_each_with_its_own_best_epoch():
    tasks = mixed_tasks(3, n=20)
    learner = learner_of(algorithm="alone", epochs=6, initial_epochs=6)
    rows = learn_all(learner, tasks)
    told = {row["evaluated"]: row["value"] for row in rows if row["metric"] == "best epoch"}
    assert list(told) == ["task 0", "task 1", "task 2"]
    assert len(set(told.values())) > 1


def test_with_patience_it_is_early_stopping_with_the_best_parameters():
    *initial, task = mixed_tasks(3, n=20)
    algorithm = piaget.Algorithm(piaget.Staged(40, 40, 1))
    settings = {"algorithm": algorithm, "stop": piaget.Patience(3)}
    learner = learner_of(piaget.BestEpoch(by="score"), **settings)
    learn_all(learner, initial)
    rows = {row["metric"]: row for row in learner.learn(task)}
    assert 40 - rows["stopped"]["value"] == rows["best epoch"]["value"] + 3


CASES: dict[str, Callable[..., piaget.Learner]] = {
    "dynamic": lambda **s: learner_of(**s),
    "in turns": lambda **s: learner_of(piaget.BestEpoch(every=2, by="score"), algorithm=IN_TURNS, **s),
    "patience": lambda **s: learner_of(stop=piaget.Patience(2), structure="soft-ordering-scaled", **s),
    "alone": lambda **s: learner_of(algorithm="alone", epochs=5, initial_epochs=5, **s),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("epoch", [2, 5, 8])
def test_interrupted_saved_and_carried_on(name, epoch, tmp_path):
    tasks = mixed_tasks(4, n=20)
    whole, part = CASES[name](), CASES[name]()
    learn_all(whole, tasks)
    learn_all(part, tasks[:3])
    killed = True
    try:
        killed_at(epoch, part, tasks[3])
    except pytest.fail.Exception:  # it stops before
        killed = False
    part.save(tmp_path)
    part = piaget.Learner.load(tmp_path)
    assert part.settings == whole.settings
    if killed:
        part.learn(tasks[3])
    assert_same(whole, part)


def test_interrupted_while_initial_tasks_are_learned_alone(tmp_path):
    tasks = mixed_tasks(3, n=20)
    whole, part = CASES["alone"](), CASES["alone"]()
    learn_all(whole, tasks)
    part.learn(tasks[0])
    killed_at(4, part, tasks[1])
    assert part.state.progress is not None
    assert set(part.state.progress.best) == {"task 0", "task 1"}
    part.save(tmp_path)
    part = piaget.Learner.load(tmp_path)
    learn_all(part, tasks[1:])
    assert_same(whole, part)


@pytest.mark.parametrize("name", CASES)
def test_the_same_in_a_cohort(name):
    streams = [mixed_tasks(4, n=20), [*mixed_tasks(3, n=20), make_task("task 3", n=23, seed=9)]]
    alone = [CASES[name](seed=seed) for seed in range(2)]
    rows = [learn_all(learner, tasks) for learner, tasks in zip(alone, streams, strict=True)]
    together = piaget.Cohort([CASES[name](seed=seed) for seed in range(2)])
    found: list[list[piaget.Row]] = [[], []]
    for pair in zip(*streams, strict=True):
        for mine, new in zip(found, together.learn(pair), strict=True):
            mine.extend(new)
    for run in range(2):
        best = [
            [(row["trained"], row["epoch"], row["value"]) for row in some if row["metric"] == "best epoch"]
            for some in (rows[run], found[run])
        ]
        assert best[0] == best[1] != []
        theirs = everything(together.learners[run])
        for key, tensor in everything(alone[run]).items():
            torch.testing.assert_close(theirs[key], tensor, rtol=1e-7, atol=1e-9, msg=key)


@pytest.mark.slow
def test_the_same_as_machine_code():
    results = []
    for compile in ("never", "always"):
        learner = learner_of(compile=compile, seed=1)
        learn_all(learner, binary_tasks(3))
        results.append(everything(learner))
    for key, tensor in results[0].items():
        torch.testing.assert_close(results[1][key], tensor, rtol=1e-9, atol=1e-12, msg=key)


def test_it_needs_validation_data():
    task = make_task("a")
    bare = piaget.Task("a", task.kind, task.train, classes=task.classes)
    with pytest.raises(piaget.TaskError, match="no validation split, but it is to tell which epoch is kept"):
        learner_of(algorithm="joint").learn(bare)


def interrupted(folder: Path) -> dict[str, Any]:
    learner, tasks = learner_of(), mixed_tasks(3, n=20)
    learn_all(learner, tasks[:2])
    killed_at(4, learner, tasks[2])
    learner.save(folder)
    return read_json(folder / "learner.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"validated": {"task 0": [[0.5, 0.5]]}}, "epochs of task 0 were looked at"),
        ({"validated": {}}, "the best epochs of task 2 were never looked at"),
        ({"validated": {"task 2": [["high", 0.5]]}}, "expected float"),
        ({"validated": {"task 2": [[0.5]]}}, "damaged"),
        ({"candidate": False}, "not known"),
        ({"epoch": 0}, "the best epochs of task 2 were never looked at"),
    ],
)
def test_what_a_file_says_of_it_is_checked(tmp_path, change, message):
    data = interrupted(tmp_path)
    data["progress"] |= change
    write_json(tmp_path / "learner.json", data)
    with pytest.raises(piaget.LoadError, match=message):
        piaget.Learner.load(tmp_path)


def test_files_from_before_there_was_a_choice_keep_the_last_epoch(tmp_path):
    learner, tasks = learner_of("last"), mixed_tasks(3, n=20)
    learn_all(learner, tasks[:2])
    killed_at(4, learner, tasks[2])
    learner.save(tmp_path)
    data = read_json(tmp_path / "learner.json")
    assert "kept_epoch" not in data["settings"]  # as it was then
    assert data["progress"].pop("validated") == {}
    write_json(tmp_path / "learner.json", data)
    loaded = piaget.Learner.load(tmp_path)
    learner.learn(tasks[2])
    loaded.learn(tasks[2])
    assert_same(learner, loaded)


def test_interrupted_after_the_last_epoch_of_a_stage():
    """What belongs to the stage that is over does not reach the next one."""
    settings: dict[str, Any] = {"algorithm": IN_TURNS, "stop": piaget.Patience(2), "epochs": None}
    tasks = mixed_tasks(3, n=20)
    whole, part = learner_of(**settings), learner_of(**settings)
    learn_all(whole, tasks)
    learn_all(part, tasks[:2])
    for epoch in (3, 4, 7):

        def kill(report, epoch=epoch):
            if report.epoch == epoch:
                raise Killed

        with pytest.raises(Killed):
            part.learn(tasks[2], on_epoch=kill)
    part.learn(tasks[2])
    assert_same(whole, part)
