"""The paper's claims, on made-up runs of which the truth is known."""

import math

import pytest

from piaget.report.claim_list import CLAIMS, QUESTIONS
from piaget.report.claims import FAILS, HOLDS, UNTESTED, Comparison, Finding
from piaget.report.contents import Contents
from piaget.report.reading import read
from piaget.report.selection import Selection
from piaget.report.tables import tables
from piaget.report.verdicts import verdicts
from tests.made_runs import constant, write_run

OBJECTS = "objects-random"


def claim(start):
    (found,) = (one for one in (*CLAIMS, *QUESTIONS) if one.sentence.startswith(start))
    return found


def noise(seed, method):
    """The same for all methods of a seed, but for a little."""
    return 0.02 * math.sin(5 * seed) + 0.001 * math.sin(7 * seed + len(method))


def write(out, stream, levels, seeds=5, **more):
    """levels: {method: accuracy}"""
    for method, level in levels.items():
        for seed in range(seeds):
            write_run(out, stream, method, seed, constant(level + noise(seed, method)), **more)


def selection_of(folder):
    return Selection(Contents(read([folder])))


def methods(base="er", structure="soft-ordering", **levels):
    names = {"none": f"monolithic/{base}/no-components", "alone": "alone/fm/alone"}
    names["frozen"] = f"monolithic/{base}/no-components-frozen"
    return {names.get(name, f"{structure}/{base}/{name}"): level for name, level in levels.items()}


def test_better_than_all_baselines(tmp_path):
    write(tmp_path, OBJECTS, methods(dynamic=0.92, compositional=0.91, joint=0.88, none=0.87))
    found = claim("Each of our methods").check(selection_of(tmp_path))
    assert found.verdict == HOLDS
    assert len(found.comparisons) == len(found.supporting) == 4
    assert sorted(one.mean for one in found.comparisons) == pytest.approx([3, 4, 4, 5], abs=0.3)
    assert all(one.effect > 5 and one.p < 0.01 for one in found.comparisons)


def test_one_baseline_that_is_better_is_enough(tmp_path):
    write(tmp_path, OBJECTS, methods(dynamic=0.92, compositional=0.91, joint=0.88, none=0.95))
    found = claim("Each of our methods").check(selection_of(tmp_path))
    assert found.verdict == FAILS
    assert len(found.against) == 2
    assert "No Comp." in found.against[0].what


def test_no_difference_does_not_hold(tmp_path):
    write(tmp_path, OBJECTS, methods(dynamic=0.9, compositional=0.9, joint=0.9, none=0.9))
    found = claim("Each of our methods").check(selection_of(tmp_path))
    assert (found.verdict, found.supporting, found.against) == (FAILS, [], [])
    assert len(found.undecided) == 4


def test_nothing_is_said_without_runs(tmp_path):
    write(tmp_path, OBJECTS, methods(dynamic=0.92, compositional=0.91), seeds=2)
    write(tmp_path, "digits", methods(dynamic=0.9, compositional=0.8, joint=0.7, none=0.6))
    selection = selection_of(tmp_path)
    assert {one.check(selection).verdict for one in (*CLAIMS, *QUESTIONS)} == {UNTESTED}
    assert "claims" not in [table.name for table in tables(selection.contents)]


def test_lower_errors_are_better(tmp_path):
    levels = methods(structure="linear", compositional=10.6, joint=11.5, none=10.3)
    write(tmp_path, "schools", levels, metric="rmse")
    selection = selection_of(tmp_path)
    assert claim("The compositional versions").check(selection).verdict == HOLDS
    found = claim("The no-components variants").check(selection)
    assert (found.verdict, len(found.comparisons)) == (HOLDS, 2)
    assert sorted(one.mean for one in found.comparisons) == pytest.approx([0.3, 1.2], abs=0.01)


def test_runs_on_other_data_are_not_compared(tmp_path):
    write(tmp_path, "omniglot", methods(dynamic=0.9), options={"tasks": 10})
    write(tmp_path, "omniglot", methods(compositional=0.8), options={"tasks": 12})
    assert claim("Dyn. + comp.").check(selection_of(tmp_path)).verdict == UNTESTED


def test_reduced_data_is_said(tmp_path):
    write(tmp_path, "omniglot", methods(dynamic=0.9, compositional=0.8), options={"tasks": 10})
    (one,) = claim("Dyn. + comp.").check(selection_of(tmp_path)).comparisons
    assert one.reduced == "10 tasks"


