"""The seams: parts of one's own do what they say, are saved and carried on, and are the same in a cohort."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
import torch
from torch import Tensor

import piaget
from examples.a_gem import AGEM
from examples.algorithm_1 import algorithm_1
from examples.cosine_and_patience import NoProgress, WarmCosine
from examples.der_plus_plus import DERPlusPlus
from examples.mcnemar import McNemar
from examples.scale_and_shift import ScaleAndShift
from piaget.engine.part_step import PartStep
from piaget.engine.training import Training
from piaget.knowledge.snapshot import describe
from piaget.knowledge.storage import flatten
from piaget.method import objective
from piaget.method.schedule import ADAPTATION, ASSIMILATION
from piaget.scoring.watch import Watch
from tests.small import binary_tasks, image_tasks, make_task, mixed_tasks

SMALL: dict[str, Any] = {
    "width": 8,
    "initial_components": 3,
    "initial_tasks": 2,
    "batch_size": 8,
    "learning_rate": 0.02,
    "dtype": "float64",
}
STAGED = piaget.Algorithm(piaget.Staged(4, 2, 1), piaget.ComponentDropout(0.02), name="dynamic")


@dataclass(frozen=True)
class TwoLayers(piaget.Encoder):
    """An encoder of one's own: a hidden layer of tanh units."""

    hidden: int = 5
    shared: bool = False

    def output_shape(self, input_shape, components):
        return components.hidden

    def draw(self, generator, input_shape, components, dtype):
        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator, dtype=dtype) / math.sqrt(shape[0])

        features = math.prod(input_shape)
        return {"in": normal(features, self.hidden), "out": normal(self.hidden, components.hidden[0])}

    def apply(self, params, x):
        return (x.flatten(1) @ params["in"]).tanh() @ params["out"]


@dataclass(frozen=True)
class Cosines(piaget.Decoder):
    """A decoder of one's own: similarity to a direction for each output."""

    axes = {"directions": 1}  # noqa: RUF012

    def draw(self, generator, shape, outputs, dtype):
        return {"directions": torch.randn(math.prod(shape), outputs, generator=generator, dtype=dtype)}

    def apply(self, params, features):
        directions = params["directions"]
        norms = features.norm(dim=1, keepdim=True) * directions.norm(dim=0) + 1e-6
        return 4 * features.flatten(1) @ directions / norms


OWN: dict[str, dict[str, Any]] = {
    "der++": {"adaptation": DERPlusPlus(), "algorithm": STAGED},
    "a-gem": {"adaptation": AGEM(references=4), "algorithm": STAGED},
    "scale and shift": {"structure": ScaleAndShift(), "algorithm": STAGED},
    "mcnemar": {"expansion": McNemar(0.5), "epochs": 5},
    "cosine, no progress": {"rate_schedule": WarmCosine(), "stop": NoProgress(2), "epochs": 8},
    "second attempt": {"expansion": piaget.SecondAttempt(level=0.5), "epochs": 3},
    "encoder": {"encoder": TwoLayers(), "algorithm": STAGED},
    "decoder": {"decoder": Cosines(), "algorithm": STAGED},
    "balanced replay": {"adaptation": piaget.Replay(5, 0.4), "algorithm": STAGED},
    "balanced replay, jointly": {"replay_share": 0.6, "algorithm": "no-components", "epochs": 4},
    "validated": {"acceptance": "validated", "algorithm": STAGED, "learning_rate": 0.1},
    "der++ of the library": {"adaptation": "der++", "replay_share": 0.5, "algorithm": STAGED},
    "a-gem of the library": {"adaptation": "a-gem", "algorithm": STAGED},
    "ewc-merged": {"adaptation": piaget.MergedEWC(0.5), "algorithm": STAGED},
    "rate of adaptation": {"rate_schedule": "adaptation-cosine", "algorithm": STAGED},
    "averaging": {"averaging": 0.5, "algorithm": STAGED},
    "averaging, jointly": {"averaging": 1.0, "algorithm": "joint", "epochs": 4},
    "sgd": {"optimizer": piaget.SGD(momentum=0.9, weight_decay=0.01), "epochs": 4},
}


def learner_of(name: str, **settings: Any) -> piaget.Learner:
    return piaget.Learner(**(SMALL | OWN[name] | settings))


def everything(learner: piaget.Learner) -> dict[str, Tensor]:
    return flatten(describe(learner.state)[1])


def assert_same(one: piaget.Learner, other: piaget.Learner) -> None:
    ours, theirs = everything(one), everything(other)
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


class Killed(Exception):
    pass


def killed_at(epoch, learner, task):
    """Learning is broken off after this epoch."""

    def kill(report):
        if report.epoch == epoch:
            raise Killed

    with pytest.raises(Killed):
        learner.learn(task, every=1, on_epoch=kill)


