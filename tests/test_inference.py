"""Inference of tasks: scores against closed forms, the rate of false alarms, files, and wrong calls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import piaget
from piaget.knowledge import noting
from piaget.method.inference import INFERENCES, _signs
from piaget.scoring.inferring import Recognition
from piaget.scoring.rows import taken_for
from tests.small import held_out_of, make_task, mixed_tasks

if TYPE_CHECKING:
    from tests.small import Complete

SMALL: dict[str, Any] = {
    "components": piaget.Dense(5),
    "initial_components": 2,
    "epochs": 2,
    "initial_tasks": 2,
}
METHODS = [name for name, part in INFERENCES.items() if part.notes]
WRITTEN = Path(__file__).parent / "written_by_0_1"


def cloud(name: str, center: float, n: int = 60, kind: str = "binary", seed: int = 0) -> Complete:
    """A task whose inputs lie around a point of their own."""
    task = make_task(name, kind, 2, 6, n=n, seed=seed)
    for _, split in task.splits():
        split.x.add_(center)
    return task


def learned(tasks, **settings) -> piaget.Learner:
    learner = piaget.Learner(**(SMALL | settings))
    for task in tasks:
        learner.learn(task)
    return learner


def clouds(n: int = 60, kind: str = "binary") -> list[Complete]:
    return [cloud(f"at {center}", center, n, kind, seed=center) for center in (0, 6, 12)]


# --- which task? --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers_in_one_form(method, tmp_path):
    tasks = clouds()
    learner = learned(tasks, inference=method)
    learner.save(tmp_path)
    x = held_out_of(tasks[1]).x
    for one in (learner, piaget.Learner.load(tmp_path)):
        each, together = one.infer(x), one.infer(x, together=True)
        assert each.tasks == [task.name for task in tasks]
        assert (each.scores.shape, each.p_values.shape) == ((60, 3), (60, 3))
        assert (len(each.answers), len(together.answers)) == (60, 1)
        assert np.isfinite(each.scores).all()
        assert (each.p_values > 0).all()
        assert (each.p_values <= 1).all()
        assert set(each.answers) <= {*each.tasks, None}
        forced = one.infer(x, false_alarm=0)
        best = [each.tasks[i] for i in each.scores.argmax(1)]
        assert forced.answers == best


@pytest.mark.parametrize("method", ["inputs", "encoded"])
def test_clouds_that_lie_apart_are_told_apart(method):
    tasks = clouds()
    learner = learned(tasks, inference=method)
    for task in tasks:
        x = held_out_of(task).x
        answers = learner.infer(x).answers
        # Of a task's own inputs, about one in twenty is taken for none.
        assert sum(answer == task.name for answer in answers) >= 50
        assert learner.infer(x, together=True).answers == [task.name]


def test_what_is_far_from_all_tasks_is_of_none():
    learner = learned(clouds(), inference="inputs")
    far = torch.full((12, 6), 100.0)
    assert learner.infer(far).answers == [None] * 12
    assert learner.infer(far, together=True).answers == [None]
    assert learner.predict(far).tolist() == [None] * 12
    assert learner.predict_proba(far) == [None] * 12
    assert None not in learner.infer(far * 1e4, false_alarm=0).answers
    assert None not in learner.infer(far * 1e4, together=True, false_alarm=0).answers


def test_a_task_whose_inputs_have_another_shape_is_out():
    tasks = mixed_tasks(4)  # of 6, 5, 6 and 7 features
    learner = learned(tasks, inference="inputs")
    inferred = learner.infer(held_out_of(tasks[1]).x)
    assert set(inferred.answers) <= {"task 1", None}
    assert (inferred.scores[:, [0, 2, 3]] == -math.inf).all()
    assert (inferred.p_values[:, [0, 2, 3]] == 0).all()
    assert learner.infer(torch.ones(3, 9)).answers == [None] * 3
    assert learner.infer(torch.ones(3, 9), together=True, false_alarm=0).answers == [None]


def test_predictions_are_those_of_the_inferred_task():
    tasks = clouds()
    learner = learned(tasks, inference="inputs")
    x = torch.cat([held_out_of(task).x[:9] for task in tasks])
    answers = learner.infer(x).answers
    told, likely = learner.predict(x), learner.predict_proba(x)
    for i, name in enumerate(answers):
        if name is None:
            assert told[i] is None
            assert likely[i] is None
        else:
            assert told[i] == learner.predict(x[i : i + 1], name)[0]
            expected = learner.predict_proba(x[i : i + 1], name)[0]
            assert list(likely[i].values()) == pytest.approx(expected.tolist(), abs=1e-6)
    together = learner.predict(held_out_of(tasks[2]).x, together=True)
    assert (together == learner.predict(held_out_of(tasks[2]).x, tasks[2].name).numpy()).all()


def test_regressions_are_told_apart_by_their_inputs():
    tasks = clouds(kind="regression")
    learner = learned(tasks, inference="inputs")
    x = held_out_of(tasks[0]).x
    assert learner.infer(x, together=True).answers == ["at 0"]
    told = learner.predict(x, together=True)
    assert told.tolist() == pytest.approx(np.asarray(learner.predict(x, "at 0")).tolist())


# --- against closed forms -----------------------------------------------------------------------------------


def test_the_density_is_that_of_a_mixture_of_students_t():
    task = make_task("one", "multiclass", 3, 4, n=40, seed=3)
    learner = learned([task, make_task("two", "binary", 2, 5)], inference="inputs")
    note = learner.record("one").note
    assert note is not None
    x = held_out_of(task).x[:7]
    scores = Recognition(learner.settings, learner.state, learner.tasks).scores_of(learner.record("one"), x)
    covariance, n = note["covariance"].numpy(), int(note["count"])
    train = task.train
    for i, point in enumerate(x.numpy()):
        density = 0.0
        for c in range(3):
            rows = train.x[train.y == c].numpy()
            offset = point - rows.mean(0)
            distance = offset @ np.linalg.inv(covariance) @ offset
            log = math.lgamma((n + 4) / 2) - math.lgamma(n / 2) - 2 * math.log(n * math.pi)
            log -= np.linalg.slogdet(covariance)[1] / 2 + (n + 4) / 2 * math.log1p(distance / n)
            density += len(rows) / n * math.exp(log)
        assert float(scores[i]) == pytest.approx(math.log(density), abs=1e-9)


def test_the_covariance_is_shrunk_towards_that_of_earlier_tasks():
    tasks = [make_task(f"t{i}", "binary", 2, 4, n=40, seed=i) for i in range(2)]
    learner = learned(tasks, inference="inputs")
    first, second = (learner.record(task).note for task in tasks)
    assert first is not None
    assert second is not None
    train = tasks[1].train
    residuals = torch.cat([train.x[train.y == c] - train.x[train.y == c].mean(0) for c in (0, 1)])
    expected = (residuals.T @ residuals + 4 * first["covariance"]) / (40 + 4)
    off_diagonal = ~torch.eye(4, dtype=torch.bool)
    assert torch.allclose(second["covariance"][off_diagonal], expected[off_diagonal], atol=1e-12)
    assert torch.allclose(second["covariance"], expected, rtol=2e-3, atol=1e-6)


def test_the_projection_is_the_same_for_ever():
    """Signs are the highest bits of splitmix64, written plainly."""
    whole = 2**64 - 1

    def sign(place: int) -> float:
        z = place * 0x9E3779B97F4A7C15 & whole
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & whole
        z = (z ^ z >> 27) * 0x94D049BB133111EB & whole
        return 1.0 - 2.0 * (z >> 63)

    expected = [[sign(1 + row * 4 + column) for column in range(4)] for row in range(30)]
    assert torch.equal((_signs(30, 4) * math.sqrt(30)).round(), torch.tensor(expected, dtype=torch.float64))
    assert abs(float(_signs(500, 64).sum()) * math.sqrt(500)) < 4 * math.sqrt(500 * 64)


# --- false alarms -------------------------------------------------------------------------------------------


def test_false_alarms_are_as_rare_as_is_said():
    """The share of a task's own inputs that are taken for none is at most the rate, for one and for ten."""
    tasks = [make_task(f"t{i}", "binary", 2, 6, n=400, seed=i) for i in range(2)]
    learner = learned(tasks, inference="inputs")
    g = torch.Generator().manual_seed(9)
    x = torch.randn(20_000, 6, generator=g, dtype=torch.float64)
    x[:, 0] = 0  # as in the task's data
    recognition = Recognition(learner.settings, learner.state, ["t0"])
    scores = recognition.scores(x)
    for rate in (0.05, 0.2):
        alone = (recognition.of_each(scores)[1] <= rate).double().mean()
        tens = (recognition.of_groups(scores.view(-1, 10, 1))[1] <= rate).double().mean()
        # Held-out scores are 400 draws: their quantile has an error of sqrt(rate (1 - rate) / 400).
        assert abs(float(alone) - rate) < 3.5 * math.sqrt(rate * (1 - rate) / 400)
        assert abs(float(tens) - rate) < 0.09