def forgets(level, by):
    """What is learned is lost by so much in the end."""
    return lambda i, j: level - by * (i - max(j, 3)) / 2


@pytest.mark.parametrize(("by", "verdict"), [(0.001, HOLDS), (0.1, FAILS)])
def test_forgetting(tmp_path, by, verdict):
    for seed in range(5):
        for method, lost in {"soft-ordering/er/compositional": by, "soft-ordering/er/joint": 0.2}.items():
            score = forgets(0.9 + noise(seed, method), lost)
            write_run(tmp_path, "mnist", method, seed, score)
    selection = selection_of(tmp_path)
    assert claim("Compositional algorithms had practically no").check(selection).verdict == verdict
    assert claim("Compositional methods exhibit").check(selection).verdict == HOLDS


@pytest.mark.parametrize(("tasks", "verdict"), [(3, HOLDS), (1, FAILS)])
def test_reuse(tmp_path, tasks, verdict):
    """The last of four components is needed by so many tasks, give or take one."""
    for seed in range(6):
        needed = lambda j, c, s=seed: j < (tasks + (s % 3 - 1) if c == 3 else 6)  # noqa: E731
        write_run(tmp_path, "mnist", "soft-ordering/er/compositional", seed, lambda i, j: 0.9, needed=needed)
    assert claim("All four components").check(selection_of(tmp_path)).verdict == verdict


@pytest.mark.parametrize(("slope", "verdict"), [(0.02, HOLDS), (-0.02, FAILS), (0.0, FAILS)])
def test_rarer_adaptation(tmp_path, slope, verdict):
    for every in (2, 10, 50):
        levels = methods(compositional=0.8 + slope * math.log10(every))
        write(tmp_path, "mnist", levels, settings={"adapt_every": every})
    write(tmp_path, "mnist", methods(compositional=0.8 + slope * 2, joint=0.7, none=0.7))
    selection = selection_of(tmp_path)
    found = claim("It was beneficial").check(selection)
    assert found.verdict == verdict
    assert found.comparisons[0].mean == pytest.approx(100 * slope, abs=0.1)
    schedules = claim("For MNIST and Fashion, all choices").check(selection)
    assert (schedules.verdict, len(schedules.comparisons)) == (HOLDS, 8)


def test_one_schedule_says_nothing_of_schedules(tmp_path):
    write(tmp_path, "mnist", methods(dynamic=0.9, compositional=0.9, joint=0.7, none=0.7))
    selection = selection_of(tmp_path)
    assert claim("For MNIST and Fashion, all choices").check(selection).verdict == UNTESTED


def test_schedules_on_other_data_are_no_line(tmp_path):
    for every in (2, 10, 50):
        levels = methods(compositional=0.8 + 0.02 * math.log10(every))
        write(tmp_path, "mnist", levels, settings={"adapt_every": every}, options={"train_size": 500})
    write(tmp_path, "mnist", methods(compositional=0.7))  # the usual schedule, on all data
    (one,) = claim("It was beneficial").check(selection_of(tmp_path)).comparisons
    assert one.mean == pytest.approx(2.0, abs=0.1)
    assert one.reduced == "500 training samples a task"


@pytest.mark.parametrize(("epochs", "channels", "reduced"), [(20, 8, True), (200, 8, False), (20, 80, False)])
def test_less_training_and_smaller_networks_are_less(tmp_path, epochs, channels, reduced):
    settings = {"components": "conv", "padding": 1, "channels": channels}
    write(tmp_path, "cifar100", methods(dynamic=0.7), settings=settings, epochs=epochs)
    selection = selection_of(tmp_path)
    chosen = selection.find("cifar100", "soft-ordering", "er", "dynamic")
    assert (chosen is not None) == reduced
    if chosen is not None:
        assert set(chosen.reduced.split("; ")) == {"20 epochs", "8 channels"}
        cell = next(one for one in verdicts(selection) if one.cell.stream == "cifar100")
        assert (cell.word, cell.seeds) == ("reduced", 5)
        assert cell.command.endswith("--seeds 5 --epochs 20 --set channels=8 --out results/again")


def test_networks_of_other_sizes_are_not_compared(tmp_path):
    small = {"components": "conv", "padding": 1, "channels": 8}
    write(tmp_path, "cifar100", methods(dynamic=0.7), settings=small)
    write(tmp_path, "cifar100", methods(joint=0.6, none=0.5), settings=small | {"channels": 50})
    found = claim("All the algorithms conforming").check(selection_of(tmp_path))
    assert found.verdict == UNTESTED