@pytest.mark.parametrize("name", OWN)
def test_saved_loaded_and_carried_on(name, tmp_path):
    """Also in the middle of a task."""
    tasks = mixed_tasks(5, n=20)
    whole = learner_of(name)
    for task in tasks:
        whole.learn(task)
    part = learner_of(name)
    for task in tasks[:3]:
        part.learn(task)
    killed_at(3, part, tasks[3])
    part.save(tmp_path)
    own = {n: p for n, p in OWN[name].items() if type(p).__module__.split(".")[0] in ("examples", "tests")}
    if own:
        with pytest.raises(piaget.LoadError, match="pass it again"):
            piaget.Learner.load(tmp_path)
    part = piaget.Learner.load(tmp_path, **own)
    for task in tasks[3:]:
        part.learn(task)
    assert_same(whole, part)


@pytest.mark.parametrize("name", OWN)
def test_the_same_in_a_cohort(name):
    streams = [mixed_tasks(4, n=20), [*mixed_tasks(3, n=20), make_task("task 3", n=23, seed=9)]]
    alone = [learner_of(name, seed=seed) for seed in range(2)]
    for learner, tasks in zip(alone, streams, strict=True):
        for task in tasks:
            learner.learn(task)
    together = piaget.Cohort([learner_of(name, seed=seed) for seed in range(2)])
    for pair in zip(*streams, strict=True):
        together.learn(pair)
    for one, other in zip(alone, together.learners, strict=True):
        assert one.components == other.components
        ours, theirs = everything(one), everything(other)
        for key, tensor in ours.items():
            torch.testing.assert_close(theirs[key], tensor, rtol=1e-7, atol=1e-9, msg=key)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["der++", "a-gem", "balanced replay", "ewc-merged", "averaging"])
def test_the_same_as_machine_code(name):
    results = []
    *initial, third = binary_tasks(3)
    for compile in ("never", "always"):
        structure = ScaleAndShift() if name == "a-gem" else "soft-ordering"  # two seams in one compilation
        learner = learner_of(name, algorithm="joint", epochs=2, structure=structure)
        for task in initial:
            learner.learn(task)
        learner.settings = replace(learner.settings, compile=compile)
        learner.learn(third)
        results.append(everything(learner))
    for key, tensor in results[0].items():
        torch.testing.assert_close(results[1][key], tensor, rtol=1e-9, atol=1e-12, msg=key)


# --- the examples ---------------------------------------------------------------------------------------


def components_after(tasks: Sequence[piaget.Task], **settings: Any) -> Tensor:
    learner = piaget.Learner(**(SMALL | {"epochs": 4, "algorithm": "joint"} | settings))
    for task in tasks:
        learner.learn(task)
    return learner.state.components["weight"]


def test_stored_outputs_matter_only_with_their_weight():
    tasks = mixed_tasks(4)
    replay = components_after(tasks, adaptation=piaget.Replay(5))
    assert torch.equal(replay, components_after(tasks, adaptation=DERPlusPlus(alpha=0.0, size=5)))
    assert not torch.allclose(replay, components_after(tasks, adaptation=DERPlusPlus(alpha=0.5)))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (piaget.DERPlusPlus(5, alpha=0.3, beta=0.7), DERPlusPlus(alpha=0.3, beta=0.7, size=5)),
        (piaget.DERPlusPlus(), DERPlusPlus()),
        (piaget.DERPlusPlus(5, alpha=0.0), piaget.Replay(5)),
        (piaget.AGEM(5, references=3), AGEM(size=5, references=3)),
        (piaget.AGEM(), AGEM()),
    ],
)
@pytest.mark.parametrize("algorithm", ["dynamic", "joint", "no-components"])
def test_the_librarys_own_are_what_a_user_would_write(ours, theirs, algorithm):
    """To the bit, for all that is learned and stored; without a share of stored samples, as by default."""
    learners = [piaget.Learner(**SMALL, adaptation=a, algorithm=algorithm, epochs=4) for a in (ours, theirs)]
    for learner in learners:
        for task in mixed_tasks(4, n=20):
            learner.learn(task)
    one, other = (everything(learner) for learner in learners)
    assert one.keys() - other.keys() <= {f"memory/{i}/logits" for i in range(4)}
    for name, tensor in other.items():
        assert torch.equal(tensor, one[name]), name


def test_stored_outputs_are_those_of_the_finished_task():
    learner, tasks = learner_of("der++", algorithm="compositional", epochs=3), mixed_tasks(3)
    for task in tasks:
        learner.learn(task)
    stored = piaget.stored_samples(learner.state.memory)[-1]
    record = learner.record(tasks[-1])
    network = learner.model
    params = learner.state.params(record, network)
    outputs = network.outputs_of_encoded(params, stored.h, record.visible(learner.components))
    torch.testing.assert_close(stored.fields["logits"], outputs[:, : record.outputs])


def test_der_holds_outputs():
    """The more, the less the outputs of stored samples drift."""

    def drift(alpha):
        adaptation = DERPlusPlus(alpha=alpha, beta=0.0, size=10)
        learner = piaget.Learner(**SMALL, adaptation=adaptation, algorithm="joint", epochs=15, dropout=0.0)
        tasks = mixed_tasks(4)
        for task in tasks:
            learner.learn(task)
        (first, *_), model = piaget.stored_samples(learner.state.memory), learner.model
        record = learner.record(tasks[0])
        out = model.outputs_of_encoded(learner.state.params(record, model), first.h, record.visible(3))
        return float((out[:, : record.outputs] - first.fields["logits"]).square().mean())

    assert drift(20.0) < 0.5 * drift(0.0)


