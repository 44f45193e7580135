"""Validated adaptation: how much of it is taken over, judged by data that was not trained on."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

import piaget
from piaget.errors import SettingError
from piaget.knowledge.state import State
from piaget.method.acceptance import judged, mean_and_error, replayed
from piaget.method.adaptation import Stored
from piaget.method.trees import leaves, map_tree
from tests.small import binary_tasks, make_task, mixed_tasks
from tests.test_extending import SMALL, STAGED, Killed, assert_same

METRIC = "adapted share"


@dataclass(frozen=True)
class Always(piaget.Acceptance):
    """Takes a certain share, whatever is judged."""

    taken: float = 0.5
    asks: bool = False

    def share(self, adapted: piaget.Adapted) -> float:
        if self.asks:
            SEEN.append((adapted, adapted.judge(0.0), adapted.judge(1.0)))
        return self.taken


SEEN: list[Any] = []


def learned(tasks, **settings):
    learner = piaget.Learner(**(SMALL | {"algorithm": "compositional", "epochs": 4} | settings))
    rows = [row for task in tasks for row in learner.learn(task)]
    return learner, {(row["trained"], row["epoch"]): row["value"] for row in rows if row["metric"] == METRIC}


# --- the rule ---------------------------------------------------------------------------------------------


def adapted(costs, n=10):
    """Each task's cost as a function of the share, the same for all of its samples."""

    def judge(share):
        values = [torch.full((n + 7 * i,), float(cost(share))) for i, cost in enumerate(costs)]
        return [piaget.Judgement(str(i), v, v) for i, v in enumerate(values)]

    return piaget.Adapted({}, {}, judge)


@pytest.mark.parametrize("by", ["loss", "error"])
@pytest.mark.parametrize(
    ("costs", "share"),
    [
        ([lambda s: 1 - s], 1.0),
        ([lambda s: 1 + s], 0.0),
        ([lambda s: (s - 0.5) ** 2], 0.5),
        ([lambda s: 1.0], 0.0),  # of equal ones, the smallest movement
        ([lambda s: abs(s - 0.625)], 0.5),  # between two that are equally near
        ([lambda s: -s, lambda s: 0.4 * s, lambda s: 0.5 * s], 1.0),  # tasks count alike
        ([lambda s: -s, lambda s: 0.6 * s, lambda s: 0.5 * s], 0.0),
    ],
)
def test_the_best_share_of_all_tasks_alike(by, costs, share):
    assert piaget.Validated(by=by).share(adapted(costs)) == share


def test_what_noise_could_have_done_is_not_taken_over():
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(50, generator=generator, dtype=torch.float64)

    def judge(share):  # a gain of 0.1 with a standard error of about 1 / sqrt(50) = 0.14
        losses = 1 - 0.1 * share + share * (noise - noise.mean())
        return [piaget.Judgement("a", losses, losses)]

    one = piaget.Adapted({}, {}, judge)
    assert piaget.Validated().share(one) == 1.0
    assert piaget.Validated(margin=0.5).share(one) == 1.0
    assert piaget.Validated(margin=1.0).share(one) == 0.0


def test_mean_and_error_against_the_definition():
    tasks = [torch.tensor([1.0, 2.0, 6.0]).double(), torch.tensor([4.0]).double()]
    mean, error = mean_and_error(tasks)
    assert mean == pytest.approx((3 + 4) / 2)
    assert error == pytest.approx((7 / 3) ** 0.5 / 2)  # variance 7 of three samples; one sample tells none


def test_held_out_samples_are_judged_by_and_the_others_replayed():
    for n, held in ((1, 0), (2, 1), (5, 1), (8, 2), (32, 8)):
        stored = Stored(3, torch.arange(float(n))[:, None], torch.arange(n), {"more": torch.arange(n)})
        (kept,), (apart,) = replayed([stored], 0.25), judged([stored], 0.25)
        assert len(kept.y) == n - held
        assert sorted({*kept.y.tolist(), *apart.y.tolist()}) == list(range(n))
        assert not held or not {*kept.y.tolist()} & {*apart.y.tolist()}
        assert torch.equal(apart.fields["more"], apart.y)
        assert torch.equal(kept.h[:, 0].long(), kept.y)
        for whole in (replayed([stored], 0.0), judged([stored], 0.0)):
            assert torch.equal(whole[0].y, stored.y)


