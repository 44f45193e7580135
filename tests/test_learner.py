"""The learner as a user meets it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import piaget
from piaget.engine.stage import Stage
from piaget.knowledge.snapshot import describe
from piaget.knowledge.storage import flatten
from piaget.method.trees import leaves
from piaget.scoring import component_rows
from piaget.scoring.rows import COLUMNS, METRICS, SCORES
from piaget.scoring.watch import EpochReport
from tests.small import binary_tasks, held_out_of, make_task, mixed_tasks

SMALL: dict[str, Any] = {
    "components": piaget.Dense(8),
    "initial_components": 2,
    "epochs": 4,
    "initial_tasks": 2,
    "batch_size": 8,
}


def test_a_life(tmp_path):
    """The README's loop, with tasks of all kinds."""
    learner, tasks = piaget.Learner(**SMALL), mixed_tasks(6)
    rows = []
    for task in tasks:
        rows += learner.learn(task)
    assert learner.tasks == [t.name for t in tasks]
    assert tuple(rows[0]) == COLUMNS
    vocabulary = {metric.format(score) for metric in METRICS for score in SCORES}
    assert {row["metric"] for row in [*rows, *component_rows.rows(learner, tasks)]} <= vocabulary
    assert {r["method"] for r in rows} == {"soft-ordering/er/dynamic"}
    everything = learner.evaluate(tasks)
    assert {r["evaluated"] for r in everything if r["metric"] == "loss"} == set(learner.tasks)
    structures = learner.structures()
    for name in learner.tasks:
        k = learner.state.records[name].k
        assert structures[name].shape == (k, 2)
        torch.testing.assert_close(structures[name].sum(0), torch.ones(2))
    decisions = [r for r in rows if r["metric"] == "kept"]
    assert len(decisions) == 4
    assert learner.components == 2 + sum(r["value"] for r in decisions)


def test_the_first_tasks_are_pending_then_initialized_together():
    learner, tasks = piaget.Learner(**(SMALL | {"initial_tasks": 3})), mixed_tasks(4)
    assert learner.learn(tasks[0]) == []
    assert learner.learn(tasks[1]) == []
    assert learner.pending == ["task 0", "task 1"]
    assert learner.tasks == []
    with pytest.raises(piaget.UnknownTaskError, match=r"'task 0' is pending.*1 more must come.*initialize"):
        learner.predict(tasks[0].test.x, "task 0")
    rows = learner.learn(tasks[2])
    assert learner.pending == []
    assert {r["evaluated"] for r in rows if r["metric"] in ("accuracy", "rmse")} == {
        "task 0",
        "task 1",
        "task 2",
    }


def test_initialize_starts_earlier():
    learner, tasks = piaget.Learner(**(SMALL | {"initial_tasks": 4})), mixed_tasks(3)
    with pytest.raises(piaget.SettingError, match="no task is pending"):
        learner.initialize()
    learner.learn(tasks[0])
    rows = learner.initialize()
    assert learner.tasks == ["task 0"]
    assert rows
    learner.learn(tasks[1])
    assert learner.tasks == ["task 0", "task 1"]


def test_predictions_and_their_forms():
    learner, tasks = piaget.Learner(**SMALL), mixed_tasks(4)
    for task in tasks:
        learner.learn(task)
    x = tasks[0].test.x
    classes = learner.predict(x, "task 0")
    assert isinstance(classes, torch.Tensor)
    chances = learner.predict_proba(x.numpy(), "task 0")
    assert isinstance(chances, np.ndarray)
    assert chances.shape == (len(x), 3)
    np.testing.assert_allclose(chances.sum(1), 1, rtol=1e-5)
    assert (chances.argmax(1) == classes.numpy()).all()
    two = learner.predict_proba(tasks[1].test.x, "task 1")
    assert two.shape == (len(x), 2)
    assert ((two[:, 1] > 0.5).long() == learner.predict(tasks[1].test.x, "task 1")).all()
    assert learner.predict(tasks[2].test.x, "task 2").is_floating_point()
    with pytest.raises(piaget.SettingError, match="regression"):
        learner.predict_proba(tasks[2].test.x, "task 2")
    with pytest.raises(piaget.UnknownTaskError, match="known tasks: 'task 0', 'task 1'"):
        learner.predict(x, "nonsense")
    with pytest.raises(piaget.TaskError, match=r"expected \(samples, 6\)"):
        learner.predict(x[:, :4], "task 0")
    with pytest.raises(piaget.TaskError, match="NaN"):
        learner.predict(x * float("nan"), "task 0")