def step_context(gradient, reference):
    nothing = torch.zeros(0)
    return piaget.StepContext(
        components=gradient,
        gradient=gradient,
        memory={},
        reference=reference,
        reference_loss=None,
        inputs=nothing,
        targets=objective.Targets(nothing, nothing),
        task=None,
        weight=nothing,
        step=torch.zeros(()),
        random=nothing,
        loss=lambda c: nothing,
        outputs=lambda c: nothing,
    )


def test_a_gem_projects_what_would_do_harm_and_nothing_else():
    gradient = {"a": torch.tensor([[1.0, 0.0]]), "b": torch.tensor([2.0])}
    helpful = {"a": torch.tensor([[1.0, 1.0]]), "b": torch.tensor([0.0])}
    harmful = {"a": torch.tensor([[-1.0, 1.0]]), "b": torch.tensor([-1.0])}
    kept, counts = AGEM().correct(step_context(gradient, helpful))
    assert torch.equal(kept["a"], gradient["a"])
    assert not counts["projected"]
    projected, counts = AGEM().correct(step_context(gradient, harmful))
    assert counts["projected"]
    assert sum(float((g * harmful[n]).sum()) for n, g in projected.items()) == pytest.approx(0, abs=1e-6)
    assert not torch.equal(projected["a"], gradient["a"])


def test_projected_steps_are_counted_in_rows():
    learner, tasks = learner_of("a-gem"), mixed_tasks(5)
    rows = [row for task in tasks for row in learner.learn(task) if row["metric"] == "projected"]
    assert [row["trained"] for row in rows] == ["task 2", "task 3", "task 4"]
    steps = 2 * math.ceil(30 / 8) * 2  # two epochs of adaptation, two passes
    assert all(0 <= row["value"] <= steps and row["value"] == int(row["value"]) for row in rows)
    assert sum(row["value"] for row in rows) > 0
    assert learner.state.progress is None


def test_a_gem_leaves_tasks_of_another_shape_out():
    learner = piaget.Learner(
        adaptation=AGEM(references=3),
        algorithm="joint",
        components=piaget.Conv(3),
        depth=2,
        epochs=2,
        initial_components=2,
        initial_tasks=2,
        batch_size=8,
    )
    tasks = [*image_tasks(3), make_task("larger", features=(2, 16, 16), n=12)]
    rows = [row for task in tasks for row in learner.learn(task)]
    projected = {row["trained"]: row["value"] for row in rows if row["metric"] == "projected"}
    assert projected["larger"] == 0  # nothing to compare with


def test_scale_and_shift_begin_as_soft_ordering_and_are_each_tasks_own():
    learner, tasks = learner_of("scale and shift"), mixed_tasks(4)
    for task in tasks:
        learner.learn(task)
    initial, later = (learner.record(task).params.structure for task in (tasks[0], tasks[3]))
    assert torch.equal(initial["scale"], torch.ones(3, 8, dtype=torch.float64))  # initial structures stay
    assert not torch.allclose(later["scale"], torch.ones(3, 8, dtype=torch.float64))
    structures = learner.structures()
    torch.testing.assert_close(structures["task 3"].sum(0), torch.ones(3, dtype=torch.float64))
    generator = torch.Generator().manual_seed(0)
    h, weight, bias = (torch.randn(s, generator=generator) for s in ((4, 8), (3, 8, 8), (3, 8)))
    frame = piaget.Frame(piaget.Dense(8), [(8,)] * 4, 3, 2, torch.float32)
    stacked = {"weight": weight, "bias": bias}
    visible, keep = torch.ones(3, dtype=torch.bool), [None] * 3
    plain, scaled = piaget.SoftOrdering(), ScaleAndShift()
    ours, theirs = (s.draw(generator, frame) for s in (scaled, plain))
    outputs = [
        s.body(frame.components, stacked, p, h, keep, visible) for s, p in ((scaled, ours), (plain, theirs))
    ]
    torch.testing.assert_close(*outputs)


def evidence(mended, spoilt, same=50):
    """Binary outputs: so many samples are right only with the candidate, only without it, and both ways."""
    good, bad = torch.ones(1), -torch.ones(1)
    with_candidate = torch.cat([good.repeat(mended), bad.repeat(spoilt), good.repeat(same)])
    without = torch.cat([bad.repeat(mended), good.repeat(spoilt), good.repeat(same)])
    targets = torch.ones(mended + spoilt + same, dtype=torch.int64)
    return piaget.Evidence("binary", with_candidate[:, None], without[:, None], targets)