# --- what is taken over -----------------------------------------------------------------------------------


def test_taking_all_is_as_if_nobody_was_asked():
    tasks = mixed_tasks(4)
    plain, rows = learned(tasks, algorithm=STAGED)
    assert not rows
    asked, rows = learned(tasks, algorithm=STAGED, acceptance=Always(1.0, asks=True))
    assert len(rows) == 4
    assert set(rows.values()) == {1.0}
    assert_same(plain, asked)


def test_taking_nothing_is_as_if_components_never_adapted():
    """Also for the optimizer's numbers; structures, encoders and decoders are learned all the same."""
    tasks = binary_tasks(4)
    none, rows = learned(tasks, acceptance=Always(0.0), adaptation="nft")
    assert set(rows.values()) == {0.0}
    initial, _ = learned(tasks[:2], adaptation="nft")
    for one, other in zip(leaves(none.state.common), leaves(initial.state.common), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"algorithm": STAGED},
        {"encoder": "shared", "decoder": "shared"},
        {"algorithm": "no-components"},
        {"algorithm": "no-components", "optimizer": "sgd"},
        {"algorithm": "joint", "structure": "soft-gating"},
    ],
)
def test_a_share_lies_between_for_all_that_earlier_tasks_depend_on(monkeypatch, settings):
    put, pairs = State.put, []

    def seen(state, common):
        if state.progress is not None and state.progress.before is not None:
            pairs.append((state.progress.before, state.common, common))
        put(state, common)

    tasks = [make_task(f"task {i}", seed=i) for i in range(4)]
    monkeypatch.setattr(State, "put", seen)
    learner, rows = learned(tasks, acceptance=Always(0.25), **settings)
    assert set(rows.values()) == {0.25}
    assert len(pairs) == len(rows)
    for before, after, taken in pairs:
        expected = map_tree(lambda a, b: 0.75 * a + 0.25 * b, before, after)
        for one, other in zip(leaves(taken), leaves(expected), strict=True):
            torch.testing.assert_close(one, other)
        assert not torch.equal(before.components["weight"], after.components["weight"])
        if settings.get("encoder") == "shared":
            assert not torch.equal(before.shared.encoder["weight"], after.shared.encoder["weight"])
        if settings.get("algorithm") == "no-components":
            assert before.past
            for name, params in before.past.items():
                assert not torch.equal(params.decoder["weight"], after.past[name].decoder["weight"])
    assert all(bool(torch.isfinite(t).all()) for t in leaves(learner.state.common))


@pytest.mark.parametrize("settings", [{}, {"encoder": "shared"}, {"algorithm": "no-components"}])
def test_judgements_are_the_losses_of_the_tasks_networks(settings):
    """Against the learner's own scores, on the same data; stored samples are the whole training data here."""
    tasks = (
        mixed_tasks(4) if not settings.get("encoder") else [make_task(f"task {i}", seed=i) for i in range(4)]
    )
    SEEN.clear()
    learner, _ = learned(tasks, adaptation=piaget.Replay(30), acceptance=Always(1.0, asks=True), **settings)
    _, _, judgements = SEEN[-1]
    assert [one.task for one in judgements] == ["task 3", "task 0", "task 1", "task 2"]
    for one in judgements:
        task = tasks[int(one.task.split()[1])]
        split = "validation" if one.task == "task 3" else "train"
        scores = {row["metric"]: row["value"] for row in learner.evaluate(task, split)}
        assert float(one.losses.mean()) == pytest.approx(scores["loss"])
        errors = scores["rmse"] ** 2 if task.kind == "regression" else 1 - scores["accuracy"]
        assert float(one.errors.mean()) == pytest.approx(errors)


def test_a_candidate_on_trial_is_judged_in_both_passes():
    SEEN.clear()
    tasks = binary_tasks(3)
    settings = {"algorithm": "dynamic", "expansion": piaget.ComponentDropout(-9.0)}  # it is kept
    learner, _ = learned(tasks, acceptance=Always(1.0, asks=True), **settings)
    network = piaget.scoring.scores.TaskNetwork(learner.settings, learner.state, learner.record("task 2"))
    h, y = network.encoded(tasks[2].validation)
    both = [network.losses(network.outputs_of_encoded(h, k), y) for k in (3, 4)]
    torch.testing.assert_close(SEEN[-1][2][0].losses, (both[0] + both[1]) / 2)
    assert not torch.allclose(both[0], both[1])