def test_rows_are_the_learners_own_scores():
    learner, tasks = piaget.Learner(**SMALL), mixed_tasks(3)
    for task in tasks:
        rows = learner.learn(task)
    task = tasks[2]  # a regression
    error = learner.predict(task.test.x, task.name) - task.test.y
    rmse = next(r["value"] for r in rows if r["metric"] == "rmse")
    assert rmse == pytest.approx(float(error.square().mean().sqrt()), rel=1e-4)
    accuracy = next(r for r in learner.evaluate(tasks[:1]) if r["metric"] == "accuracy")
    right = learner.predict(tasks[0].test.x, "task 0") == tasks[0].test.y
    assert accuracy["value"] == pytest.approx(float(right.double().mean()))


def test_try_task_changes_nothing():
    learner, tasks = piaget.Learner(**SMALL), mixed_tasks(4)
    with pytest.raises(piaget.SettingError, match="learn the initial tasks first"):
        learner.try_task(tasks[0])
    for task in tasks[:3]:
        learner.learn(task)
    state = learner.state

    def tensors():
        return flatten(describe(state)[1])

    before = {n: t.clone() for n, t in tensors().items()}
    generator = state.generator.get_state()
    rows = learner.try_task(tasks[3])
    assert [r["stage"] for r in rows if r["metric"] == "accuracy"] == ["assimilation"]
    after = tensors()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[n], after[n]) for n in before)
    assert torch.equal(generator, state.generator.get_state())
    assert learner.tasks == ["task 0", "task 1", "task 2"]
    learner.learn(tasks[3])


def test_learning_curves():
    learner, tasks = piaget.Learner(**SMALL), mixed_tasks(3)
    reports: list[EpochReport] = []
    for i, task in enumerate(tasks):
        rows = learner.learn(task, evaluate_on=tasks[: i + 1], every=2, on_epoch=reports.append)
    curve = [
        (r["epoch"], r["stage"]) for r in rows if r["evaluated"] == "task 0" and r["metric"] == "accuracy"
    ]
    assert curve == [(2, "assimilation"), (4, "adaptation")]
    assert [(r.epoch, r.stage) for r in reports[-4:]] == [
        (1, "assimilation"),
        (2, "assimilation"),
        (3, "assimilation"),
        (4, "adaptation"),
    ]


def test_the_same_seed_gives_the_same_learner_and_another_seed_another():
    def final(seed):
        learner = piaget.Learner(**SMALL, seed=seed)
        for task in mixed_tasks(3):
            learner.learn(task)
        return learner.state.components["weight"]

    assert torch.equal(final(0), final(0))
    assert not torch.equal(final(0), final(1))


def test_watching_does_not_change_the_result():
    def final(**watching):
        learner = piaget.Learner(**SMALL)
        for task in mixed_tasks(3):
            learner.learn(task, **watching)
        return learner.state.components["weight"]

    assert torch.equal(final(), final(every=1, evaluate_on=mixed_tasks(3)))


def test_ewc_and_replay_hold_components_back():
    """What guards past tasks must have an effect, and a strong guard a strong one."""

    def drift(adaptation):
        learner = piaget.Learner(adaptation=adaptation, algorithm="joint", **(SMALL | {"epochs": 30}))
        tasks = mixed_tasks(3)
        for task in tasks[:2]:
            learner.learn(task)
        before = learner.state.components["weight"].clone()
        learner.learn(tasks[2])
        return float((learner.state.components["weight"] - before).norm())

    free, weak, strong = drift("nft"), drift(piaget.KroneckerEWC(1e-8)), drift(piaget.KroneckerEWC(1e4))
    assert weak == pytest.approx(free, rel=0.3)
    assert strong < 0.7 * free