def test_mcnemar_keeps_what_helps_significantly():
    assert McNemar().keeps(evidence(5, 0))  # p = 1 / 32
    assert not McNemar().keeps(evidence(4, 0))  # p = 1 / 16
    assert McNemar(level=0.1).keeps(evidence(4, 0))
    assert not McNemar().keeps(evidence(20, 15))
    assert not McNemar().keeps(evidence(0, 0))
    values = torch.linspace(-1, 1, 40)
    better = piaget.Evidence("regression", values[:, None], values[:, None] + 0.1, values)
    assert McNemar().keeps(better)
    assert better.scores == pytest.approx((0, 0.1))


def test_rates_follow_the_schedule_within_each_stage(monkeypatch):
    rates: list[tuple[str, float]] = []
    epoch = Training.epoch

    def seen(training, active):
        epoch(training, active)
        rates.append((training.stages[0].kind.name, float(training.rate)))

    monkeypatch.setattr(Training, "epoch", seen)
    schedule = piaget.Staged(4, 2, 1)
    learner = piaget.Learner(
        **SMALL, rate_schedule=piaget.CosineRate(), algorithm=piaget.Algorithm(schedule), initial_epochs=1
    )
    for task in mixed_tasks(3):
        learner.learn(task)
    cosine = [0.02 * (1 + math.cos(math.pi * e / 4)) / 2 for e in range(4)]
    assert [rate for name, rate in rates if name == "assimilation"] == pytest.approx(cosine)
    assert [rate for name, rate in rates if name == "adaptation"] == pytest.approx([0.02, 0.01])


def test_rates_of_adaptation_follow_its_steps(monkeypatch):
    """Within one epoch; in other stages the rate stays as it is."""
    rates: list[float] = []
    call = PartStep.__call__

    def seen(step, batch):
        rates.append(float(step.standing.rate))
        call(step, batch)

    monkeypatch.setattr(PartStep, "__call__", seen)
    schedule = piaget.AdaptationCosine(start=0.5, least=0.1)
    learner = piaget.Learner(
        **SMALL,
        rate_schedule=schedule,
        algorithm=piaget.Algorithm(piaget.Staged(4, 2, 1)),
        adaptation="nft",
        initial_epochs=1,
    )
    for task in mixed_tasks(3):
        learner.learn(task)
    steps = math.ceil(30 / 8)
    found = rates[-6 * steps :]  # two of assimilation, one of adaptation, twice
    assimilated = [rate for epoch in (0, 1, 3, 4) for rate in found[epoch * steps : (epoch + 1) * steps]]
    assert assimilated == pytest.approx([0.02] * 4 * steps)
    adapted = [rate for epoch in (2, 5) for rate in found[epoch * steps : (epoch + 1) * steps]]
    shares = [i / (2 * steps) for i in range(2 * steps)]  # of both epochs of adaptation
    expected = [0.02 * (0.1 + 0.4 * (1 + math.cos(math.pi * share)) / 2) for share in shares]
    assert adapted == pytest.approx(expected)
    assert schedule.factor(1, 2) == pytest.approx(0.3)


@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("algorithm", ["compositional", "joint", "dynamic"])
def test_what_adapts_becomes_its_average_over_the_last_steps(monkeypatch, share, algorithm):
    """Against the mean of what each step left, in the last epoch of the stage."""
    left: list[Tensor] = []
    call = PartStep.__call__

    def seen(step, batch):
        call(step, batch)
        params = step.standing.trained.get("components")
        left.append(params["weight"].clone() if params else torch.zeros(0))

    monkeypatch.setattr(PartStep, "__call__", seen)
    settings = SMALL | {"adaptation": "nft", "algorithm": algorithm, "epochs": 4, "averaging": share}
    learner = piaget.Learner(**settings, acceptance=Looking())
    for task in mixed_tasks(3):
        LOOKED.clear()
        learner.learn(task)
    steps = math.ceil(share * math.ceil(30 / 8))
    expected = torch.stack(left[-steps:]).mean(0)
    (after,) = LOOKED
    torch.testing.assert_close(after["weight"], expected[: len(after["weight"])])
    assert steps == 1 or not torch.allclose(after["weight"], left[-1][: len(after["weight"])])


LOOKED: list[dict[str, Tensor]] = []


@dataclass(frozen=True)
class Looking(piaget.Acceptance):
    """Sees what an adaptation left."""

    def share(self, adapted: piaget.Adapted) -> float:
        LOOKED.append(adapted.after)
        return 1.0


def test_a_stage_without_progress_ends_early_and_the_next_one_follows():
    @dataclass(frozen=True)
    class AtOnce(piaget.StopRule):
        def stops(self, gains: Sequence[float]) -> bool:
            return True

    def stages(**settings):
        learner = piaget.Learner(**SMALL, epochs=6, initial_epochs=1, **settings)
        reports = []
        for task in mixed_tasks(3):
            learner.learn(task, on_epoch=lambda report: reports.append((report.stage, report.epoch)))
        return reports[1:]

    assert stages() == [("assimilation", e) for e in range(1, 6)] + [("adaptation", 6)]
    assert stages(stop=AtOnce()) == [("assimilation", 1), ("adaptation", 6)]
    assert len(stages(patience=100)) == 6