def test_p_values_count_held_out_samples():
    learner = learned(clouds(), inference="inputs")
    note = learner.record("at 0").note
    assert note is not None
    held = note[noting.HELD]
    recognition = Recognition(learner.settings, learner.state, ["at 0"])
    _, p_values = recognition.of_each(torch.stack([held[4], held[0] - 1, held[-1] + 1])[:, None])
    assert p_values[:, 0].tolist() == pytest.approx([6 / 61, 1 / 61, 1.0])


def test_without_validation_data_every_fifth_sample_is_held_out():
    task = make_task("t", "binary", 2, 6, n=50)
    alone = piaget.Task("t", "binary", task.train, None, task.test, classes=2)
    learner = learned([alone, make_task("u", "binary", 2, 6)], inference="inputs", algorithm="compositional")
    note = learner.record("t").note
    assert note is not None
    assert len(note[noting.HELD]) == 10
    assert int(note["count"]) == 40


# --- rows ---------------------------------------------------------------------------------------------------


def test_rows_of_the_task_agnostic_setting():
    tasks = clouds()
    learner = learned(tasks, inference="inputs")
    new = cloud("far", 40, seed=8)
    rows = learner.evaluate([*tasks, new], infer=True)
    values = {(row["evaluated"], row["metric"]): row["value"] for row in rows}
    for task in tasks:
        x, name = held_out_of(task).x, task.name
        forced = learner.infer(x, false_alarm=0).answers
        assert values[name, "task inferred"] == np.mean([answer == name for answer in forced])
        assert values[name, "task inferred in tens"] == 1.0
        none = [answer is None for answer in learner.infer(x).answers]
        assert values[name, "false alarms"] == np.mean(none)
        answers = learner.infer(x).answers
        taken = {name: answers.count(name) / len(answers) for name in answers if name is not None}
        assert {taken_for(m): v for (t, m), v in values.items() if t == name and taken_for(m)} == taken
        assert sum(taken.values()) + values[name, "false alarms"] == pytest.approx(1)
        assert values[name, "accuracy with task inferred in tens"] == pytest.approx(values[name, "accuracy"])
        right = [
            learner.predict(x[i : i + 1], answer)[0] == held_out_of(task).y[i]
            for i, answer in enumerate(forced)
        ]
        assert values[name, "accuracy with task inferred"] == pytest.approx(np.mean(right))
    assert values["far", "unknown auc"] > 0.98
    assert values["far", "unknown noticed"] == 1.0
    assert not [metric for task, metric in values if task == "far" and taken_for(metric)]
    assert learner.evaluate(tasks) == [
        row for row in rows if (row["evaluated"], row["metric"]) in PLAIN(tasks)
    ]