def test_shared_encoder_and_decoder_learn_with_the_components():
    learner = piaget.Learner(
        "soft-ordering",
        "er",
        "compositional",
        encoder="shared",
        decoder="shared",
        **(SMALL | {"components": piaget.Dense(8, dropout=0.0)}),
    )
    tasks = binary_tasks(4)
    for task in tasks[:2]:
        learner.learn(task)
    before = {n: t.clone() for n, t in flatten(learner.state.shared._asdict()).items()}
    assert set(before) == {"encoder/weight", "encoder/bias", "decoder/weight", "decoder/bias"}
    for task in tasks[2:]:
        learner.learn(task)
    assert all(not torch.equal(before[n], t) for n, t in flatten(learner.state.shared._asdict()).items())
    assert all(not r.params.encoder for r in learner.state.records.values())
    with pytest.raises(piaget.TaskError, match="share one encoder"):
        learner.learn(make_task("other", "binary", features=9))


def test_replay_with_images_of_different_sizes():
    sizes = [10, 10, 10, 12, 12, 10]
    tasks = [make_task(f"t{i}", "multiclass", 3, (2, s, s), n=9, seed=i) for i, s in enumerate(sizes)]
    learner = piaget.Learner(**(SMALL | {"components": piaget.Conv(4)}), adaptation="er", algorithm="joint")
    for task in tasks:
        learner.learn(task)
    assert learner.tasks == [t.name for t in tasks]


# --- what is refused, before any training ---------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"structure": "soft"}, "structure='soft'; expected one of linear, soft-ordering"),
        (
            {"adaptation": "l2"},
            "adaptation='l2'; expected one of er, er-diluted, der++, a-gem, ewc, "
            "ewc-merged, nft, fm, or an object",
        ),
        ({"algorithm": "static"}, "algorithm='static'; expected one of dynamic"),
        ({"components": "lstm"}, "components='lstm': expected dense, conv or linear, or an object"),
        ({"structure": "monolithic"}, "cannot take new components"),
        ({"structure": "linear", "components": "dense"}, "linear combinations go with linear"),
        ({"components": "conv", "encoder": "learned"}, "expected encoder='none'"),
        ({"epochs": 0}, "epochs=0: expected a whole number, 1 or more"),
        ({"depth": 2.5}, "depth=2.5"),
        ({"batch_size": -1}, "batch_size=-1"),
        ({"learning_rate": 0}, "learning_rate=0"),
        ({"encoder": "deep"}, "encoder='deep': expected learned, fixed, shared or none, or an object"),
        ({"decoder": "none"}, "decoder='none'"),
        ({"dtype": "float16"}, "dtype='float16': expected float32 or float64"),
        ({"epochs": 1}, "epochs=1 with 'dynamic'; expected 2 or more"),
        ({"device": "gpu"}, "device='gpu' cannot be used here"),
        ({"adaptation": piaget.Replay}, "or an object of class Adaptation"),
        ({"structure": piaget.Replay()}, "or an object of class Structure"),
        ({"encoder": piaget.LinearDecoder()}, "or an object of class Encoder"),
        ({"learning_rate": float("inf")}, "expected a finite number"),
        ({"widht": 3}, "did you mean 'width'?"),
        ({"replay_size": 3, "adaptation": "ewc"}, "replay_size is not a setting of KroneckerEWC"),
        ({"adapt_every": 7, "epochs": 10}, "expected one of 2, 5, 10"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(piaget.SettingError) as error:
        piaget.Learner(**settings)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "part",
    [
        lambda: piaget.Replay(0),
        lambda: piaget.KroneckerEWC(-1),
        lambda: piaget.Staged(adapt_freq=0),
        lambda: piaget.Joint(-1),
        lambda: piaget.Dense(dropout=1.0),
        lambda: piaget.Conv(dropout=-0.1),
        lambda: piaget.Module(torch.nn.Identity, dropout=2),
    ],
)
def test_wrong_parts(part):
    with pytest.raises(piaget.SettingError):
        part()