def test_a_stop_rule_needs_validation_data():
    task = make_task("a")
    bare = piaget.Task("a", task.kind, task.train, classes=task.classes)
    with pytest.raises(piaget.TaskError, match="no validation split, but it is to tell when to stop"):
        piaget.Learner(**SMALL, algorithm="joint", patience=2).learn(bare)


def test_runs_of_a_cohort_stop_when_they_will_and_go_on_together(tmp_path):
    """One stops at once, the other never: interrupted or not, the same bits come out."""

    def cohort():
        return [learner_of("cosine, no progress", seed=s, stop=piaget.Patience(1)) for s in (0, 1, 2)]

    tasks = mixed_tasks(4, n=20)
    whole = piaget.Cohort(cohort())
    epochs: dict[int, int] = {}

    def count(report):
        epochs[report.seed] = epochs.get(report.seed, 0) + 1

    for task in tasks:
        whole.learn([task] * 3, on_epoch=count)
    assert len(set(epochs.values())) > 1, "the test needs runs that stop at different epochs"
    part, calls = piaget.Cohort(cohort()), 0

    def kill(report):
        nonlocal calls
        calls += 1
        if calls % 17 == 0:
            raise Killed

    class Always:
        def due(self):
            return True

        def keep(self):
            for learner in part.learners:
                learner.save(tmp_path / str(learner.settings.seed))

        def diverged(self, learner, error):
            raise error

    for task in tasks:
        while True:
            try:
                part.learn([task] * 3, on_epoch=kill, keeper=Always())
                break
            except Killed:  # from what was kept last, as after a crash
                folders = [tmp_path / str(seed) for seed in range(3)]
                if all(folder.exists() for folder in folders):
                    own = {"rate_schedule": WarmCosine()}
                    part.learners[:] = [piaget.Learner.load(folder, **own) for folder in folders]
    for one, other in zip(whole.learners, part.learners, strict=True):
        assert_same(one, other)


# --- what adaptations are told, alone and in company -----------------------------------------------------


@dataclass(frozen=True)
class Counting(piaget.Adaptation):
    """Sums the numbers of the steps that it is told."""

    name = "counting"
    counts = ("steps", "sum")

    def correct(self, context):
        return piaget.Correction(context.gradient, {"steps": torch.ones(()), "sum": context.step})


def counted(learner, tasks, **options):
    rows = [row for task in tasks for row in learner.learn(task, **options)]
    return {(r["trained"], r["metric"]): r["value"] for r in rows if r["metric"] in Counting.counts}


def test_counts_are_of_the_whole_task_alone_in_a_cohort_and_after_an_interruption(tmp_path):
    """Tasks of different sizes; stages that adapt between those that do not."""
    settings = SMALL | {"adaptation": Counting(), "epochs": 6, "adapt_every": 2, "algorithm": "compositional"}
    small, large = binary_tasks(3, n=16), binary_tasks(3, n=40)
    alone = [counted(piaget.Learner(**settings), tasks) for tasks in (small, large)]
    for found, batches in zip(alone, (2, 5), strict=True):
        steps = 3 * batches  # three epochs of adaptation
        assert found["task 2", "steps"] == steps
        assert found["task 2", "sum"] == steps * (steps - 1) / 2
    cohort = piaget.Cohort([piaget.Learner(**settings, seed=seed) for seed in range(2)])
    rows = [cohort.learn(pair) for pair in zip(small, large, strict=True)][-1]
    for run, found in enumerate(alone):
        told = {r["metric"]: r["value"] for r in rows[run] if r["metric"] in Counting.counts}
        assert told == {"steps": found["task 2", "steps"], "sum": found["task 2", "sum"]}
    part = piaget.Learner(**settings)
    counted(part, large[:2])
    killed_at(4, part, large[2])
    part.save(tmp_path)
    part = piaget.Learner.load(tmp_path, adaptation=Counting())
    assert counted(part, large[2:]) == {k: v for k, v in alone[1].items() if k[0] == "task 2"}


def test_runs_at_different_epochs_have_rates_of_their_own():
    """After an interruption one run of a cohort may be an epoch ahead of the other."""
    settings = SMALL | {"rate_schedule": "cosine", "epochs": 8, "algorithm": "joint", "adaptation": "nft"}
    tasks = binary_tasks(3)
    alone = [piaget.Learner(**settings, seed=seed) for seed in range(2)]
    for learner in alone:
        learn_all(learner, tasks)
    cohort = piaget.Cohort([piaget.Learner(**settings, seed=seed) for seed in range(2)])
    for task in tasks[:2]:
        cohort.learn([task, task])

    def kill(report):
        if report.epoch == 4 and report.seed == 1:
            raise Killed

    with pytest.raises(Killed):
        cohort.learn([tasks[2]] * 2, on_epoch=lambda r: bool(r.score("train") < 0) or kill(r))
    epochs = [learner.state.progress.epoch for learner in cohort.learners if learner.state.progress]
    assert epochs == [4, 4]
    with pytest.raises(Killed):
        cohort.learn([tasks[2]] * 2, on_epoch=lambda r: kill_at(r, 5, 0))
    cohort.learn([tasks[2]] * 2)
    for one, other in zip(alone, cohort.learners, strict=True):
        for name, tensor in one.state.components.items():
            torch.testing.assert_close(other.state.components[name], tensor, rtol=1e-7, atol=1e-9)