def test_it_never_does_worse_on_what_it_is_judged_by(monkeypatch):
    """A rate at which adaptation does harm: the mean over tasks is no worse than without adaptation."""
    shares, share = [], piaget.Validated.share

    def seen(part, one):
        taken = share(part, one)
        costs = [mean_and_error([j.losses for j in one.judge(s)])[0] for s in (0.0, taken, 1.0)]
        shares.append((taken, *costs))
        return taken

    monkeypatch.setattr(piaget.Validated, "share", seen)
    learned(mixed_tasks(8), acceptance="validated", learning_rate=0.3, epochs=6, adapt_every=2)
    assert len(shares) == 18
    assert all(cost <= nothing and cost <= everything for _, nothing, cost, everything in shares)
    assert any(taken < 1 for taken, *_ in shares)
    assert any(taken > 0 for taken, *_ in shares)


# --- carried on, in company, on disk ----------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", [STAGED, "joint", "no-components"])
@pytest.mark.parametrize("epoch", [2, 3, 4, 5])
def test_interrupted_after_any_epoch(algorithm, epoch, tmp_path):
    """Also after the last one of a stage, when all is trained and nothing is judged yet."""
    tasks = mixed_tasks(4, n=20)
    settings = SMALL | {"algorithm": algorithm, "acceptance": Always(0.5), "learning_rate": 0.05}
    if isinstance(algorithm, str):
        settings |= {"epochs": 5}
    whole, part = piaget.Learner(**settings), piaget.Learner(**settings)
    rows = [row for task in tasks for row in whole.learn(task)]
    for task in tasks[:3]:
        part.learn(task)

    def kill(report):
        report.score("train")  # brings the state up to date
        if report.epoch == epoch:
            raise Killed

    with pytest.raises(Killed):
        part.learn(tasks[3], on_epoch=kill)
    part.save(tmp_path)
    loaded = piaget.Learner.load(tmp_path, acceptance=Always(0.5))
    for learner in (part, loaded):
        again = learner.learn(tasks[3])
        assert_same(whole, learner)
        told = [row["value"] for row in again if row["metric"] == METRIC]
        assert told == [0.5] * len(told)
    assert [row["value"] for row in rows if row["metric"] == METRIC]


def test_a_file_with_a_beginning_that_nobody_judges_is_refused(tmp_path):
    learner = piaget.Learner(**SMALL, algorithm="joint", epochs=4, acceptance="validated")
    tasks = binary_tasks(3)
    for task in tasks[:2]:
        learner.learn(task)
    with pytest.raises(KeyboardInterrupt):
        learner.learn(tasks[2], every=1, on_epoch=lambda report: interrupt(report))
    assert learner.state.progress is not None
    assert learner.state.progress.before is not None
    learner.save(tmp_path)
    assert piaget.Learner.load(tmp_path).state.progress is not None
    learner.settings = replace(learner.settings, acceptance=piaget.TakeAll())
    learner.save(tmp_path)
    with pytest.raises(piaget.LoadError, match="nobody judges"):
        piaget.Learner.load(tmp_path)


def interrupt(report):
    if report.epoch == 2:
        raise KeyboardInterrupt


def test_mistakes():
    with pytest.raises(SettingError, match=r"Always: a share of 1\.5; expected a number from 0 to 1"):
        learned(binary_tasks(3), acceptance=Always(1.5))
    for wrong in ({"steps": 0}, {"by": "luck"}, {"margin": -1}, {"held_out": 1}):
        with pytest.raises(SettingError, match=f"{next(iter(wrong))}="):
            piaget.Validated(**wrong)
    task = make_task("a")
    bare = piaget.Task("a", task.kind, task.train, classes=task.classes)
    with pytest.raises(piaget.TaskError, match="no validation split, but adaptation is judged by it"):
        piaget.Learner(acceptance="validated", algorithm="compositional").learn(bare)
    with pytest.raises(SettingError, match="held_out is not a setting of TakeAll"):
        piaget.Learner(acceptance="all", held_out=0.5)