def test_wrong_tasks():
    learner, tasks = piaget.Learner(**SMALL), mixed_tasks(3)
    learner.learn(tasks[0])
    with pytest.raises(piaget.TaskError, match="'task 0': a task of this name was given before"):
        learner.learn(tasks[0])
    learner.learn(tasks[1])
    with pytest.raises(piaget.TaskError, match="'task 1': a task of this name"):
        learner.learn(tasks[1])
    bare = piaget.Task("bare", "regression", tasks[2].train)
    with pytest.raises(piaget.TaskError, match="'bare': there is no validation split"):
        learner.learn(bare)
    assert learner.tasks == ["task 0", "task 1"]


def test_inputs_that_do_not_fit_the_components():
    conv = piaget.Learner(components=piaget.Conv(3))
    with pytest.raises(piaget.TaskError, match="'t': inputs of shape \\(6,\\) enter convolutional"):
        conv.learn(make_task("t"))
    with pytest.raises(piaget.TaskError, match="at most 3 channels"):
        conv.learn(make_task("t", features=(4, 28, 28), n=9))
    with pytest.raises(piaget.TaskError, match="expected larger images or less depth"):
        conv.learn(make_task("t", features=(1, 8, 8), n=9))
    bare = piaget.Learner(components=piaget.Dense(4), encoder="none")
    with pytest.raises(piaget.TaskError, match="expected a vector that is no longer"):
        bare.learn(make_task("t"))
    linear = piaget.Learner("linear", algorithm="compositional")
    linear.learn(make_task("a", "binary"))
    with pytest.raises(piaget.TaskError, match="share one set of features"):
        linear.learn(make_task("b", "binary", features=4))
    single = piaget.Learner("linear", algorithm="no-components")
    with pytest.raises(piaget.SettingError, match="'t': a single linear model has one output"):
        single.learn(make_task("t"))


def test_initial_tasks_need_no_validation_data_but_later_ones_do():
    learner, tasks = piaget.Learner(**SMALL), mixed_tasks(3)
    for task in tasks[:2]:
        learner.learn(piaget.Task(task.name, task.kind, task.train, classes=task.classes))
    assert learner.tasks == ["task 0", "task 1"]


def test_numbers_too_large_for_the_learner_are_refused():
    learner, task = piaget.Learner(**SMALL), make_task("t")
    huge = piaget.Split(task.train.x * 1e300, task.train.y)
    with pytest.raises(piaget.TaskError, match="'t': train: inputs are too large for float32"):
        learner.learn(piaget.Task("t", "multiclass", huge, classes=3))


def test_wrong_wishes_are_refused_before_training():
    learner, tasks = piaget.Learner(**SMALL), mixed_tasks(3)
    with pytest.raises(piaget.SettingError, match="every=0: expected a whole number, 1 or more"):
        learner.learn(tasks[0], every=0)
    for task in tasks[:2]:
        learner.learn(task)
    other = make_task("task 0", features=9)
    with pytest.raises(piaget.TaskError, match="'task 0': it is to be evaluated on inputs of shape"):
        learner.learn(tasks[2], evaluate_on=[other])
    assert learner.tasks == ["task 0", "task 1"]
    with pytest.raises(piaget.SettingError, match="split='tset'; expected train, validation or test"):
        learner.evaluate(tasks, split="tset")
    with pytest.raises(piaget.TaskError, match="inputs have dtype <U1; expected numbers"):
        learner.predict([["a", "b"]], "task 0")
    assert learner.predict(tasks[0].test.x[:0], "task 0").shape == (0,)
    assert len(learner.predict(tasks[0].test.x, tasks[0])) == 30


def test_modules_that_do_not_fit_a_later_task():
    learner = piaget.Learner(**(SMALL | {"components": piaget.Module(lambda: torch.nn.Linear(6, 6))}))
    learner.learn(make_task("a"))
    with pytest.raises(
        piaget.TaskError, match="'b': inputs of shape \\(5,\\) do not go through the component"
    ):
        learner.learn(make_task("b", features=5))


def test_many_components_for_one_initial_task():
    """There are hardly more places than components: no endless drawing."""
    learner = piaget.Learner(**(SMALL | {"initial_components": 20}))
    learner.learn(make_task("a"))
    learner.initialize()
    used = learner.structures()["a"]
    assert used.shape == (20, 20)
    assert (used.sum(1) == 1).all(), "each component has a place"


