"""Components that are removed or merged when a task has been learned."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch

import piaget
from piaget.knowledge.reducing import reduce, reduced
from piaget.method.trees import leaves, map_tree
from piaget.scoring.bounding import Guard, reduce_all
from piaget.scoring.probing import altered, network, removed
from piaget.scoring.watch import Watch
from tests.lives import check_in_company
from tests.small import binary_tasks, mixed_tasks
from tests.test_extending import SMALL, Killed, assert_same, killed_at

GROWING = piaget.Algorithm(piaget.Staged(3, 3, 1), piaget.ComponentDropout(-9.0), name="dynamic")
STRUCTURES = ("soft-ordering", "soft-gating", "soft-ordering-scaled", "linear")


def learner_of(**settings: Any) -> piaget.Learner:
    return piaget.Learner(**(SMALL | {"algorithm": GROWING} | settings))


def grown(structure: str = "soft-ordering", tasks: int = 5, **settings: Any):
    """A learner that kept every candidate: tasks 0 and 1 may use 3 components, task t the first t + 2."""
    if structure == "linear":
        settings |= {"width": None}
    stream = binary_tasks(tasks, n=20)
    learner = learner_of(structure=structure, **settings)
    for task in stream:
        learner.learn(task)
    assert learner.components == 3 + tasks - 2
    return learner, stream


def learn_all(learner: piaget.Learner, tasks: Sequence[piaget.Task]) -> None:
    for task in tasks:
        learner.learn(task)


def outputs(learner, tasks: Sequence[piaget.Task]) -> dict[str, torch.Tensor]:
    return {t.name: network(learner, t).outputs(t.train.x.to(learner.settings.torch_dtype)) for t in tasks}


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(leaves(one), leaves(other), strict=True))


# --- one change ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("component", [0, 2, 4])
def test_without_a_component_the_others_share_its_weight(structure, component):
    learner, tasks = grown(structure)
    looked_at = altered(learner, removed(learner.settings.structure, component))
    expected, before = outputs(looked_at, tasks), outputs(learner, tasks)
    ks = {name: record.k for name, record in learner.state.records.items()}
    reduce(learner.settings, learner.state, piaget.Change(component))
    assert learner.components == 5
    for task in tasks:
        record, found = learner.state.records[task.name], outputs(learner, [task])[task.name]
        assert record.k == ks[task.name] - (component < ks[task.name])
        assert record.usage is not None
        assert record.usage.shape[0] == record.k
        assert torch.isfinite(found).all()
        if component >= ks[task.name]:
            torch.testing.assert_close(found, before[task.name], rtol=1e-12, atol=1e-12)
        elif task not in tasks[:2] or "ordering" not in structure:  # else it may have been a depth's only one
            torch.testing.assert_close(found, expected[task.name], rtol=1e-9, atol=1e-10)
    assert len(learner.state.moments.updates) == 5
    assert all(len(t) == 5 for slots in learner.state.moments.slots.values() for t in slots.values())


def test_where_it_was_the_only_one_all_others_have_the_same_weight():
    logits = torch.tensor([[1.0, -math.inf], [-math.inf, 1.0], [-math.inf, -math.inf]])
    left = piaget.SoftOrdering().removed({"logits": logits}, 0)["logits"].softmax(0)
    torch.testing.assert_close(left, torch.tensor([[0.5, 1.0], [0.5, 0.0]]))


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("structure", ["soft-ordering", "linear"])
def test_merged_outputs_are_those_of_a_plain_computation(structure, share):
    """The merged component has both weights, and parameters between those of the two."""
    learner, tasks = grown(structure)
    state = learner.state
    components = map_tree(torch.clone, state.components)
    old = {name: map_tree(torch.clone, record.params) for name, record in state.records.items()}
    reduce(learner.settings, state, piaget.Change(4, 1, share))
    for task in tasks:
        record, own = state.records[task.name], old[task.name]
        params = {n: p.clone() for n, p in components.items()}
        for p in params.values():  # all six of them, the merged one twice
            p[1] = p[4] = (1 - share) * p[1] + share * p[4]
        x, k = task.train.x.to(torch.float64), len(next(iter(own.structure.values())))
        if structure == "linear":
            expected = learner.model.components.apply(params, x)[:, :k] @ own.structure["psi"]
        else:
            h, weights = learner.model.encode(own.encoder, x), own.structure["logits"].softmax(0)
            for depth in range(3):
                each = learner.model.components.apply(params, h)[:, :k]
                h = (each * weights[:, depth].view(1, k, 1)).sum(1)
            expected = learner.model.decoder.apply(own.decoder, h)
        torch.testing.assert_close(outputs(learner, [task])[task.name], expected, rtol=1e-9, atol=1e-10)
        assert record.k == k - (k > 4)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_merging_a_copy_changes_nothing(structure):
    """A component that is the same as another one, wherever gates weigh the two in a constant ratio."""
    learner, tasks = grown(structure)
    state = learner.state
    for p in state.components.values():
        p[4] = p[1]
    for record in state.records.values():
        own = record.params.structure
        if "weight" in own and record.k > 4:
            own["weight"][:, 4], own["bias"][:, 4] = own["weight"][:, 1], own["bias"][:, 1] + 0.7
            assert record.usage is not None
            record.usage[4] = record.usage[1] * math.exp(0.7)
    before = outputs(learner, tasks)
    for share in (0.0, 0.5, 1.0):
        trial = reduced(learner.settings, state, piaget.Change(4, 1, share))
        learner.state = trial
        for name, found in outputs(learner, tasks).items():
            torch.testing.assert_close(found, before[name], rtol=1e-9, atol=1e-10)
        learner.state = state
    for name, found in outputs(learner, tasks).items():  # trying leaves everything as it was
        assert torch.equal(found, before[name])


def test_a_merged_gate_is_nowhere_above_that_of_both():
    gating, generator = piaget.SoftGating(), torch.Generator().manual_seed(0)
    frame = piaget.Frame(piaget.Dense(4), [(4,)] * 3, 3, 1, torch.float64)
    own = {n: 3 * t for n, t in gating.draw(generator, frame).items()}
    h = torch.randn(50, 4, generator=generator, dtype=torch.float64)

    def gates(params, depth):
        return h @ params["weight"][depth].T + params["bias"][depth]  # (50, k)

    three = torch.ones(3, dtype=torch.bool)
    usage = gating.usage(frame.components, own, three, [h, h])
    merged = gating.merged(own, 2, 0, usage)
    for depth in range(2):
        both = torch.logsumexp(gates(own, depth)[:, [0, 2]], 1)
        gap = both - gates(merged, depth)[:, 0]
        assert gap.min() > -1e-12
        assert gap.min() < 0.05 < gap.max()
        torch.testing.assert_close(gates(merged, depth)[:, 1], gates(own, depth)[:, 1])


# --- what is proposed --------------------------------------------------------------------------------------


def test_the_least_used_and_the_most_similar_are_proposed():
    generator = torch.Generator().manual_seed(0)
    components = {"w": torch.randn(5, 4, 3, generator=generator), "b": torch.randn(5, 4, generator=generator)}
    for p in components.values():
        p[3] = 2 * (p[1] + 1e-3)  # 1/3 apart, relative to their size
        p[4] = p[2] * 1.01
    usage = torch.tensor([0.5, 0.4, 0.3, 0.1, 0.9])
    found = piaget.PruneAndMerge(pairs=2).proposals(components, usage)
    assert found[0] == piaget.Change(3)
    assert [change[:2] for change in found[1:]] == [(4, 2)] * 3 + [(3, 1)] * 3
    assert [change.share for change in found[1:4]] == pytest.approx([0, 0.75, 1])
    assert piaget.PruneAndMerge(removals=2, pairs=0).proposals(components, usage) == [
        piaget.Change(3),
        piaget.Change(2),
    ]
    nothing = piaget.PruneAndMerge(pairs=9).proposals({"w": torch.ones(1, 2)}, torch.ones(1))
    assert nothing == [piaget.Change(0)]
    alike = piaget.PruneAndMerge(removals=0).proposals({"w": torch.zeros(2, 2)}, torch.zeros(2))
    assert [change.share for change in alike] == [0, 0.5, 1]


# --- what is done ------------------------------------------------------------------------------------------


def plain_losses(learner, task):
    """Of each known task, on its stored samples, and of the last one on validation data."""
    state, model, found = learner.state, learner.model, {}
    names = list(state.records)
    samples = {names[s.task]: (s.h, s.y) for s in piaget.stored_samples(state.memory)}
    record = state.records[task.name]
    samples[task.name] = (model.encode(record.params.encoder, task.validation.x), task.validation.y)
    for name, (h, y) in samples.items():
        record = state.records[name]
        out = model.outputs_of_encoded(state.params(record, model), h, record.visible(state.k))
        loss = torch.nn.functional.binary_cross_entropy_with_logits
        found[name] = float(loss(out[:, 0], y.double()))
    return found


@pytest.mark.parametrize("structure", ["soft-ordering", "soft-gating"])
def test_no_task_loses_more_than_the_tolerance(structure):
    longer = piaget.Algorithm(piaget.Staged(15, 15, 1), GROWING.expansion)  # so that components matter
    learner, tasks = grown(structure, tasks=5, algorithm=longer, dropout=0.0)
    before, counts = plain_losses(learner, tasks[4]), []
    for tolerance in (0.0, 0.02, 0.2, 1e9):
        rule = piaget.PruneAndMerge(tolerance, pairs=20)
        reducing = learner_of(structure=structure, reduction=rule)
        reducing.state = learner.state.snapshot()
        done = reduce_all(reducing.settings, reducing.state, tasks[4])
        assert len(done) == learner.components - reducing.components
        rises = [after - before[name] for name, after in plain_losses(reducing, tasks[4]).items()]
        if done:
            assert max(rises) <= tolerance
            assert max(rise for rise, _ in done) <= tolerance
        counts.append(reducing.components)
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1] == 3  # it is the tolerance that decides, down to as many as at first


@pytest.mark.parametrize("change", [piaget.Change(1), piaget.Change(6, 2, 0.4), piaget.Change(4, 3)])
def test_the_rise_is_that_of_a_plain_computation(change):
    learner, tasks = grown(tasks=6)
    before = plain_losses(learner, tasks[5])
    guard = Guard(learner.settings, learner.state, tasks[5])
    assert guard.before == pytest.approx(before)
    rise, ks = guard.rise(change), {name: record.k for name, record in learner.state.records.items()}
    learner.state = reduced(learner.settings, learner.state, change)
    after = plain_losses(learner, tasks[5])
    assert rise == pytest.approx(max(after[n] - before[n] for n in before if ks[n] > change.first))
    assert all(after[n] == pytest.approx(before[n]) for n in before if ks[n] <= change.first)


def test_fewer_than_at_first_only_if_asked():
    learner, tasks = grown(tasks=4)
    for least, left in ((None, 3), (1, 1), (4, 4), (9, 5)):
        trial = learner_of(reduction=piaget.PruneAndMerge(1e9, least=least))
        trial.state = learner.state.snapshot()
        reduce_all(trial.settings, trial.state, tasks[3])
        assert trial.components == left
        assert min(record.k for record in trial.state.records.values()) >= 1
        assert all(torch.isfinite(out).all() for out in outputs(trial, tasks).values())


def test_a_copy_is_merged_and_told_of():
    learner, tasks = grown(tasks=4)
    learner.settings = learner_of(reduction=piaget.PruneAndMerge(1e-9, removals=0, pairs=1)).settings
    for p in learner.state.components.values():
        p[4] = p[0]
    expected = outputs(learner, tasks)
    watch = Watch(learner.settings, learner.state, [])
    done = reduce_all(learner.settings, learner.state, tasks[3])
    watch.reductions("task 3", done)
    assert learner.components == 4
    for name, found in outputs(learner, tasks).items():
        torch.testing.assert_close(found, expected[name], rtol=1e-9, atol=1e-10)
    merged, rise = watch.rows
    assert (merged["metric"], merged["component"], merged["value"]) == ("component merged", 4, 0)
    assert (rise["metric"], rise["component"]) == ("rise by merging", 4)
    assert abs(rise["value"]) < 1e-9
    assert merged["stage"] == "reduction"


def test_tasks_without_samples_are_not_touched():
    learner, tasks = grown(tasks=4)
    del learner.state.memory["1"]  # it may use the first three
    learner.settings = learner_of(reduction=piaget.PruneAndMerge(1e9, least=1)).settings
    guard = Guard(learner.settings, learner.state, tasks[3])
    for change in (piaget.Change(2), piaget.Change(4, 2), piaget.Change(4, 0)):
        assert guard.rise(change) == math.inf
    for change in (piaget.Change(3), piaget.Change(4), piaget.Change(4, 3, 0.5)):
        assert guard.rise(change) < math.inf
    before = map_tree(torch.clone, learner.state.records["task 1"].params)
    reduce_all(learner.settings, learner.state, tasks[3])
    assert learner.components < 5
    assert same(before, learner.state.records["task 1"].params)


def test_a_snapshot_stays_as_it_is():
    learner, tasks = grown(tasks=4)
    still = learner.state.snapshot()
    before = {
        name: (record.k, map_tree(torch.clone, record.params)) for name, record in still.records.items()
    }
    learner.settings = learner_of(reduction=piaget.PruneAndMerge(1e9)).settings
    reduce_all(learner.settings, learner.state, tasks[3])
    assert (learner.components, still.k) == (3, 5)
    for name, (k, params) in before.items():
        assert still.records[name].k == k
        assert same(still.records[name].params, params)


# --- as part of learning -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kept(piaget.Replay):
    """Frozen components, and samples stored for nothing but to guard tasks."""

    name, trains_components = "kept", False


REDUCING: dict[str, dict[str, Any]] = {
    "soft ordering": {"reduction": piaget.PruneAndMerge(0.1)},
    "soft gating": {"structure": "soft-gating", "reduction": piaget.PruneAndMerge(0.1)},
    "scaled, shared encoder": {
        "structure": "soft-ordering-scaled",
        "encoder": "shared",
        "reduction": piaget.PruneAndMerge(0.2, least=2),
    },
    "best epoch, similar start": {
        "reduction": piaget.PruneAndMerge(0.1),
        "kept_epoch": "best",
        "start": "similar",
        "candidate_start": "most-used",
    },
    "past decoders learn": {
        "algorithm": piaget.Algorithm(piaget.Joint(3, past=True), piaget.ComponentDropout(-9.0)),
        "reduction": piaget.PruneAndMerge(0.3),
    },
    "frozen": {"adaptation": Kept(), "reduction": piaget.PruneAndMerge(0.1)},
    "linear": {"structure": "linear", "width": None, "reduction": piaget.PruneAndMerge(0.3)},
}


def stream_of(name):
    if "shared" in name or name == "linear":
        return binary_tasks(5, n=20)
    return mixed_tasks(5, n=20)


@pytest.mark.parametrize("name", REDUCING)
def test_interrupted_saved_and_carried_on(name, tmp_path, monkeypatch):
    tasks = stream_of(name)
    whole, part = learner_of(**REDUCING[name]), learner_of(**REDUCING[name])
    rows = [row for task in tasks for row in whole.learn(task)]
    gone = [row for row in rows if row["metric"] in ("component removed", "component merged")]
    assert gone, "the test needs components that go"
    counts = [row["value"] for row in rows if row["metric"] == "components"]
    kept = [row for row in rows if row["metric"] == "kept" and row["value"]]
    assert counts[-1] == whole.components == 3 + len(kept) - len(gone)
    for task in tasks[:3]:
        part.learn(task)
    killed_at(2, part, tasks[3])
    part.save(tmp_path / "midway")
    own = {"adaptation": Kept()} if name == "frozen" else {}
    part = piaget.Learner.load(tmp_path / "midway", **own)
    # Broken off when all is decided, before the task is finished: nothing is decided again.
    evaluate = Watch.evaluate

    def broken(*args, **kwargs):
        raise Killed

    monkeypatch.setattr(Watch, "evaluate", broken)
    with pytest.raises(Killed):
        part.learn(tasks[3])
    monkeypatch.setattr(Watch, "evaluate", evaluate)
    assert part.state.progress is not None
    assert part.state.progress.reduced
    part.save(tmp_path / "decided")
    part = piaget.Learner.load(tmp_path / "decided", **own)
    for task in tasks[3:]:
        part.learn(task)
    assert_same(whole, part)


@pytest.mark.parametrize("name", ["soft ordering", "soft gating"])
def test_the_same_in_a_cohort(name):
    """Whose learners have different numbers of components."""
    check_in_company(partial(learner_of, **REDUCING[name]), mixed_tasks(5, n=20), runs=3)


def test_none_is_as_if_there_were_no_such_thing():
    tasks = mixed_tasks(4, n=15)
    plain, never = learner_of(), learner_of(reduction=piaget.PruneAndMerge(0.0, removals=0, pairs=0))
    for task in tasks:
        plain.learn(task)
        never.learn(task)
    assert_same(plain, never)
    assert plain.settings.reduction == piaget.NoReduction()


def test_a_task_that_is_only_tried_changes_nothing():
    learner = learner_of(reduction=piaget.PruneAndMerge(1e9))
    tasks = binary_tasks(4, n=15)
    for task in tasks[:3]:
        learner.learn(task)
    rows = learner.try_task(tasks[3])
    assert not [row for row in rows if row["metric"].startswith("component ")]


@dataclass(frozen=True)
class Wrong(piaget.Reduction):
    change: tuple[int, int | None] = (0, None)
    tolerance = 1.0

    def proposals(self, components, usage):
        return [piaget.Change(*self.change)]


def test_what_does_not_fit_is_refused():
    for adaptation in ("nft", "ewc", "fm"):
        with pytest.raises(piaget.SettingError, match="stores no samples"):
            piaget.Learner(adaptation=adaptation, reduction="prune-and-merge")
    with pytest.raises(piaget.SettingError, match="could do without one"):
        piaget.Learner(algorithm="no-components", reduction="prune-and-merge")
    for wrong in ((9, None), (1, 1), (0, 2), (-1, None)):
        learner = learner_of(reduction=Wrong(wrong))
        with pytest.raises(piaget.SettingError, match="Wrong proposes component"):
            learn_all(learner, binary_tasks(3, n=15))


@dataclass(frozen=True)
class Hoarder(piaget.Replay):
    name = "hoarder"

    def remember(self, memory, finished):
        numbers = {"size": torch.ones(len(finished.visible))}
        return piaget.Replay.remember(self, memory, finished) | {"numbers": numbers}


def test_an_adaptation_with_numbers_of_components_has_to_say_what_becomes_of_them():
    learner = learner_of(adaptation=Hoarder(), reduction=piaget.PruneAndMerge(1e9))
    with pytest.raises(piaget.SettingError, match="Hoarder keeps more than stored samples"):
        learn_all(learner, binary_tasks(4, n=15))
