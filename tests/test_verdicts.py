"""A verdict for every cell of the paper's tables: its words, and where one ends and the next begins."""

import argparse
import math
import shlex

import pytest

from piaget.cli.sweep import add
from piaget.paper.cells import TABLES, cells
from piaget.paper.names import paper_methods
from piaget.paper.results import reported
from piaget.report.contents import Contents
from piaget.report.reading import read
from piaget.report.selection import Selection
from piaget.report.statistics import welch
from piaget.report.verdicts import HIGHER, LOWER, MATCHES, NOT_RUN, REDUCED, count, judged, verdicts
from tests.made_runs import constant, write_run


def cell_of(table, stream, base, algorithm, part="", structure=None):
    (cell,) = (
        one
        for one in cells()
        if (one.table, one.stream, one.base, one.algorithm, one.part)
        == (table, stream, base, algorithm, part)
        and structure in (None, one.structure)
    )
    return cell


def results_of(folder):
    return Selection(Contents(read([folder])))


def test_every_number_of_the_paper_is_a_cell():
    found = cells()
    assert len(found) == len(set(found)) == 357
    by_table = {table: sum(cell.table == table for cell in found) for table in TABLES}
    assert by_table == {
        "linear": 27,
        "soft-ordering": 70,
        "soft-gating": 56,
        "combined": 56,
        "objects": 56,
        "components": 36,
        "reuse": 56,
    }
    for cell in found:
        if cell.table in ("linear", "soft-ordering", "soft-gating", "objects"):
            assert reported(cell.structure, cell.stream, cell.base, cell.algorithm) == (cell.mean, cell.error)
            assert any(
                (m.adaptation, m.algorithm) == (cell.base, cell.algorithm)
                for m in paper_methods(cell.structure)
            )
        assert cell.trials == (50 if cell.stream.startswith("objects") else 10)


def spread_over(mean, error, seeds):
    """So many numbers with this mean and standard error."""
    raw = [i - (seeds - 1) / 2 for i in range(seeds)]
    deviation = math.sqrt(sum(x * x for x in raw) / (seeds - 1))
    return [mean + x / deviation * error * math.sqrt(seeds) for x in raw]


def write_finals(out, method, finals, stream="mnist", **more):
    for seed, value in enumerate(finals):
        write_run(out, stream, method, seed, constant(value / 100), **more)


@pytest.mark.parametrize(
    ("mean", "error", "word"),
    [
        (97.6, 0.2, MATCHES),
        (97.65, 0.0, MATCHES),  # within the paper's rounding
        (98.0, 0.2, MATCHES),
        (99.0, 0.2, HIGHER),
        (96.0, 0.2, LOWER),
    ],
)
def test_words(tmp_path, mean, error, word):
    write_finals(tmp_path, "soft-ordering/er/dynamic", spread_over(mean, error, 6), tasks=4)
    found = judged(results_of(tmp_path), cell_of("soft-ordering", "mnist", "er", "dynamic"))
    assert found.word == word
    assert (found.seeds, found.why) == (6, "")
    assert found.mean == pytest.approx(mean, abs=1e-4)
    assert found.error == pytest.approx(error, abs=1e-4)


def test_the_boundary_is_at_five_percent(tmp_path):
    """Just before and just after the difference at which Welch's test gives 0.05."""
    low, high = 97.6, 99.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if welch(middle, 0.2, 6, 97.6, 0.2, 10) >= 0.05 else (low, middle)
    cell = cell_of("soft-ordering", "mnist", "er", "dynamic")
    for offset, word in ((-0.01, MATCHES), (0.01, HIGHER)):
        out = tmp_path / word
        write_finals(out, "soft-ordering/er/dynamic", spread_over(low + offset, 0.2, 6), tasks=4)
        assert judged(results_of(out), cell).word == word


def test_lower_errors_are_lower_numbers(tmp_path):
    for seed, value in enumerate(spread_over(10.0, 0.02, 6)):
        write_run(tmp_path, "schools", "linear/er/compositional", seed, constant(value), metric="rmse")
    found = judged(results_of(tmp_path), cell_of("linear", "schools", "er", "compositional"))
    assert (found.word, found.cell.digits) == (LOWER, 2)
    assert found.mean == pytest.approx(10.0, abs=1e-4)


def test_few_seeds_are_reduced(tmp_path):
    write_finals(tmp_path, "soft-ordering/er/dynamic", [97.6, 97.5, 97.7, 97.6])
    found = judged(results_of(tmp_path), cell_of("soft-ordering", "mnist", "er", "dynamic"))
    assert (found.word, found.why, found.beside) == (REDUCED, "4 seeds", "too few seeds")


@pytest.mark.parametrize(
    ("stream", "more", "why"),
    [
        ("cub/resnet18_approx", {}, "approximate ResNet-18 features"),
        ("omniglot", {"options": {"tasks": 10}}, "10 tasks"),
    ],
)
def test_less_data_is_reduced_and_compared_all_the_same(tmp_path, stream, more, why):
    write_finals(tmp_path, "soft-ordering/er/dynamic", spread_over(50.0, 0.5, 6), stream, **more)
    selection = results_of(tmp_path)
    found = judged(selection, cell_of("soft-ordering", stream.partition("/")[0], "er", "dynamic"))
    assert (found.word, found.why, found.beside) == (REDUCED, why, LOWER)
    assert f"--option {'features' if 'cub' in stream else 'tasks'}=" in found.command


