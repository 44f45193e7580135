"""Metrics of reports, on tables made by hand."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from piaget.lab.final_table import mean_and_error
from piaget.report import metrics, statistics
from piaget.scoring import rows as contract
from piaget.scoring.rows import COLUMNS, CONSISTENCY, REMOVAL, STRUCTURE


def line(run, trained, epoch, stage, evaluated, split, metric, value, component=None, depth=None):
    values = "s", "soft-ordering/er/dynamic", 0, trained, epoch, stage, evaluated, split, metric
    return dict(zip(COLUMNS, (*values, component, depth, value), strict=True)) | {"run": run}


def table(*lines):
    return pd.DataFrame(list(lines), columns=[*COLUMNS, "run"])


def scores(run, trained, metric="accuracy", epoch=10, stage="adaptation", **values):
    return [line(run, trained, epoch, stage, task, "test", metric, value) for task, value in values.items()]


def example(run="r", metric="accuracy"):
    """a and b are initial; then c and d. Rows of losses and validation scores must not disturb."""
    return table(
        *scores(run, "b", metric, stage="initialization", a=0.8, b=0.6),
        line(run, "b", 10, "initialization", "a", "test", "loss", 99.0),
        *scores(run, "c", metric, epoch=5, stage="assimilation", a=0.1, b=0.1, c=0.1),
        *scores(run, "c", metric, a=0.9, b=0.5, c=0.7),
        line(run, "d", 10, "expansion", "d", "validation", f"{metric} with candidate", 0.7),
        line(run, "d", 10, "expansion", "d", "validation", f"{metric} without candidate", 0.5),
        line(run, "d", 10, "expansion", "d", "validation", "kept", 1.0),
        *scores(run, "d", metric, a=0.4, b=0.6, c=0.7, d=0.5),
        line(run, "d", 10, "adaptation", "", "", "components", 5.0),
    )


def test_what_was_scored_after_each_task():
    result = metrics.after(example())
    assert list(zip(result["i"], result["j"], result["value"], strict=True)) == [
        (1, 0, 0.8),
        (1, 1, 0.6),
        (2, 0, 0.9),
        (2, 1, 0.5),
        (2, 2, 0.7),
        (3, 0, 0.4),
        (3, 1, 0.6),
        (3, 2, 0.7),
        (3, 3, 0.5),
    ]


def test_performance_by_kinds_of_tasks():
    lines = [*scores("r", "cub-01", **{"cub-00": 0.5, "cub-01": 0.7, "mnist-00": 0.9})]
    result = metrics.final_by_subset(table(*lines)).set_index("subset")["value"]
    assert result.to_dict() == pytest.approx({"cub": 0.6, "mnist": 0.9})


def test_performance_right_after_a_task_and_in_the_end():
    assert metrics.forward_performance(example())["r"] == pytest.approx((0.8 + 0.6 + 0.7 + 0.5) / 4)
    assert metrics.final_performance(example())["r"] == pytest.approx((0.4 + 0.6 + 0.7 + 0.5) / 4)


@pytest.mark.parametrize("seed", range(20))
def test_final_performance_is_that_of_the_rows(seed):
    """`piaget run` and `piaget sweep` compute it without pandas. Here, of random tables: with tasks that have
    no scores of their own, several evaluations, ties, what is not a number, and tasks of different kinds."""
    rng = np.random.default_rng(seed)
    lines, expected = [], {}
    for run in ("a", "b"):
        tasks = [f"t{j}" for j in range(rng.integers(1, 6))]
        kinds = rng.choice(["accuracy", "rmse"], len(tasks), p=[0.8, 0.2])
        values = [0.0, 0.5, 1.0, math.nan] if seed % 3 == 0 else [0.0, 0.25, 0.5, 0.5, 1.0]
        of_run = []
        for i, trained in enumerate(tasks):
            for epoch in range(rng.integers(1, 4)):
                seen = [j for j in range(i + 1) if j < i or rng.random() < 0.7]
                for j in seen:
                    value = float(rng.choice(values))
                    of_run.append(line(run, trained, epoch, "", tasks[j], "test", kinds[j], value))
                of_run.append(line(run, trained, epoch, "", trained, "test", "loss", 9.0))
        lines += of_run
        if (final := contract.final_performance(contract.final_scores(of_run))) is not None:
            expected[run] = final[1]
    result = metrics.final_performance(table(*lines)).to_dict()
    assert result == pytest.approx(expected, nan_ok=True)


def test_what_is_not_a_number_is_not_passed_over():
    diverged = table(*scores("r", "a", "rmse", a=1.0, b=2.0), *scores("r", "b", "rmse", a=math.nan, b=1.0))
    assert math.isnan(metrics.final_performance(diverged)["r"])
    assert metrics.forward_performance(diverged)["r"] == pytest.approx(1.5)


def test_forgetting_and_backward_transfer_leave_out_the_last_task():
    # a: best 0.9, first 0.8, final 0.4; b: 0.6, 0.6, 0.6; c: 0.7, 0.7, 0.7
    assert metrics.forgetting(example())["r"] == pytest.approx((0.5 + 0.0 + 0.0) / 3)
    assert metrics.backward_transfer(example())["r"] == pytest.approx((-0.4 + 0.0 + 0.0) / 3)


def test_of_errors_lower_ones_are_better():
    result = example(metric="rmse")  # a: best 0.4, final 0.4; b: best 0.5, final 0.6; c: 0.7
    assert metrics.forgetting(result)["r"] == pytest.approx((0.0 + 0.1 + 0.0) / 3)
    assert metrics.backward_transfer(result)["r"] == pytest.approx((0.4 + 0.0 + 0.0) / 3)
    ratio = metrics.forgetting_ratio(result).set_index("evaluated")["ratio"]
    assert ratio["a"] == pytest.approx(0.4 / 0.8)


def test_forgetting_ratio_of_each_task():
    result = metrics.forgetting_ratio(example())
    assert list(result["evaluated"]) == list("abcd")
    assert list(result["ratio"]) == pytest.approx([2.0, 1.0, 1.0, 1.0])


def test_forgetting_ratio_where_nothing_is_right():
    result = metrics.forgetting_ratio(table(*scores("r", "a", a=0.0, b=0.5), *scores("r", "b", a=0.0, b=0.0)))
    assert result["ratio"][0] == 1.0
    assert result["ratio"][1] == math.inf  # forgotten completely


def test_forward_transfer_is_against_the_same_task_of_the_baseline():
    ours = example()
    base = table(*scores("base", "c", c=0.5, b=0.4), *scores("base", "d", c=0.1, b=0.1, x=0.9))
    result = metrics.forward_transfer(pd.concat([ours, base]), {"r": "base"})
    assert result["r"] == pytest.approx(((0.7 - 0.5) + (0.6 - 0.4)) / 2)  # d and x are not in both


def test_relative_gain_is_positive_for_what_is_better():
    values, reference = pd.Series({"a": 0.9, "b": 2.0, "c": 1.0}), pd.Series({"r": 0.6, "s": 4.0})
    metric = pd.Series({"a": "accuracy", "b": "rmse", "c": "rmse"})
    result = metrics.relative_gain(values, reference, metric, {"a": "r", "b": "s"})
    assert result.to_dict() == pytest.approx({"a": 50.0, "b": 50.0})
    nothing = metrics.relative_gain(values, reference * 0, metric, {"a": "r"})
    assert math.isnan(nothing["a"])


def test_area_under_the_learning_curve():
    result = table(
        *scores("r", "a", epoch=10, a=0.2),
        *scores("r", "a", epoch=20, a=0.4, b=0.9),
        *scores("r", "a", epoch=40, a=0.6),
        *scores("r", "b", epoch=40, a=0.1, b=0.3),  # evaluated once while it was learned
    )
    assert metrics.area_under_curve(result)["r"] == pytest.approx((10 * 0.3 + 20 * 0.5) / 30)
    once = metrics.area_under_curve(table(*scores("r", "a", a=0.2)))
    assert once.isna().all()


def test_components_and_candidates():
    assert metrics.components(example())["r"] == 5
    (result,) = metrics.candidates(example()).to_dict("records")
    assert result == {
        "run": "r",
        "trained": "d",
        "with_it": 0.7,
        "without": 0.5,
        "kept": True,
        "gain": pytest.approx(40),
    }
    (error,) = metrics.candidates(example(metric="rmse"))["gain"]
    assert error == pytest.approx(-40)
    assert metrics.candidates(table(*scores("r", "a", a=0.2))).empty


def removal(run, task, component, value, metric="accuracy"):
    return line(run, "d", 10, REMOVAL, task, "test", f"{metric} without component", value, component)


def test_a_task_reuses_a_component_if_it_is_worse_by_more_than_5_percent_without_it():
    result = metrics.removals(
        pd.concat(
            [
                example(),
                table(
                    removal("r", "a", 0, 0.381),
                    removal("r", "a", 1, 0.379),
                    removal("r", "b", 0, 0.6),
                    removal("r", "b", 1, 0.2),
                    removal("r", "c", 1, 0.9),
                ),
            ]
        )
    )
    assert list(result["reused"]) == [False, True, False, True, False]  # 0.95 * 0.4 = 0.38
    counts = metrics.reuse(
        pd.concat([example(), table(removal("r", "a", 0, 0.4), removal("r", "a", 1, 0.1))])
    )
    assert counts.to_dict("records") == [
        {"run": "r", "rank": 0, "tasks": 1},
        {"run": "r", "rank": 1, "tasks": 0},
    ]


def test_removals_do_not_count_as_scores():
    with_them = pd.concat([example(), table(removal("r", "a", 0, 0.0))])
    assert metrics.final_performance(with_them).equals(metrics.final_performance(example()))


def test_reuse_of_errors():
    lines = pd.concat(
        [example(metric="rmse"), table(removal("r", "a", 0, 0.42, "rmse"), removal("r", "b", 0, 0.7, "rmse"))]
    )
    assert list(metrics.removals(lines)["reused"]) == [False, True]  # 0.4 -> 0.42 is exactly 5 %


# --- compositionality ------------------------------------------------------------------


def composed(weights, needs, consistency, run="r"):
    """weights (tasks, k, depths); needs (tasks, k): does it need the component?; consistency of each."""
    weights = np.asarray(weights, float)
    names = [f"t{j}" for j in range(len(weights))]
    lines = [*scores(run, names[-1], **dict.fromkeys(names, 1.0))]
    for task, matrix, needed in zip(names, weights, needs, strict=True):
        for c in range(matrix.shape[0]):
            lines += [
                line(run, names[-1], 1, STRUCTURE, task, "", "weight", matrix[c, d], c, d)
                for d in range(matrix.shape[1])
            ]
            lines.append(removal(run, task, c, 0.5 if needed[c] else 1.0))
    lines += [
        line(run, names[-1], 1, CONSISTENCY, "", "", "consistency", v, c) for c, v in enumerate(consistency)
    ]
    return metrics.compositionality(table(*lines)).loc[run]


ONE_HOT = np.eye(3)[[[0, 1], [1, 2], [2, 0], [0, 2]]].transpose(0, 2, 1)  # (4 tasks, 3 components, 2 depths)
NEEDED = ONE_HOT.any(2)


def test_a_compositional_learner_has_a_high_score():
    result = composed(ONE_HOT, NEEDED, [1.0, 1.0, 1.0])
    assert result["concentration"] == pytest.approx(1)
    # 3, 2 and 3 of 4 tasks need the components: (2 + 1 + 2) / 3 of 3 others
    assert result["reuse"] == pytest.approx((2 + 1 + 2) / 3 / 3)
    assert result["score"] == pytest.approx((result["reuse"] * 1 * 1) ** (1 / 3))


@pytest.mark.parametrize(
    ("weights", "needs", "consistency"),
    [
        (np.ones((4, 1, 2)), np.ones((4, 1)), [1.0]),  # one component for everything
        (np.full((4, 3, 2), 1 / 3), np.ones((4, 3)), [1.0] * 3),  # all of them equally
        (np.eye(4)[:, :, None].repeat(2, 2), np.eye(4), [1.0] * 4),  # every task has its own
        (ONE_HOT, NEEDED, [0.0] * 3),  # components that are alike, or do something else everywhere
        (ONE_HOT, np.zeros((4, 3)), [1.0] * 3),  # nobody needs any
    ],
)
def test_degenerate_learners_have_no_compositionality(weights, needs, consistency):
    assert composed(weights, needs, consistency)["score"] == pytest.approx(0, abs=1e-4)


def test_more_concentrated_structures_have_a_higher_score():
    soft = 0.7 * ONE_HOT + 0.1
    assert 0 < composed(soft, NEEDED, [1.0] * 3)["score"] < composed(ONE_HOT, NEEDED, [1.0] * 3)["score"]


# --- statistics ------------------------------------------------------------------


def test_welch_agrees_with_scipy():
    from scipy import stats

    ours, theirs = [1.0, 2.0, 4.0, 4.5], [2.0, 3.0, 5.0, 7.0, 9.0]
    expected = stats.ttest_ind(ours, theirs, equal_var=False).pvalue
    result = statistics.welch(*mean_and_error(ours), 4, *mean_and_error(theirs), 5)
    assert result == pytest.approx(expected)


@pytest.mark.parametrize(
    ("values", "higher", "expected"),
    [
        ([90.0, 90.2, 89.9, 90.1, 90.0], True, "matches"),
        ([95.0, 95.2, 94.9, 95.1, 95.0], True, "better"),
        ([95.0, 95.2, 94.9, 95.1, 95.0], False, "worse"),
        ([80.0, 80.2, 79.9, 80.1, 80.0], True, "worse"),
        ([95.0, 95.0, 95.0, 95.0], True, "too few seeds"),
        ([95.0] * 5, True, "better"),
    ],
)
def test_verdicts(values, higher, expected):
    assert statistics.verdict(values, (90.0, 0.2), 10, higher) == expected


def test_the_papers_numbers_are_rounded():
    assert statistics.verdict([99.46, 99.45, 99.47, 99.46, 99.46], (99.5, 0.0), 10, True) == "matches"
    assert statistics.verdict([98.9, 98.8, 98.9, 98.8, 98.9], (99.5, 0.0), 10, True) == "worse"


def test_a_diverged_run_is_not_better():
    assert statistics.verdict([1.0, 1.0, 1.0, 1.0, math.nan], (9.0, 0.1), 10, False) == "diverged"
    tested = statistics.paired(
        {s: math.nan if s == 3 else 1.0 * s for s in range(5)}, dict.fromkeys(range(5), 1.0)
    )
    assert tested is not None
    assert tested.seeds == 4


def test_tasks_of_different_kinds_have_no_common_mean():
    mixed = table(*scores("r", "a", a=0.5, b=0.7), *scores("r", "a", "rmse", c=12.0))
    assert metrics.final_performance(mixed)["r"] == pytest.approx(0.6)


def test_no_verdict_without_the_papers_number():
    assert statistics.verdict([1.0] * 9, None, 10, True) == ""


def test_paired_tests_agree_with_scipy():
    from scipy import stats

    ours, theirs = {0: 1.0, 1: 2.5, 2: 3.0, 5: 4.0}, {0: 0.5, 1: 2.0, 2: 3.5, 5: 1.0, 9: 8.0}
    result = statistics.paired(ours, theirs)
    common = [0, 1, 2, 5]
    expected = stats.ttest_rel([ours[s] for s in common], [theirs[s] for s in common])
    assert result is not None
    assert result.seeds == 4
    assert result.t_test == pytest.approx(expected.pvalue)
    assert result.mean == pytest.approx((0.5 + 0.5 - 0.5 + 3.0) / 4)
    assert statistics.paired({0: 1.0, 1: 2.0}, {0: 2.0, 1: 4.0}) is None


def test_paired_methods_that_are_the_same():
    result = statistics.paired({0: 1.0, 1: 2.0, 2: 3.0}, {0: 1.0, 1: 2.0, 2: 3.0})
    assert result is not None
    assert result.t_test == 1.0


def test_holm():
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert statistics.holm([0.9, 0.8]) == pytest.approx([1.0, 1.0])
    assert statistics.holm([]) == []


def test_wilcoxon_is_as_scipy_has_it():
    """Also with ties and zeros; ranks are multiples of 1/2, so that sums are exact."""
    draw = np.random.default_rng(0)
    samples = [draw.integers(-3, 5, n) / 10 for n in (3, 4, 6, 8)] + [
        draw.normal(0.3, 1, n) for n in (3, 9, 20)
    ]
    for sample in samples:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = stats.wilcoxon(sample).pvalue
        assert statistics.signed_rank(list(sample)) == pytest.approx(expected, abs=1e-12)