def test_linear_replay_keeps_ten_samples_a_task():
    learner = piaget.Learner("linear", "er", "compositional", epochs=3, initial_tasks=2)
    for task in binary_tasks(3):
        learner.learn(task)
    assert [len(stored["y"]) for stored in learner.state.memory.values()] == [10, 10, 10]


def test_epochs_that_are_alike_are_planned_once(monkeypatch):
    """Linear models take all samples at once: the batch of the first epoch is that of all."""
    results = []
    for _ in range(2):
        learner = piaget.Learner("linear", "er", "compositional", epochs=20, initial_tasks=2)
        for task in binary_tasks(4):
            learner.learn(task)
        results.append(learner.state)
        monkeypatch.setattr(Stage, "epochs_alike", False)
    for one, two in zip(*(leaves(state.components) for state in results), strict=True):
        assert torch.equal(one, two)


def test_learning_from_on_epoch_is_refused_and_does_no_harm():
    learners, tasks = [piaget.Learner(**SMALL) for _ in range(2)], mixed_tasks(3)
    for task in tasks:
        learners[0].learn(task)
    for task in tasks[:2]:
        learners[1].learn(task)
    with pytest.raises(piaget.TaskError, match="is learning a task already"):
        learners[1].learn(tasks[2], on_epoch=lambda report: bool(learners[1].learn(tasks[2])))
    learners[1].learn(tasks[2])
    for name, tensor in learners[0].state.components.items():
        assert torch.equal(tensor, learners[1].state.components[name])


def test_learning_where_gradients_are_off():
    with torch.no_grad():
        learner, tasks = piaget.Learner(**SMALL), mixed_tasks(3)
        for task in tasks:
            learner.learn(task)
    assert len(learner.tasks) == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda learner: learner.learn(None),
        lambda learner: learner.learn(make_task("a"), every=1.5),
        lambda learner: learner.learn(make_task("a"), every="2"),
        lambda learner: learner.learn(make_task("a"), on_epoch=3),
        lambda learner: learner.learn(make_task("a"), evaluate_on=[3]),
        lambda learner: piaget.Cohort(["a"]),  # type: ignore[list-item]
        lambda learner: piaget.Cohort([learner, learner]),
        lambda learner: piaget.Learner(seed=2**64),
        lambda learner: piaget.Learner(learning_rate=10**400),
    ],
)
def test_wrong_calls(call):
    with pytest.raises(piaget.PiagetError):
        call(piaget.Learner(**SMALL))


def test_scores_are_of_the_data_that_is_given():
    """Two tasks of one name, with other test data: what is encoded once is not taken for the other."""
    tasks = binary_tasks(3)
    other = replace(tasks[2], test=piaget.Split(-held_out_of(tasks[2]).x, held_out_of(tasks[2]).y))
    learner = piaget.Learner(**(SMALL | {"encoder": "fixed"}))
    for task in tasks[:2]:
        learner.learn(task)
    found = []
    learner.learn(
        tasks[2], evaluate_on=[other], every=1, on_epoch=lambda one: found.append(one.score("test"))
    )
    (own,) = [row["value"] for row in learner.evaluate(tasks[2]) if row["metric"] == "accuracy"]
    assert found[-1] == own


def test_a_trial_needs_no_validation_data():
    """It adapts nothing that could be judged by it."""
    learner, tasks = piaget.Learner(**(SMALL | {"algorithm": "recommended"})), binary_tasks(3)
    for task in tasks[:2]:
        learner.learn(task)
    assert learner.try_task(replace(tasks[2], validation=None))


def test_settings_of_parts_that_are_no_dataclasses():
    class Enough(piaget.StopRule):
        def stops(self, gains):
            return False

    with pytest.raises(piaget.SettingError, match="patience is not a setting of Enough"):
        piaget.Learner(stop=Enough(), patience=3)
    with pytest.raises(piaget.SettingError, match="may differ in their seeds only; here: stop: "):
        piaget.Cohort([piaget.Learner(seed=seed, stop=Enough()) for seed in range(2)])
    assert piaget.Learner(schedule="joint", epochs=1).settings.stages()