def kill_at(report, epoch, seed):
    report.score("train")
    if (report.epoch, report.seed) == (epoch, seed):
        raise Killed
    return False


def test_weight_decay_reaches_features_that_are_always_zero():
    task = make_task("task 0", seed=0)  # its first feature is always 0
    norms = []
    for decay in (0.0, 5.0):
        learner = piaget.Learner(**SMALL, weight_decay=decay, algorithm="joint", epochs=20)
        learn_all(learner, [task, *binary_tasks(2)[1:], make_task("task 9", seed=3)])
        norms.append(float(learner.record("task 9").params.encoder["weight"][0].norm()))
    assert norms[1] < 0.5 * norms[0]


def test_parameters_may_have_slashes_in_their_names(tmp_path):
    @dataclass(frozen=True)
    class Slashed(piaget.Encoder):
        shared = True

        def output_shape(self, input_shape, components):
            return components.hidden

        def draw(self, generator, input_shape, components, dtype):
            shape = (*input_shape, *components.hidden)
            return {"net/weight": torch.randn(shape, generator=generator, dtype=dtype)}

        def apply(self, params, x):
            return x @ params["net/weight"]

    learner, tasks = piaget.Learner(**SMALL, encoder=Slashed(), epochs=2), binary_tasks(3)
    learn_all(learner, tasks)
    learner.save(tmp_path)
    loaded = piaget.Learner.load(tmp_path, encoder=Slashed())
    assert torch.equal(loaded.predict(tasks[2].test.x, "task 2"), learner.predict(tasks[2].test.x, "task 2"))


@pytest.mark.parametrize("other", [DERPlusPlus(alpha=0.1), piaget.Replay(), "er", object(), ScaleAndShift()])
def test_a_part_that_is_given_again_must_be_what_it_was(tmp_path, other):
    learner = learner_of("der++")
    learner.save(tmp_path)
    with pytest.raises(piaget.LoadError, match="what is given differs"):
        piaget.Learner.load(tmp_path, adaptation=other)
    assert piaget.Learner.load(tmp_path, adaptation=DERPlusPlus()).settings == learner.settings


def test_stop_rules_are_told_gains_of_mixed_tasks():
    """An error and an accuracy: more is better for both, in whatever order tasks come."""
    learner = piaget.Learner(**SMALL, algorithm="joint", epochs=2)
    tasks = [make_task("a", "regression", seed=1), make_task("b", "binary", seed=2)]
    learn_all(learner, tasks)
    watch = Watch(learner.settings, learner.state, [])
    rmse, accuracy = (score_of(learner, task, "validation") for task in tasks)
    expected = (accuracy - rmse) / 2
    assert watch.gain(tasks) == watch.gain(tasks[::-1]) == pytest.approx(expected)


def test_outputs_of_other_tasks_columns_are_not_told():
    """A shared decoder has them."""
    seen = []

    def look(losses, outputs, replayed):
        seen.append((outputs.detach(), replayed.form.allowed))
        return losses

    learner = piaget.Learner(
        **SMALL, adaptation=returning("losses", look), decoder="shared", algorithm="joint", epochs=2
    )
    learn_all(learner, [make_task(f"task {i}", classes=c, seed=i) for i, c in enumerate((4, 2, 3))])
    for outputs, allowed in seen:
        assert not outputs[~allowed[:, :-1]].any()
        assert outputs[allowed[:, :-1]].any()


def test_a_report_of_an_earlier_epoch_tells_no_scores():
    reports: list[piaget.EpochReport] = []
    learner, tasks = piaget.Learner(**SMALL, epochs=4), binary_tasks(3)
    learn_all(learner, tasks[:2])
    learner.learn(tasks[2], on_epoch=reports.append)
    with pytest.raises(piaget.SettingError, match="the report of epoch 1 cannot tell scores"):
        reports[0].score("train")


def test_a_stage_in_which_nothing_learns_is_no_trouble():
    only_encoder = piaget.StageKind("warm-up", frozenset(["encoder"]))

    @dataclass(frozen=True)
    class Waiting(piaget.Schedule):
        def stages(self):
            return [only_encoder, ASSIMILATION, ADAPTATION]

    for adaptation in ("nft", "fm"):
        learner = piaget.Learner(**SMALL, schedule=Waiting(), encoder="fixed", adaptation=adaptation)
        learn_all(learner, binary_tasks(3))
        names = [kind.name for kind in learner.settings.stages()]
        assert names == ["warm-up", "assimilation", "assimilation" if adaptation == "fm" else "adaptation"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: piaget.StageKind("mine", frozenset([cast(Any, "decodr")])),
            "trains decodr; expected some of",
        ),
        (lambda: piaget.Learner(ScaleAndShift(), algorithm="no-components"), "leave out the structure"),
        (lambda: piaget.Learner(adaptation=type("R", (Mistaken,), {"references": 3})()), "no `correct`"),
        (lambda: piaget.Learner(schedule=piaget.Joint(3), adapt_every=2), "leave out one of the two"),
    ],
)
def test_what_would_silently_do_nothing_is_refused(make, message):
    with pytest.raises(piaget.SettingError, match=message):
        make()