def test_little_data(tmp_path):
    for size in (10, 100):
        common = {"options": {"train_size": size}, "epochs": 1000}
        replay = {"replay_size": max(size // 10, 1)}
        write(tmp_path, "mnist", methods(dynamic=0.8), settings=replay | {"adapt_every": 10}, **common)
        write(tmp_path, "mnist", methods(joint=0.7, none=0.6), settings=replay, **common)
    found = claim("Compositional algorithms work better").check(selection_of(tmp_path))
    assert (found.verdict, len(found.comparisons)) == (HOLDS, 4)


def test_baselines_that_the_paper_lacks(tmp_path):
    write(tmp_path, OBJECTS, methods(dynamic=0.92, alone=0.85, frozen=0.95))
    selection = selection_of(tmp_path)
    alone = claim("Does sharing help").check(selection)
    assert alone.verdict == HOLDS
    assert {one.what for one in alone.comparisons} == {f"{OBJECTS}: ER Dyn. + Comp. against Alone"}
    assert "Alone" in {group.label for group in selection.contents.groups}
    assert claim("Is it better than a single").check(selection).verdict == FAILS


def test_later_tasks_are_learned_faster(tmp_path):
    for seed in range(4):
        score = lambda i, j, s=seed: 0.5 + 0.04 * j + noise(s, "")  # noqa: E731
        write_run(tmp_path, "mnist", "soft-ordering/er/dynamic", seed, score, tasks=9, every=25)
    assert claim("As more tasks").check(selection_of(tmp_path)).verdict == HOLDS


def test_number_of_components(tmp_path):
    for seed in range(5):
        for base, kept in {"fm": [4, 5, 6, 7], "er": [4 + seed % 2]}.items():
            level = (0.95 if base == "fm" else 0.9) + noise(seed, base)
            method = f"soft-ordering/{base}/dynamic"
            write_run(tmp_path, "mnist", method, seed, constant(level), tasks=8, kept=kept)
    found = claim("When FM was allowed").check(selection_of(tmp_path))
    assert (found.verdict, len(found.comparisons)) == (HOLDS, 2)
    assert sorted(one.mean for one in found.comparisons) == pytest.approx([3, 5], abs=0.2)


def test_nearly_the_same_right_after_learning(tmp_path):
    write(tmp_path, "mnist", methods(structure="soft-gating", dynamic=0.90, joint=0.91))
    assert claim("The forward accuracy").check(selection_of(tmp_path)).verdict == HOLDS
    write(tmp_path, "fashion", methods(structure="soft-gating", dynamic=0.90, joint=0.95))
    assert claim("The forward accuracy").check(selection_of(tmp_path)).verdict == FAILS


def test_a_comparison_is_the_paired_t_test():
    from scipy import stats

    values = (1.0, 2.0, 0.5, 1.5, -0.2)
    one = Comparison("", values)
    assert one.p == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    assert one.effect == pytest.approx(one.mean / (one.error * math.sqrt(5)))
    assert Comparison("", (2.0, 2.0, 2.0)).p == 0
    assert Comparison("", (0.0, 0.0, 0.0)).p == 1


def test_many_comparisons_are_corrected_for():
    """One of twenty below 5 % is what chance gives."""
    lucky = Comparison("", (1.0, 1.1, 0.2, 1.0))
    assert 0.01 < lucky.p < 0.05
    others = [Comparison("", (1.0, -1.0, 1.0, -0.9))] * 19
    from piaget.report.statistics import holm

    every = (lucky, *others)
    assert Finding(every, tuple(holm([one.p for one in every]))).verdict == FAILS


def test_a_report_has_them(tmp_path):
    write(tmp_path, OBJECTS, methods(dynamic=0.92, compositional=0.91, joint=0.88, none=0.87))
    (table,) = (t for t in tables(selection_of(tmp_path).contents) if t.name == "claims")
    assert [row[2].text for row in table.rows] == [HOLDS]


def test_the_recommended_method_against_all_of_the_papers(tmp_path):
    ours = methods("fm", structure="soft-ordering-scaled", recommended=0.93)
    write(tmp_path, OBJECTS, ours | methods(dynamic=0.92, none=0.87) | methods("fm", dynamic=0.95))
    found = claim("Is the recommended").check(selection_of(tmp_path))
    assert found.verdict == FAILS  # better on average, and worse than one of them
    assert len(found.comparisons) == 3
    assert [round(one.mean) for one in found.against] == [-2]