def test_the_whole_experiment_comes_before_a_reduced_one(tmp_path):
    write_finals(tmp_path, "soft-ordering/er/dynamic", spread_over(71.7, 0.5, 5), "omniglot")
    reduced = {"options": {"tasks": 10}}
    write_finals(tmp_path, "soft-ordering/er/dynamic", spread_over(50.0, 0.5, 9), "omniglot", **reduced)
    found = judged(results_of(tmp_path), cell_of("soft-ordering", "omniglot", "er", "dynamic"))
    assert (found.word, found.seeds) == (MATCHES, 5)


def test_other_settings_are_another_experiment(tmp_path):
    write_finals(tmp_path, "soft-ordering/er/dynamic", [97.6] * 5, settings={"adapt_every": 10})
    write_finals(tmp_path, "soft-ordering/er/dynamic", [97.6] * 5, options={"train_size": 10}, epochs=1000)
    found = judged(results_of(tmp_path), cell_of("soft-ordering", "mnist", "er", "dynamic"), "no time")
    assert (found.word, found.why, found.seeds) == (NOT_RUN, "no time", 0)
    assert math.isnan(found.mean)


def test_diverged_runs_are_said(tmp_path):
    write_finals(tmp_path, "soft-ordering/er/dynamic", spread_over(97.6, 0.2, 6))
    write_run(tmp_path, "mnist", "soft-ordering/er/dynamic", 9, lambda i, j: 0.5, status="failed: diverged")
    found = judged(results_of(tmp_path), cell_of("soft-ordering", "mnist", "er", "dynamic"))
    assert (found.word, found.seeds) == (REDUCED, 6)
    assert found.why == "1 of 7 runs diverged and are not in the mean"


def test_a_network_without_components_stands_in_both_tables(tmp_path):
    write_finals(tmp_path, "monolithic/er/no-components", spread_over(91.2, 0.3, 5))
    for table in ("soft-ordering", "soft-gating"):
        assert judged(results_of(tmp_path), cell_of(table, "mnist", "er", "no-components")).word == MATCHES


def test_components_and_reuse(tmp_path):
    """Six tasks; two of them bring a component; component c is needed by the first 6 - c tasks."""
    for seed in range(5):
        method, needed = "soft-ordering/er/dynamic", lambda j, c: j < 6 - c
        write_run(tmp_path, "mnist", method, seed, constant(0.9), kept=[4, 5], needed=needed)
    selection = results_of(tmp_path)
    number = judged(selection, cell_of("components", "mnist", "er", "dynamic", structure="soft-ordering"))
    assert (number.mean, number.word) == (6.0, HIGHER)
    reused = [judged(selection, cell_of("reuse", "mnist", "er", "dynamic", str(c))).mean for c in range(4)]
    assert reused == [6, 5, 4, 3]


def test_kinds_of_tasks(tmp_path):
    names = ["mnist-00", "cub-00", "fashion-00", "cub-01", "mnist-01", "cub-02"]
    level = {"mnist": 0.995, "fashion": 0.98, "cub": 0.5}
    for seed in range(5):
        score = lambda i, j: level[names[j].partition("-")[0]]  # noqa: E731
        write_run(tmp_path, "combined", "soft-ordering/er/dynamic", seed, score, names=names)
    selection = results_of(tmp_path)
    found = {
        kind: judged(selection, cell_of("combined", "combined", "er", "dynamic", kind)) for kind in level
    }
    assert {kind: one.word for kind, one in found.items()} == {
        "mnist": MATCHES,
        "fashion": MATCHES,
        "cub": LOWER,
    }
    whole = judged(selection, cell_of("combined", "combined", "er", "dynamic"))
    assert whole.mean == pytest.approx(100 * (2 * 0.995 + 0.98 + 1.5) / 6)


def test_commands_can_be_given(tmp_path):
    """Each is one that the command line takes."""
    parser = argparse.ArgumentParser()
    add(parser.add_subparsers())
    write_finals(
        tmp_path, "soft-gating/er/dynamic", [97.0] * 5
    )  # paper: 98.2, and 4 components, which it has
    found = verdicts(results_of(tmp_path), {"fera": "no data"})
    assert count(found) == {MATCHES: 1, HIGHER: 0, LOWER: 1, REDUCED: 0, NOT_RUN: 355}
    assert {one.why for one in found if one.cell.stream == "fera"} == {"no data"}
    for one in found:
        options = parser.parse_args(shlex.split(one.command)[1:])
        assert (options.streams, options.adaptations) == ([one.cell.stream], [one.cell.base])
        assert options.structures in (None, [one.cell.structure])
        assert options.seeds == list(range(one.seeds or one.cell.trials))