def PLAIN(tasks):
    names = [*(task.name for task in tasks), ""]
    return {(name, metric) for name in names for metric in ("accuracy", "loss", "auc", "components")}


# --- the same everywhere, and neutral -----------------------------------------------------------------------


def test_a_cohort_notes_the_same():
    tasks, settings = clouds(), SMALL | {"inference": "inputs"}
    cohort = piaget.Cohort([piaget.Learner(**settings, seed=seed) for seed in (0, 1)])
    for task in tasks:
        cohort.learn([task, task])
    alone = learned(tasks, inference="inputs", seed=1)
    for task in tasks:
        one, other = cohort.learners[1].record(task).note, alone.record(task).note
        assert one is not None
        assert other is not None
        assert all(torch.equal(one[name], other[name]) for name in one)


def test_it_changes_nothing_else():
    tasks = clouds()
    plain, noting_too = learned(tasks), learned(tasks, inference="features")
    for name, stack in plain.state.components.items():
        assert torch.equal(stack, noting_too.state.components[name])
    assert plain.state.generator.get_state().equal(noting_too.state.generator.get_state())
    assert all(record.note is None for record in plain.state.records.values())


def test_learners_of_version_0_1_say_what_is_missing():
    learner = piaget.Learner.load(WRITTEN / "learners" / "soft-ordering-er" / "finished")
    shape = learner.record(learner.tasks[0]).input_shape
    with pytest.raises(piaget.SettingError, match="note_inputs"):
        learner.infer(torch.ones(2, *shape))
    from tests.test_older_versions import mixed

    tasks = [task for task in mixed() if task.name in learner.tasks]
    learner.note_inputs(tasks)
    assert learner.infer(held_out_of(tasks[1]).x, together=True).answers == [tasks[1].name]


