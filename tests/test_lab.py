"""The paper's experiments and results, and the table beside them."""

import math
from pathlib import Path

import pytest

import piaget
from piaget.lab import final_table as table
from piaget.lab.expected_times import expected_time
from piaget.lab.jobs import preset_jobs
from piaget.lab.making import make_learner
from piaget.paper.names import paper_methods
from piaget.paper.presets import PRESETS
from piaget.paper.results import reported, results
from piaget.scoring.rows import Row
from tests.small import make_row


def row(method: str, seed: int, evaluated: str, value: float, trained: str = "t1") -> Row:
    return make_row("objects-random", method, seed, trained, evaluated=evaluated, value=value)


def test_the_table_is_the_mean_over_tasks_then_over_seeds():
    method = "soft-ordering/er/joint"
    rows = [
        row(method, 0, "t0", 0.1, trained="t0"),  # an earlier evaluation: not final
        row(method, 0, "t0", 0.8),
        row(method, 0, "t1", 1.0),
        row(method, 1, "t0", 0.9),
        row(method, 1, "t1", 0.7),
        row("monolithic/ewc/no-components", 0, "t0", 0.5),
    ]
    rows.append(make_row("objects-random", method, metric="loss", value=5.0))
    first, second = table.lines(rows)
    assert (first.base, first.algorithm, first.seeds) == ("er", "joint", 2)
    assert first.mean == pytest.approx(85)
    assert first.error == pytest.approx(5)
    assert first.paper == (89.1, 0.6)
    assert first.off == pytest.approx((85 - 89.1) / math.hypot(5, 0.6))
    assert second.paper == (86.3, 2.1)
    assert math.isnan(second.error)
    text = table.markdown([first, second])
    assert "| objects-random | ER | Joint | 2 | accuracy in % | 85.0 ± 5.0 | 89.1 ± 0.6 | -0.8 |" in text


def test_the_papers_table_is_whole():
    paper = {name: streams for name, streams in results().items() if name != "source"}
    objects = {f"objects-{setting}" for setting in ("random", "circle", "top-left", "orange")}
    pictures = {"mnist", "fashion", "cifar100", "omniglot"}
    assert set(paper["soft-ordering"]) == objects | pictures | {"cub", "combined"}
    assert set(paper["soft-gating"]) == pictures
    assert set(paper["linear"]) == {"landmine", "schools", "fera"}
    for structure, streams in paper.items():
        for bases in streams.values():
            count = sum(len(algorithms) for algorithms in bases.values())
            assert count == (9 if structure == "linear" else 14)
    assert len(paper_methods("soft-ordering")) == 14
    assert {m.algorithm for m in paper_methods("linear")} == {"compositional", "joint", "no-components"}


def test_what_the_paper_reports():
    assert reported("soft-ordering", "mnist", "er", "dynamic") == (97.6, 0.2)
    assert reported("soft-gating", "mnist", "er", "dynamic") == (98.2, 0.1)
    assert reported("monolithic", "schools", "nft", "no-components") == (18.01, 1.04)
    assert reported("monolithic", "omniglot", "er", "no-components") == (43.2, 4.2)
    assert reported("soft-ordering", "digits", "er", "dynamic") is None
    assert reported("linear", "mnist", "er", "joint") is None


def test_regression_is_reported_by_its_error():
    rows = [make_row("schools", "linear/er/joint", seed, metric="rmse", value=10.0 + seed) for seed in (0, 1)]
    (line,) = table.lines(rows)
    assert (line.mean, line.metric, line.paper) == (10.5, "rmse", (11.55, 0.09))
    assert "| rmse | 10.50 ± 0.50 | 11.55 ± 0.09 |" in table.markdown([line])


def test_the_presets_are_the_papers_experiments():
    runs = {
        name: sum(len(job.seeds) for job in preset_jobs(preset, range(preset.seeds)))
        for name, preset in PRESETS.items()
    }
    assert runs == {
        # The paper's methods, and the baselines that it lacks.
        "linear": 3 * (10 + 1) * 10,
        "soft-ordering": 5 * (14 + 2) * 10,
        "soft-gating": 4 * (14 + 2) * 10,
        "combined": (14 + 2) * 10,
        "objects": 4 * (14 + 2) * 50,
        "limited-data": 3 * 5 * (4 + 2) * 50,
        "schedule": 3 * (2 + 2 + 6 * 2) * 10,
        "components": 5 * 5 * 10,
        "pixel-mnist": 2,
    }
    assert {name: preset.runs for name, preset in PRESETS.items()} == runs
    for name, preset in PRESETS.items():
        jobs = preset_jobs(preset, [0])
        assert len({job.folder(Path("out")) for job in jobs}) == len(set(jobs)) == len(jobs), name
        for job in jobs:
            make_learner(job.configuration, 0, 10)  # all of them can be made


def test_a_limited_learner():
    jobs = [
        job for job in preset_jobs(PRESETS["limited-data"], [0]) if job.method.algorithm == "compositional"
    ]
    settings = [make_learner(job.configuration, 0, 10).settings for job in jobs[:5]]
    adaptations = [s.adaptation for s in settings]
    assert [a.size for a in adaptations if isinstance(a, piaget.Replay)] == [1, 2, 5, 10, 20]
    assert {len(s.stages()) for s in settings} == {1000}
    assert [stage.name for stage in settings[0].stages()[:20]].count("adaptation") == 2


def test_the_docs_have_all_presets():
    """With numbers of runs, times and results as `piaget list` says them."""
    docs = (Path(__file__).parents[1] / "docs" / "lab.md").read_text()
    for preset in PRESETS.values():
        assert f"| {preset.name} | {preset.runs:,} | {expected_time(preset)} | {preset.expected} |" in docs
        assert "not measured" not in expected_time(preset)
