"""A second attempt at a task, with a candidate component: when it is made, and what is left of it."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import piaget
from piaget.errors import LoadError
from piaget.lesson import Lesson
from piaget.method import objective
from piaget.scoring.scores import TaskNetwork
from tests.small import binary_tasks, make_task, mixed_tasks, validation_of
from tests.test_extending import SMALL, Killed, assert_same, everything, killed_at

EPOCHS = 4


@dataclass(frozen=True)
class Told(piaget.Expansion):
    """A second attempt is always made, and its candidate kept or not, as it is told."""

    kept: bool
    proposes, in_second_attempt = True, True

    def keeps(self, evidence: piaget.Evidence) -> bool:
        SEEN.append(evidence)
        perfect = objective.perfect(evidence.kind, evidence.targets, evidence.without.shape[1])
        return self.kept or torch.equal(evidence.with_candidate, perfect)


@dataclass(frozen=True)
class Decided(Told):
    """The candidate is in every batch."""

    passes = (False,)


@dataclass(frozen=True)
class DecidedByDropout(Told):
    """Component dropout."""

    passes = (False, True)


SEEN: list[piaget.Evidence] = []


def learner(expansion, **settings: Any) -> piaget.Learner:
    chosen: dict[str, Any] = {"epochs": EPOCHS, "algorithm": "dynamic", "adaptation": "er"}
    return piaget.Learner(**(SMALL | chosen | settings), expansion=expansion)


def learned(tasks, expansion, **settings: Any) -> piaget.Learner:
    whole = learner(expansion, **settings)
    for task in tasks:
        whole.learn(task)
    return whole


def values(rows, metric):
    return [row["value"] for row in rows if row["metric"] == metric]


# --- when it is made ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_perfect_outputs_are_right_everywhere(kind):
    y = validation_of(make_task("t", kind, 3)).y
    out = objective.perfect(kind, y, objective.output_width(kind, 3))
    assert torch.equal(objective.predict(kind, out), y)
    assert objective.score(kind, out, y) == (0.0 if kind == "regression" else 1.0)


@pytest.mark.parametrize(("errors", "made"), [(4, False), (5, True)])
def test_it_is_made_if_a_perfect_candidate_would_be_kept(errors, made):
    """5 of 5 errors mended have p = 1 / 32; 4 of 4 have 1 / 16, whatever a candidate does."""
    without = torch.ones(30, 1)
    without[:errors] = -1
    evidence = piaget.Evidence.at_best("binary", without, torch.ones(30, dtype=torch.int64))
    assert piaget.SecondAttempt().keeps(evidence) == made


def test_a_task_that_needs_none_has_no_second_attempt():
    tasks = binary_tasks(4)
    reported: list[int] = []
    careful = learner(piaget.SecondAttempt(level=1e-12))  # 40 errors of 30 samples would be needed
    for task in tasks[:-1]:
        careful.learn(task)
    rows = careful.learn(tasks[-1], on_epoch=lambda report: reported.append(report.epoch))
    assert reported == list(range(1, EPOCHS + 1))
    assert not values(rows, "kept")
    assert {row["epoch"] for row in rows} == {2 * EPOCHS}  # as many as there might have been


def test_the_rules_are_mcnemars():
    generator = torch.Generator().manual_seed(0)
    for _ in range(200):
        targets = torch.randint(2, (40,), generator=generator)
        signs = torch.randint(2, (2, 40, 1), generator=generator) * 2.0 - 1
        evidence = piaget.Evidence("binary", signs[0], signs[1], targets)
        assert piaget.SecondAttempt().keeps(evidence) == piaget.McNemar().keeps(evidence)
    with pytest.raises(piaget.SettingError, match="level"):
        piaget.SecondAttempt(level=2.0)


# --- what is left of it -------------------------------------------------------------------------------------


@pytest.mark.parametrize("adaptation", ["fm", "er", "ewc", "nft"])
@pytest.mark.parametrize("acceptance", ["all", "validated"])
def test_one_that_is_not_kept_leaves_no_trace(adaptation, acceptance):
    """But for the steps that it took: the learner is, to the bit, one that never tries a component."""
    settings: dict[str, Any] = {"adaptation": adaptation, "acceptance": acceptance}
    if adaptation == "fm":
        settings["acceptance"] = "all"
    tasks = mixed_tasks(5)
    without = learned(tasks, "none", **settings)
    tried = learned(tasks, Decided(False), **settings)
    assert_same(without, tried)
    assert tried.components == SMALL["initial_components"]
    assert tried.state.steps > without.state.steps


@pytest.mark.parametrize("encoder", ["learned", "fixed"])
def test_one_that_is_kept_has_one_component_more_and_is_the_second_attempt(encoder):
    """Its evidence: what the first attempt answered, and what the second one does."""
    *past, task = binary_tasks(4)
    first = learned([*past, task], "none", encoder=encoder)
    SEEN.clear()
    kept = learned(past, Decided(True), encoder=encoder)
    before = kept.components
    SEEN.clear()
    rows = kept.learn(task)
    assert kept.components == before + 1
    assert values(rows, "kept") == [1.0]
    _, evidence = SEEN
    split = validation_of(task)

    def answers(one: piaget.Learner) -> torch.Tensor:
        network = TaskNetwork(one.settings, one.state, one.state.records[task.name])
        return network.outputs(network.inputs(split.x))

    torch.testing.assert_close(evidence.with_candidate, answers(kept))
    assert len(past) - SMALL["initial_tasks"] == 1  # so the first attempt had a component more than `first`
    assert not torch.equal(evidence.without, answers(first))
    # What is scored in the rows is the second attempt's, also if its encoder is drawn anew and stays so.
    (score,) = [row["value"] for row in rows if row["metric"] == "accuracy" and row["split"] == "test"]
    (again,) = [row["value"] for row in kept.evaluate([task]) if row["metric"] == "accuracy"]
    assert score == again


def test_evidence_without_the_candidate_is_the_first_attempts():
    tasks = binary_tasks(3)
    first = learned(tasks, "none")
    SEEN.clear()
    learned(tasks, Decided(True))
    split, name = validation_of(tasks[2]), tasks[2].name
    network = TaskNetwork(first.settings, first.state, first.state.records[name])
    answers = network.outputs(network.inputs(split.x))
    for evidence in SEEN:  # whether to try, and whether to keep
        assert torch.equal(evidence.without, answers)


@pytest.mark.parametrize("adaptation", ["fm", "er"])
@pytest.mark.parametrize("first_is_better", [True, False])
def test_the_better_of_both_attempts_stays_if_the_candidate_does_not(
    monkeypatch, adaptation, first_is_better
):
    *past, task = binary_tasks(3)
    without = learned([*past, task], "none", adaptation=adaptation)
    tried = learned(past, DecidedByDropout(False), adaptation=adaptation)
    split = validation_of(task)
    if not first_is_better:
        wrong = objective.perfect("binary", 1 - split.y, 1)
        monkeypatch.setattr(Lesson, "_first_outputs", lambda self, task: wrong)
    else:
        monkeypatch.setattr(piaget.Evidence, "errors", property(lambda self: (0.5, 0.5)))  # none is worse
    SEEN.clear()
    rows = tried.learn(task)
    assert values(rows, "kept") == [0.0]
    assert tried.components == SMALL["initial_components"]
    network = TaskNetwork(tried.settings, tried.state, tried.state.records[task.name])
    torch.testing.assert_close(SEEN[-1].without, network.outputs(network.inputs(split.x)))
    if first_is_better:
        assert_same(without, tried)
    else:
        first = TaskNetwork(without.settings, without.state, without.state.records[task.name])
        assert not torch.allclose(SEEN[-1].without, first.outputs(first.inputs(split.x)))


def test_a_candidate_that_was_never_hidden_is_compared_with_the_first_attempt_alone(monkeypatch):
    """The network without it was not trained: it must not stay, however many samples it has right."""
    *past, task = binary_tasks(3)
    wrong = objective.perfect("binary", 1 - validation_of(task).y, 1)
    tried = learned(past, Decided(False))
    monkeypatch.setattr(Lesson, "_first_outputs", lambda self, task: wrong)
    SEEN.clear()
    tried.learn(task)
    assert torch.equal(SEEN[-1].without, wrong)
    assert_same(learned([*past, task], "none"), tried)


# --- interrupted, saved, in cohorts -------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("epoch", [1, EPOCHS, EPOCHS + 1, 2 * EPOCHS])
@pytest.mark.parametrize("rule", [Decided, DecidedByDropout])
def test_interrupted_it_goes_on_as_if_nothing_had_been(rule, kept, epoch, tmp_path):
    tasks = mixed_tasks(4)
    whole = learned(tasks, rule(kept))
    part = learned(tasks[:3], rule(kept))
    killed_at(epoch, part, tasks[3])
    assert part.state.progress is not None
    assert (part.state.progress.first is not None) == (epoch > EPOCHS)
    part.save(tmp_path)
    part = piaget.Learner.load(tmp_path, expansion=rule(kept))
    part.learn(tasks[3])
    assert_same(whole, part)


def test_a_missing_origin_is_noticed(tmp_path):
    """Components that adapted in the first attempt are not those that a second one would begin with."""
    tasks = binary_tasks(3)
    part = learned(tasks[:2], piaget.SecondAttempt())
    killed_at(1, part, tasks[2])
    assert part.state.progress is not None
    assert part.state.progress.origin is not None
    part.state.progress.origin = None
    part.save(tmp_path)
    with pytest.raises(LoadError, match="second attempt"):
        piaget.Learner.load(tmp_path)


@pytest.mark.parametrize("adaptation", ["nft", "fm"])
def test_a_second_attempt_begins_with_components_as_they_were(adaptation):
    """Not as the first one adapted them: its assimilation leaves them alone, so they show until its end."""
    *past, task = binary_tasks(3)
    part = learned(past, Decided(True), adaptation=adaptation)
    before = {name: p.clone() for name, p in part.state.components.items()}
    seen: list[bool] = []

    def look(report: piaget.EpochReport) -> None:
        components = {name: p[: len(before[name])] for name, p in part.state.components.items()}
        seen.append(all(torch.equal(components[name], p) for name, p in before.items()))

    part.learn(task, on_epoch=look, every=1)
    adapts = adaptation != "fm"
    assert seen == ([True] * (EPOCHS - 1) + [not adapts]) * 2


@pytest.mark.parametrize("damage", ["without candidate", "shape", "nan", "generator"])
def test_a_damaged_first_attempt_is_noticed(damage, tmp_path):
    tasks = binary_tasks(3)
    part = learned(tasks[:2], piaget.SecondAttempt(level=0.99, least=0.0))
    killed_at(EPOCHS + 1, part, tasks[2])
    progress = part.state.progress
    assert progress is not None
    first = progress.first
    assert first is not None
    if damage == "without candidate":
        progress.first = None
    elif damage == "shape":
        components = {name: p[:-1] for name, p in first.common.components.items()}
        progress.first = first._replace(common=first.common._replace(components=components))
    elif damage == "nan":
        decoder = {name: p * torch.nan for name, p in first.params.decoder.items()}
        progress.first = first._replace(params=first.params._replace(decoder=decoder))
    else:
        progress.first = first._replace(generator=first.generator[:-8].clone())
    part.save(tmp_path)
    with pytest.raises(LoadError):
        piaget.Learner.load(tmp_path)


def test_in_a_cohort_some_may_have_one_and_others_not():
    """And those that have none wait for the others; all end with what they would have alone."""
    rule = piaget.SecondAttempt(level=1e-3, least=0.0)  # 10 errors, at least
    streams = [binary_tasks(5, n=24), [make_task(f"task {i}", n=24, seed=10 + i) for i in range(5)]]
    alone = [learner(rule, seed=seed) for seed in range(2)]
    attempts = []
    for one, tasks in zip(alone, streams, strict=True):
        attempts.append([len(values(one.learn(task), "kept")) for task in tasks])
    assert attempts[0] != attempts[1]
    cohort = piaget.Cohort([learner(rule, seed=seed) for seed in range(2)])
    for pair in zip(*streams, strict=True):
        cohort.learn(pair)
    for one, other in zip(alone, cohort.learners, strict=True):
        assert one.components == other.components
        ours, theirs = everything(one), everything(other)
        for key, tensor in ours.items():
            torch.testing.assert_close(theirs[key], tensor, rtol=1e-7, atol=1e-9, msg=key)


@dataclass(frozen=True)
class Exploding(piaget.CandidateStart):
    """A candidate that no training survives."""

    def begin(self, fresh, components, usage):
        return {name: p * 1e300 for name, p in fresh.items()}


def test_one_that_diverges_leaves_the_learner_as_it_was():
    tasks = binary_tasks(3)
    part = learned(tasks[:2], Decided(True), candidate_start=Exploding())
    before = everything(part)
    reported: list[int] = []
    with pytest.raises(piaget.Diverged):
        part.learn(tasks[2], every=1, on_epoch=lambda report: reported.append(report.epoch))
    assert reported[:EPOCHS] == list(range(1, EPOCHS + 1))  # the first attempt did not
    after = everything(part)
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert tasks[2].name not in part.tasks


def test_a_similar_start_does_not_take_the_first_attempt_for_a_past_task():
    """It would be the most similar of all."""
    tasks = binary_tasks(4)
    seen: list[int] = []

    @dataclass(frozen=True)
    class Counting(piaget.Start):
        def begin(self, new):
            seen.append(len(new.past))
            return new.drawn

    learned(tasks, Decided(False), start=Counting())
    assert seen == [2, 2, 3, 3]


def test_interrupted_after_a_reduction(tmp_path):
    """Where a second attempt would have begun is no longer kept when there was none."""
    tasks = binary_tasks(3)
    settings = {"reduction": piaget.PruneAndMerge(tolerance=1e9, least=2), "initial_components": 4}
    rule = piaget.SecondAttempt(level=1e-12)
    whole = learned(tasks, rule, **settings)
    part = learned(tasks[:2], rule, **settings)

    def kill(row):
        if row["metric"] == "components":
            raise Killed

    with pytest.raises(Killed):
        piaget.Cohort([part]).learn([tasks[2]], on_row=kill)
    part.save(tmp_path)
    part = piaget.Learner.load(tmp_path)
    part.learn(tasks[2])
    assert_same(whole, part)
    assert whole.components == 2


def test_a_shared_encoder_begins_again_as_it_was():
    """Also if components are frozen, and a stage of one's own trains what is shared."""

    @dataclass(frozen=True)
    class Warm(piaget.Schedule):
        def stages(self):
            warm = piaget.StageKind("warm-up", frozenset(["shared encoder", "structure", "decoder"]))
            return [warm] * EPOCHS

    tasks = binary_tasks(3)
    settings: dict[str, Any] = {"schedule": Warm(), "encoder": "shared", "adaptation": "fm"}
    assert_same(learned(tasks, "none", **settings), learned(tasks, Decided(False), **settings))
    part = learned(tasks[:2], Decided(True), **settings)
    before = {name: p.clone() for name, p in part.state.shared.encoder.items()}
    killed_at(EPOCHS, part, tasks[2])
    assert part.state.progress is not None
    assert part.state.progress.origin is not None
    assert all(torch.equal(p, part.state.progress.origin.shared.encoder[n]) for n, p in before.items())