def test_notes_are_made_later_and_in_another_way(tmp_path):
    tasks = clouds()
    learner = learned(tasks)
    with pytest.raises(piaget.SettingError, match="inference='inputs'"):
        learner.infer(held_out_of(tasks[0]).x)
    learner.note_inputs(tasks[:2])
    with pytest.raises(piaget.SettingError, match="of task 'at 12' nothing was noted"):
        learner.predict(held_out_of(tasks[0]).x)
    learner.note_inputs(tasks[2])
    beside = learned(tasks, inference="inputs")
    x = held_out_of(tasks[1]).x
    assert learner.infer(x).answers == beside.infer(x).answers
    learner.note_inputs(tasks, "energy")
    assert learner.settings.inference == piaget.Energy()
    learner.save(tmp_path)
    assert piaget.Learner.load(tmp_path).infer(x).answers == learner.infer(x).answers


def test_notes_do_not_depend_on_later_tasks():
    tasks = clouds()
    learner = learned(tasks, inference="inputs")

    def notes():
        return [dict(record.note or {}) for record in learner.state.records.values()]

    before = notes()
    learner.note_inputs(tasks)
    for old, new in zip(before, notes(), strict=True):
        assert old
        assert all(torch.equal(old[name], tensor) for name, tensor in new.items())


def test_no_input_at_all():
    learner = learned(clouds(), inference="inputs")
    assert learner.infer(np.zeros((0, 6))).answers == []
    with pytest.raises(piaget.TaskError, match="there is no input"):
        learner.infer(np.zeros((0, 6)), together=True)


@dataclass(frozen=True)
class Nearest(piaget.Inference):
    """Of one's own: minus the distance to the mean of the task's inputs."""

    power: float = 1.0
    name = "nearest"
    comparable = True

    def fit(self, seen, y, earlier):
        return {"center": seen.given.mean(0)}

    def scores(self, noted, seen):
        return -((seen.given - noted["center"]).norm(dim=1) ** self.power)


def test_a_method_of_ones_own(tmp_path):
    tasks = clouds()
    learner = learned(tasks, inference=Nearest())
    learner.save(tmp_path)
    with pytest.raises(piaget.LoadError, match="inference="):
        piaget.Learner.load(tmp_path)
    with pytest.raises(piaget.LoadError, match="power"):
        piaget.Learner.load(tmp_path, inference=Nearest(2.0))
    again = piaget.Learner.load(tmp_path, inference=Nearest())
    assert again.infer(held_out_of(tasks[1]).x, together=True).answers == ["at 6"]


# --- wrong calls --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hook", "returned", "message"),
    [
        ("scores", 0.5, r"Odd\.scores returned 0\.5; expected a tensor of shape \(20,\)"),
        ("scores", torch.zeros(20, 1), r"Odd\.scores returned shape \(20, 1\); expected a tensor"),
        ("fit", None, r"Odd\.fit returned None; expected a dictionary of tensors"),
    ],
)
def test_a_method_of_ones_own_that_returns_something_else(hook, returned, message):
    odd = type("Odd", (Nearest,), {hook: lambda self, *given: returned})()
    learner = piaget.Learner(inference=odd, initial_tasks=1, epochs=2, width=8)
    with pytest.raises(piaget.SettingError, match=message):
        learner.learn(make_task("t", "binary", n=20))


