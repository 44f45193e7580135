"""A run gives the same result alone and in a cohort, whatever its companions do."""

import pytest
import torch

import piaget
from piaget.knowledge.snapshot import describe
from piaget.knowledge.storage import flatten
from piaget.method.choices import ALGORITHMS
from piaget.scoring.rows import Row
from tests.small import binary_tasks, image_tasks, make_task, mixed_tasks

KEEP_SOME = piaget.ComponentDropout(0.02)


def parameters(learner):
    return {n: t for n, t in flatten(describe(learner.state)[1]).items() if n != "generator"}


def compare(settings, streams, rtol=1e-7):
    """Trains each run alone and all in a cohort (float64), and compares everything."""
    make = lambda seed: piaget.Learner(**settings, seed=seed, dtype="float64")  # noqa: E731
    alone = [make(seed) for seed in range(len(streams))]
    rows_alone: list[list[Row]] = [[] for _ in streams]
    for i, (learner, tasks) in enumerate(zip(alone, streams, strict=True)):
        for task in tasks:
            rows_alone[i] += learner.learn(task)
    cohort = piaget.Cohort([make(seed) for seed in range(len(streams))])
    rows: list[list[Row]] = [[] for _ in streams]
    for t in range(len(streams[0])):
        for i, new in enumerate(cohort.learn([tasks[t] for tasks in streams])):
            rows[i] += new
    for one, other in zip(alone, cohort.learners, strict=True):
        assert one.components == other.components
        ours, theirs = parameters(one), parameters(other)
        assert ours.keys() == theirs.keys()
        for name, value in ours.items():
            torch.testing.assert_close(theirs[name], value, rtol=rtol, atol=1e-9, msg=name)
        assert torch.equal(one.state.generator.get_state(), other.state.generator.get_state())
    for a, b in zip(rows_alone, rows, strict=True):
        assert [(r["metric"], r["evaluated"]) for r in a] == [(r["metric"], r["evaluated"]) for r in b]
        for x, y in zip(a, b, strict=True):
            assert y["value"] == pytest.approx(x["value"], rel=1e-6)
    return cohort


@pytest.mark.parametrize("adaptation", ["nft", "er", "ewc", "fm"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_same_as_alone(adaptation, algorithm):
    """Runs whose tasks have different numbers of samples: some are idle while others step."""
    streams = [mixed_tasks(5, n=20), mixed_tasks(5, n=26), mixed_tasks(5, n=33)]
    settings = {
        "adaptation": adaptation,
        "algorithm": algorithm,
        "components": piaget.Dense(7),
        "initial_components": 2,
        "epochs": 3,
        "initial_tasks": 2,
        "batch_size": 8,
        "learning_rate": 0.02,
    }
    compare(settings, streams)


def test_runs_with_different_numbers_of_components():
    algorithm = piaget.Algorithm(piaget.Staged(6, 3, 1), KEEP_SOME)
    settings = {
        "adaptation": "er",
        "algorithm": algorithm,
        "components": piaget.Dense(8),
        "initial_components": 2,
        "initial_tasks": 2,
        "initial_epochs": 3,
        "batch_size": 8,
        "learning_rate": 0.03,
    }
    streams = [[make_task(f"t{i}", "binary", seed=10 * s + i) for i in range(6)] for s in range(4)]
    cohort = compare(settings, streams, rtol=1e-6)
    assert len({learner.components for learner in cohort.learners}) > 1


@pytest.mark.parametrize("structure", ["soft-gating", "linear"])
def test_other_structures(structure):
    tasks = mixed_tasks if structure == "soft-gating" else binary_tasks
    settings = {
        "structure": structure,
        "adaptation": "er",
        "algorithm": "dynamic",
        "initial_components": 2,
        "epochs": 4,
        "initial_tasks": 2,
        "learning_rate": 0.02,
        "components": piaget.Dense(6) if structure == "soft-gating" else None,
    }
    compare(settings, [tasks(4, n=20), tasks(4, n=24)])


def test_convolutional():
    settings = {
        "adaptation": "er",
        "algorithm": "dynamic",
        "components": piaget.Conv(4),
        "depth": 2,
        "initial_components": 2,
        "epochs": 3,
        "initial_tasks": 2,
        "batch_size": 5,
    }
    compare(settings, [image_tasks(4, n=9), image_tasks(4, n=11)])


def test_images_of_different_sizes_and_task_names():
    sizes = [10, 10, 12, 10]
    streams = [
        [make_task(f"{run}{i}", "multiclass", 3, (2, s, s), n=9, seed=i) for i, s in enumerate(sizes)]
        for run in "ab"
    ]
    settings = {
        "adaptation": "er",
        "algorithm": "joint",
        "components": piaget.Conv(4),
        "depth": 2,
        "initial_components": 2,
        "epochs": 2,
        "initial_tasks": 2,
        "batch_size": 5,
    }
    compare(settings, streams)


@pytest.mark.parametrize("adaptation", ["er", "ewc"])
def test_shared_encoder_and_decoder(adaptation):
    """Tasks with different numbers of classes use the first columns of one decoder."""
    classes = [3, 2, 3, 2]
    streams = [
        [
            make_task(f"t{i}", "multiclass" if c > 2 else "binary", c, seed=10 * run + i)
            for i, c in enumerate(classes)
        ]
        for run in range(2)
    ]
    settings = {
        "adaptation": adaptation,
        "algorithm": "dynamic",
        "components": piaget.Dense(6),
        "initial_components": 2,
        "epochs": 3,
        "initial_tasks": 2,
        "encoder": "shared",
        "decoder": "shared",
    }
    cohort = compare(settings, streams)
    learner = cohort.learners[0]
    assert learner.predict_proba(streams[0][3].test.x, "t3").shape[1] == 2
    with pytest.raises(piaget.TaskError, match="needs 5 outputs, but all tasks share one decoder with 3"):
        learner.learn(make_task("wide", classes=5, n=60))


def test_tasks_of_different_forms_at_the_same_place():
    """Different inputs, classes and kinds in one place: such runs are trained apart."""
    one, two = mixed_tasks(5), mixed_tasks(5)
    two = [two[1], two[0], two[3], two[2], two[4]]
    settings = {
        "adaptation": "er",
        "algorithm": "dynamic",
        "components": piaget.Dense(6),
        "initial_components": 2,
        "epochs": 3,
        "initial_tasks": 2,
    }
    compare(settings, [one, two])


def test_members_must_be_of_one_method():
    with pytest.raises(piaget.SettingError, match="seeds only"):
        piaget.Cohort([piaget.Learner(adaptation="er"), piaget.Learner(adaptation="nft")])
    with pytest.raises(piaget.SettingError, match="at least one"):
        piaget.Cohort([])
    with pytest.raises(piaget.SettingError, match="2 tasks for 1"):
        piaget.Cohort([piaget.Learner()]).learn(mixed_tasks(2))


def test_a_bad_task_for_one_changes_none():
    components = piaget.Dense(8)
    cohort = piaget.Cohort([piaget.Learner(components=components, encoder="none", seed=s) for s in range(2)])
    with pytest.raises(piaget.TaskError, match="'bad': inputs of shape \\(9,\\) enter dense components"):
        cohort.learn([make_task("good", features=6), make_task("bad", features=9)])
    assert [learner.pending for learner in cohort.learners] == [[], []]