def test_an_algorithm_of_that_name_keeps_its_structure():
    algorithm = piaget.Algorithm(piaget.Joint(3), name="no-components")
    assert piaget.Learner(algorithm=algorithm).settings.structure == piaget.SoftOrdering()


# --- mistakes that a newcomer makes -------------------------------------------------------------------------


class Mistaken(piaget.Replay):
    """Not a dataclass of its own: it inherits all but what is wrong."""

    name = "mistaken"


@dataclass
class Loose(piaget.Adaptation):
    name = "loose"


class Nameless(piaget.Adaptation):
    pass


def returning(hook: str, result: Any) -> Any:
    return type("Wrong", (Mistaken,), {hook: lambda self, *args: result(*args)})()


HOOKS = {
    "losses is a mean": (
        returning("losses", lambda losses, *_: losses.mean()),
        r"Wrong.losses returned \(\)",
    ),
    "losses with an axis": (returning("losses", lambda losses, *_: losses[:, None]), r"expected .* \(8,\)"),
    "no losses": (returning("losses", lambda *_: None), "returned NoneType for 'losses'"),
    "a bare gradient": (returning("correct", lambda c: c.gradient), "returned a dict; expected a Correction"),
    "a sum": (
        returning("correct", lambda c: piaget.Correction({n: g.sum(0) for n, g in c.gradient.items()})),
        r"Wrong.correct returned \(8,\) for 'bias'; expected a tensor of shape \(3, 8\)",
    ),
    "a number that nobody declared": (
        returning("correct", lambda c: piaget.Correction(c.gradient, {"many": c.step})),
        r"returned \['many'\]; expected tensors \[\]",
    ),
    "no memory": (
        returning("remember", lambda *_: None),
        "remember returned None; expected a dictionary",
    ),
    "too few rows": (
        returning("remember", lambda m, done: done.store(m, done.sample(5), field=torch.zeros(3))),
        "'field' is a tensor of 3 rows for 5 samples",
    ),
}


@pytest.mark.parametrize("name", HOOKS)
def test_hooks_that_return_something_else(name):
    adaptation, message = HOOKS[name]
    learner = piaget.Learner(**SMALL, adaptation=adaptation, algorithm="joint", epochs=2)
    with pytest.raises(piaget.SettingError, match=message):
        learn_all(learner, binary_tasks(4))


def learn_all(learner, tasks):
    return [row for task in tasks for row in learner.learn(task)]


def test_an_if_on_a_tensor_is_told_in_a_cohort():
    wrong = returning("losses", lambda losses, *_: losses if losses.mean() > 0 else 2 * losses)
    settings = SMALL | {"adaptation": wrong, "algorithm": "joint", "epochs": 2}
    cohort = piaget.Cohort([piaget.Learner(**settings, seed=seed) for seed in range(2)])
    tasks = binary_tasks(4)
    for task in tasks[:2]:
        cohort.learn([task, task])
    with pytest.raises(piaget.SettingError, match="may not use `if` on a tensor's value"):
        cohort.learn([tasks[2], tasks[2]])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"adaptation": Loose()}, "expected a frozen dataclass"),
        ({"adaptation": Nameless()}, "its name is None; expected a text"),
        ({"adaptation": type("Er", (Mistaken,), {"name": "er"})()}, "'er', which is one of the library's"),
        ({"adaptation": AGEM}, r"did you mean AGEM\(\)\?"),
    ],
)
def test_parts_that_cannot_be_told_apart(settings, message):
    with pytest.raises(piaget.SettingError, match=message):
        piaget.Learner(**settings)


def test_probabilities_of_a_mixed_batch():
    """Three classes, two, and a padded binary logit."""
    out = torch.tensor([[0.0, 1.0, 2.0], [0.0, 1.0, 9.0], [0.7, 9.0, 9.0]])
    kinds: list[tuple[Any, int]] = [("multiclass", 3), ("multiclass", 2), ("binary", 2)]
    forms = [objective.output_form(kind, classes, 3) for kind, classes in kinds]
    form = objective.OutputForm(*(torch.stack(list(column)) for column in zip(*forms, strict=True)))
    targets = objective.Targets(torch.zeros(3, dtype=torch.int64), torch.zeros(3))
    found = piaget.Replayed(torch.ones(3, dtype=torch.bool), {}, targets, form).probabilities(out)
    torch.testing.assert_close(found.sum(1), torch.ones(3))
    torch.testing.assert_close(found[0, :3], out[0].softmax(0))
    assert found[1, 2] == found[1, 3] == found[2, 1] == 0
    torch.testing.assert_close(found[2, 0], out[2, 0].sigmoid())