def test_wrong_calls():
    tasks = clouds()
    learner = learned(tasks, inference="inputs")
    x = held_out_of(tasks[0]).x
    with pytest.raises(piaget.SettingError, match="no task has been learned"):
        piaget.Learner(inference="inputs").infer(x)
    wrong: list[Any] = [1, -0.1, "a", True]
    for rate in wrong:
        with pytest.raises(piaget.SettingError, match="expected a share"):
            learner.infer(x, false_alarm=rate)
    with pytest.raises(piaget.SettingError, match="together=True"):
        learner.predict(x, "at 0", together=True)
    with pytest.raises(piaget.TaskError, match="finite"):
        learner.infer(x * math.nan)
    with pytest.raises(piaget.UnknownTaskError, match="'new' is not known"):
        learner.note_inputs(make_task("new"))
    with pytest.raises(piaget.TaskError, match="not those of the task that was learned"):
        learner.note_inputs(make_task("at 0", "binary", 2, 4))
    with pytest.raises(piaget.SettingError, match="notes nothing"):
        learner.note_inputs(tasks, "none")
    with pytest.raises(piaget.TaskError, match="a regression's outputs tell nothing"):
        learned(clouds(kind="regression"), inference="energy")
    with pytest.raises(piaget.SettingError, match="inference='x'"):
        piaget.Learner(inference="x")
    assert learner.infer(x, together=True).answers == ["at 0"]


def test_a_prior_learner_says_that_it_cannot():
    rows = [{"g": g, "a": i % 7, "y": i % 7 + 0.5 * (i % 3)} for g in "pq" for i in range(30)]
    stream = piaget.streams.from_table(rows, group="g", target="y")
    learner = piaget.PriorLearner()
    for task in stream:
        learner.learn(task)
    for call in (learner.infer, learner.predict, learner.predict_proba):
        with pytest.raises(piaget.SettingError, match="not how its inputs are distributed"):
            call([{"a": 1}])


def test_damaged_notes_are_refused(tmp_path):
    from piaget.knowledge.snapshot import describe
    from tests.test_hostile_files import described, write

    learner = learned(clouds(), inference="inputs")
    data, tensors = described(learner)
    assert describe(learner.state)[1]["notes"].keys() == {"0", "1", "2"}
    covariance = tensors["notes/1/covariance"]
    changes = {
        "is not what Density notes": {"notes/1/covariance": -covariance},
        "not what Density": {"notes/1/covariance": covariance[:4, :4].contiguous()},
        "Density notes": {"notes/1/weight": tensors["notes/1/weight"].float()},
        "numbers in order": {"notes/1/held": tensors["notes/1/held"].flip(0).contiguous()},
        "is not finite": {"notes/1/mean": tensors["notes/1/mean"] * math.nan},
    }
    for message, change in changes.items():
        write(tmp_path, data, tensors | change)
        with pytest.raises(piaget.LoadError, match=message):
            piaget.Learner.load(tmp_path)
    write(tmp_path, data | {"settings": data["settings"] | {"inference": {"part": "NoInference"}}}, tensors)
    with pytest.raises(piaget.LoadError, match="nothing can have been noted"):
        piaget.Learner.load(tmp_path)


# --- what scores do not depend on ---------------------------------------------------------------------------


def pictures(name: str, level: int, brightest: int | None = None) -> piaget.Task:
    rng = np.random.default_rng(level)
    x = rng.normal(level, 3, size=(100, 1, 2, 2)).astype(np.uint8)
    if brightest is not None:
        x[0, 0, 0, 0] = brightest
    return piaget.Task.from_arrays(name, x, np.arange(100) % 2)


@pytest.mark.parametrize("brighter", [None, "dim", "light"])
def test_bytes_are_compared_as_bytes(brighter):
    """Though each task divides them by the largest that it has seen."""
    tasks = [
        pictures(name, level, 255 if name == brighter else None)
        for name, level in (("dim", 50), ("light", 56))
    ]
    learner = learned(tasks, inference="inputs")
    for task in tasks:
        x = task.train.x[task.train.x.flatten(1).max(1).values < 255]
        assert learner.infer(x).answers.count(task.name) > 0.8 * len(x)


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6])
def test_columns_in_small_units_tell_tasks_apart(unit):
    """Beside others in large ones; and a column that never varies is no reason for certainty."""
    rng = np.random.default_rng(0)
    x = np.stack([rng.normal(size=200) * unit, rng.normal(size=200) * 0.1, np.full(200, 7.0)], 1)
    x[100:, 1] += 1
    tasks = piaget.streams.from_arrays(x, np.arange(200) % 2, groups=np.repeat(["a", "b"], 100))
    learner = learned(tasks, inference="inputs")
    assert learner.infer(x[:100], false_alarm=0).answers.count("a") > 98
    assert learner.infer(x[100:], false_alarm=0).answers.count("b") > 98


def test_tasks_are_noted_in_the_order_in_which_they_were_learned():
    tasks = clouds()
    scores = [learned(tasks, inference="inputs").infer(tasks[1].train.x).scores for _ in range(2)]
    learner = learned(tasks)
    for given in (tasks[::-1], tasks):
        learner.note_inputs(given, "inputs")
        scores.append(learner.infer(tasks[1].train.x).scores)
    for other in scores[1:]:
        np.testing.assert_array_equal(other, scores[0])


def test_without_validation_data_every_class_is_noted():
    """Also if classes take turns."""
    x = np.random.default_rng(0).normal(size=(100, 3)) + 10 * (np.arange(100) % 5)[:, None]
    train = piaget.Split(torch.as_tensor(x), torch.arange(100) % 5)
    task = piaget.Task("turns", "multiclass", train, classes=5)
    learner = learned([task], inference="inputs", initial_tasks=1, algorithm="compositional")
    note = learner.state.records["turns"].note
    assert note is not None
    assert note["weight"].tolist() == [0.2] * 5
    assert len(note[noting.HELD]) == 20


class Known(Recognition):
    """Of tasks of which nothing is known but how held-out samples score."""

    def __init__(self, held: torch.Tensor) -> None:
        object.__setattr__(self, "scored", held.sort().values)
        object.__setattr__(self, "tasks", ["a"])
        object.__setattr__(self, "settings", learned(clouds()[:2], inference="inputs").settings)

    @property
    def _held(self):
        return [self.scored]  # type: ignore[attr-defined]


def test_inputs_that_repeat_are_ties():
    """Up to the rounding with which they are computed."""
    held = torch.arange(4).repeat(25).double()
    noise = torch.tensor([-1e-13, 1e-13]).repeat(50)
    p_values = Known(held).of_each(held[:, None] + noise[:, None])[1]
    assert sorted(set(p_values[:, 0].tolist())) == [26 / 101, 51 / 101, 76 / 101, 1.0]


@pytest.mark.parametrize(("held", "refused"), [(18, False), (19, True)])
def test_how_many_held_out_samples_refuse_an_input(held, refused):
    known = Known(torch.arange(held).double())
    both = known.of_each(torch.tensor([[-1000.0]], dtype=torch.float64))
    assert known.answered(*both, 0.05).answers == [None if refused else "a"]


@pytest.mark.parametrize("n", [2, 10, 60])
def test_a_group_of_a_known_task_is_refused_as_rarely_as_is_said(n):
    """Whatever the distribution of scores: here a few are far below all others."""
    generator = torch.Generator().manual_seed(n)
    known, count = Known(torch.zeros(2)), 0
    for _ in range(400):
        scores = -(2.5 * torch.randn(30 + n, generator=generator, dtype=torch.float64)).exp()
        object.__setattr__(known, "scored", scores[:30].sort().values)
        count += int(known.of_groups(scores[30:, None][None])[1] <= 0.05)
    assert count / 400 < 0.075
    object.__setattr__(known, "scored", torch.linspace(0, 1, 30, dtype=torch.float64))
    for far in (-1.0, -math.inf):
        assert float(known.of_groups(torch.full((1, 10, 1), far, dtype=torch.float64))[1]) < 1e-4


def test_a_share_may_be_a_number_of_numpy():
    learner = learned(clouds(), inference="inputs")
    x = clouds()[0].train.x
    assert learner.infer(x, false_alarm=np.float64(0.05)).answers == learner.infer(x).answers


def test_inputs_of_another_shape_do_not_matter():
    """Though both are reduced to as many numbers."""
    rng = np.random.default_rng(0)
    wide, few = ((rng.normal(size=(300, n)), np.arange(300) % 2) for n in (100, 80))
    first = piaget.Task.from_arrays("wide", 50 * wide[0], wide[1], scale=False)
    second = piaget.Task.from_arrays("few", *few, scale=False)
    both = learned([first, second], inference="inputs", components=piaget.Dense(5))
    alone = learned([second], inference="inputs", initial_tasks=1, components=piaget.Dense(5))
    notes = [learner.state.records["few"].note or {} for learner in (both, alone)]
    assert notes[0].keys() == {"mean", "weight", "covariance", "count", noting.HELD}
    for name, tensor in notes[0].items():
        torch.testing.assert_close(tensor, notes[1][name])