# --- on_epoch, schedules, initial epochs ------------------------------------------------------------------


def test_on_epoch_is_told_scores_and_may_stop():
    settings = SMALL | {"algorithm": "compositional"}
    learner, tasks = piaget.Learner(**settings, epochs=10, initial_epochs=2), mixed_tasks(3)
    told = []

    def watch(report):
        told.append((report.stage, report.score("train"), report.score("validation")))
        return len(told) >= 4

    for task in tasks:
        learner.learn(task, on_epoch=watch)
    assert [stage for stage, *_ in told] == ["initialization"] * 2 + ["assimilation"] * 2 + ["adaptation"]
    assert told[-1][1] == pytest.approx(score_of(learner, tasks[2], "train"))
    assert told[-1][2] == pytest.approx(score_of(learner, tasks[2], "validation"))
    with pytest.raises(piaget.TaskError, match="has no moon data"):
        learner.learn(make_task("task 9"), on_epoch=lambda report: bool(report.score("moon")))


def score_of(learner, task, split):
    rows = learner.evaluate(task, split)
    return next(row["value"] for row in rows if row["metric"] in ("accuracy", "rmse"))


def test_asking_for_scores_changes_nothing():
    learners = [piaget.Learner(**SMALL, epochs=4) for _ in range(2)]
    for task in mixed_tasks(4):
        learners[0].learn(task)
        learners[1].learn(task, on_epoch=lambda report: report.score("validation") < 0)
    assert_same(*learners)


def test_a_schedule_of_ones_own_says_who_learns():
    decoder_first = piaget.StageKind("warm-up", frozenset(["decoder"]))

    @dataclass(frozen=True)
    class WarmUp(piaget.Schedule):
        def stages(self):
            return [decoder_first, decoder_first, ASSIMILATION, ADAPTATION]

    learner, tasks = piaget.Learner(**SMALL, schedule=WarmUp(), algorithm="compositional"), mixed_tasks(3)
    for task in tasks[:2]:
        learner.learn(task)
    seen = []

    def look(report):
        if report.score("train") is not None:
            params = learner.state.records["task 2"].params
            seen.append({n: getattr(params, n) | {} for n in ("encoder", "structure", "decoder")})

    learner.learn(tasks[2], on_epoch=look)
    for part in ("encoder", "structure"):
        assert all(torch.equal(t, seen[1][part][name]) for name, t in seen[0][part].items())
    assert not torch.equal(seen[0]["decoder"]["weight"], seen[1]["decoder"]["weight"])
    assert not torch.equal(seen[1]["encoder"]["weight"], seen[2]["encoder"]["weight"])


def test_initial_epochs_follow_the_schedule_unless_given():
    schedule = piaget.Algorithm(piaget.Staged(6, 3, 1))
    assert piaget.Learner(algorithm=schedule).settings.initial_epochs == 8
    assert piaget.Learner(algorithm=schedule, initial_epochs=3).settings.initial_epochs == 3
    assert piaget.Learner(epochs=7).settings.initial_epochs == 7
    assert piaget.Learner().settings.initial_epochs == 100
    assert piaget.Learner("linear", algorithm="joint").settings.initial_epochs == 10_000


# --- encoders -----------------------------------------------------------------------------------------------


def test_an_encoder_of_ones_own_learns_and_may_be_shared():
    for shared in (False, True):
        learner = piaget.Learner(**SMALL, encoder=TwoLayers(shared=shared), epochs=4, adaptation="er")
        tasks = [make_task(f"task {i}", seed=i) for i in range(4)]
        for task in tasks:
            learner.learn(task)
        own = [bool(record.params.encoder) for record in learner.state.records.values()]
        assert own == [not shared] * 4
        assert bool(learner.state.shared.encoder) == shared
        assert len(learner.predict(tasks[0].test.x, "task 0")) == 30


def test_a_stem_before_convolutions():
    """Raw inputs, vectors here, become images."""

    @dataclass(frozen=True)
    class Stem(piaget.Encoder):
        def output_shape(self, input_shape, components):
            return (2, 8, 8)

        def draw(self, generator, input_shape, components, dtype):
            shape = (math.prod(input_shape), 128)
            return {"weight": torch.randn(shape, generator=generator, dtype=dtype) / 8}

        def apply(self, params, x):
            return (x.flatten(1) @ params["weight"]).unflatten(1, (2, 8, 8))

    learner = piaget.Learner(
        encoder=Stem(), components=piaget.Conv(4), depth=2, initial_components=2, initial_tasks=2, epochs=3
    )
    tasks = binary_tasks(4)
    for task in tasks:
        learner.learn(task)
    assert len(learner.predict(tasks[3].test.x, "task 3")) == 30


# --- the paper's algorithm in plain sight -------------------------------------------------------------------


def test_algorithm_1_learns():
    stream = piaget.stream("digits", seed=0, train_size=100)[:6]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        accuracies = algorithm_1(stream, struct_updates=24, adapt_freq=12, rate=5e-3)
    assert sum(accuracies) / 6 > 0.85
