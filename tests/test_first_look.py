"""The first look of a report, in sentences: what is said of runs with made-up rows, and on what it rests."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from scipy import stats

import piaget
from piaget.lab.folder import DIVERGED, note
from piaget.method.description import to_json
from piaget.paper.names import in_words
from piaget.report import statistics
from piaget.report.ablation import ablation, variations
from piaget.report.alerts import alerts
from piaget.report.contents import Contents
from piaget.report.first_look import looks, overall
from piaget.report.reading import read
from tests.made_runs import constant, write_run

DYNAMIC, COMPOSITIONAL, JOINT = (
    f"soft-ordering/er/{algorithm}" for algorithm in ("dynamic", "compositional", "joint")
)
NOISE = (0.004, -0.002, 0.001, -0.003, 0.0, 0.002)  # of seeds


def plain(text):
    return text.replace("\u00a0", " ").replace("\u2212", "-")


def contents_of(folder):
    return Contents(read([folder]))


def write(out, method, level, seeds, lost=0.0, noise=NOISE, stream="digits", **more):
    """Runs whose tasks lose `lost` each time that another one is learned."""
    for seed in range(seeds):

        def score(i, j, seed=seed):
            return level + noise[seed] - lost * (i - max(j, 3))

        write_run(out, stream, method, seed, score, **more)


def look_of(folder):
    (look,) = looks(contents_of(folder))
    return look


# --- which is best ---


def test_a_method_that_is_significantly_best(tmp_path):
    write(tmp_path, DYNAMIC, 0.95, 5)
    write(tmp_path, COMPOSITIONAL, 0.90, 5, noise=(0.002, 0.001, -0.004, 0.0, 0.003))
    write(tmp_path, JOINT, 0.80, 5, noise=(0.0, 0.003, 0.001, -0.002, 0.001))
    look = look_of(tmp_path)
    best = look.answers[0]
    assert (look.best, look.sure, best.tone) == ("ER Dyn. + Comp.", True, "good")
    assert plain(best.headline) == "ER Dyn. + Comp. leads with 95.0 ± 0.1 %, significantly"
    differences = [5 + 100 * (a - b) for a, b in zip(NOISE, (0.002, 0.001, -0.004, 0.0, 0.003), strict=False)]
    middle, half = np.mean(differences), stats.t.ppf(0.975, 4) * stats.sem(differences)
    numbers = re.findall(r"[+-]\d\.\d", plain(best.basis))
    assert numbers == [f"+{middle:.1f}", f"+{middle - half:.1f}", f"+{middle + half:.1f}"]
    assert "p < 0.001" in plain(best.basis)
    assert "Better than each of the 2 others." in best.evidence
    assert "corrected for 3 pairs" in plain(best.evidence[-1])


def test_a_lead_that_may_be_chance(tmp_path):
    write(tmp_path, DYNAMIC, 0.901, 3, noise=(0.02, -0.02, 0.0))
    write(tmp_path, JOINT, 0.900, 3, noise=(-0.02, 0.02, 0.0))
    look = look_of(tmp_path)
    best = look.answers[0]
    assert not look.sure
    assert best.tone == "open"
    assert plain(best.headline) == "ER Dyn. + Comp. leads with 90.1 ± 1.2 %, but not significantly"
    assert re.search(r"interval -\d\.\d to \+\d", plain(best.basis))
    assert "Wilcoxon's test cannot go below p = 0.25" in look.limits


def test_errors_are_better_if_lower(tmp_path):
    noise = (0.01, -0.02, 0.01, 0.0)
    write(tmp_path, "linear/er/joint", 10.0, 4, stream="schools", metric="rmse")
    write(tmp_path, "linear/ewc/joint", 9.0, 4, noise=noise, stream="schools", metric="rmse")
    best = look_of(tmp_path).answers[0]
    assert best.headline.startswith("EWC Joint leads with rmse 9.00")
    assert best.basis.startswith("+1.00 over ER Joint (rmse 10.00")


@pytest.mark.parametrize("seeds", [1, 2])
def test_few_seeds_are_not_tested(tmp_path, seeds):
    write(tmp_path, DYNAMIC, 0.9, seeds)
    write(tmp_path, JOINT, 0.8, seeds)
    look = look_of(tmp_path)
    best, forgotten = look.answers[:2]
    assert plain(best.headline).startswith("ER Dyn. + Comp. leads with 90.")
    assert f"Not tested: {seeds} common seed" in plain(best.basis)
    assert not look.sure
    assert "Not tested" in forgotten.basis
    assert "nothing can be tested" in look.limits
    told = " ".join([best.headline, best.basis, *best.evidence, forgotten.headline, forgotten.basis])
    assert "nan" not in told
    assert "table-differences" not in dict(best.links)


def test_one_method_is_not_compared(tmp_path):
    write(tmp_path, DYNAMIC, 0.9, 3)
    look = look_of(tmp_path)
    assert (look.best, look.sure) == ("", False)
    assert look.answers[0].question == "How good is it?"
    assert look.limits == ""


def test_only_methods_on_the_same_data_are_compared(tmp_path):
    write(tmp_path, DYNAMIC, 0.80, 3)
    write(tmp_path, COMPOSITIONAL, 0.70, 3)
    write(tmp_path, JOINT, 0.99, 3, options={"train_size": 500})
    assert look_of(tmp_path).best.startswith("ER Dyn. + Comp.")


def test_several_streams(tmp_path):
    for stream in ("digits", "mnist", "fashion"):
        first, second = (0.9, 0.8) if stream != "mnist" else (0.8, 0.9)
        write(tmp_path, DYNAMIC, first, 3, stream=stream)
        write(tmp_path, JOINT, second, 3, noise=(0.01, 0.0, -0.01), stream=stream)
    every = looks(contents_of(tmp_path))
    assert (
        overall(every)
        == "ER Dyn. + Comp. leads on 2 of 3 streams; the leading method is significantly best on 3."
    )
    assert overall(every[:1]) == ""


# --- forgetting and reuse ---


@pytest.mark.parametrize(
    ("lost", "tone", "begins"),
    [
        (0.03, "bad", "Yes: ER Dyn. + Comp. loses 5.4 points on average"),
        (0.002, "open", "A little: ER Dyn. + Comp. loses 0.4 points on average"),
        (0.0, "good", "Nothing measurable by ER Dyn. + Comp.: 0.0 points"),
        (-0.01, "good", "No: ER Dyn. + Comp. gains 1.8 points on average"),
    ],
)
def test_forgetting(tmp_path, lost, tone, begins):
    """Six tasks, of which the first four are learned together: two steps for those, one for the fifth."""
    noise = (0.001, -0.001, 0.002)
    for seed in range(3):

        def score(i, j, seed=seed):
            return 0.9 - (lost + (0.0001 * noise[seed] if lost else 0.0)) * (i - max(j, 3))

        write_run(tmp_path, "digits", DYNAMIC, seed, score)
    answer = look_of(tmp_path).answers[1]
    mean = -100 * lost * (4 * 2 + 1) / 5
    assert (answer.tone, plain(answer.headline)) == (tone, begins)
    if lost:
        assert f"{mean:.1f}" in plain(answer.basis)
    assert any("The worst task is digits-00" in line for line in answer.evidence) == (lost > 0)


def test_the_method_that_forgets_most_is_named(tmp_path):
    write(tmp_path, DYNAMIC, 0.95, 3, lost=0.001)
    write(tmp_path, JOINT, 0.90, 3, lost=0.02)
    answer = look_of(tmp_path).answers[1]
    assert "ER Joint loses most: -3.6 points." in map(plain, answer.evidence)


@pytest.mark.parametrize(
    ("needed", "tone", "begins"),
    [
        (lambda j, c: True, "good", "Yes: 4.0 of 4.0"),
        (lambda j, c: c == 1, "open", "Partly: 1.0 of 4.0"),
        (lambda j, c: j == c, "bad", "No: 0.0 of 4.0"),
    ],
)
def test_reuse(tmp_path, needed, tone, begins):
    write(tmp_path, DYNAMIC, 0.9, 3, needed=needed)
    answer = look_of(tmp_path).answers[2]
    assert answer.tone == tone
    assert answer.headline.startswith(begins)


def test_reuse_is_told_of_the_best_method_with_components(tmp_path):
    write(tmp_path, "monolithic/er/no-components", 0.99, 3)
    write(tmp_path, DYNAMIC, 0.9, 3, kept=[4])
    answer = look_of(tmp_path).answers[2]
    assert answer.basis.startswith("In ER Dyn. + Comp., the best with components.")
    assert "Of 2.0 new components that were tried, 1.0 were kept." in answer.evidence


def test_without_components_reuse_is_not_asked_for(tmp_path):
    write(tmp_path, "monolithic/er/no-components", 0.9, 3)
    assert [answer.question for answer in look_of(tmp_path).answers] == [
        "How good is it?",
        "Is anything forgotten?",
    ]


# --- what must be known ---


def test_what_diverged_and_what_is_unfinished(tmp_path):
    write(tmp_path, DYNAMIC, 0.9, 2)
    write_run(tmp_path, "digits", DYNAMIC, 2, constant(0.9), status=DIVERGED)
    write_run(tmp_path, "digits", DYNAMIC, 3, constant(0.9), status="interrupted")
    write_run(tmp_path, "digits", JOINT, 0, constant(math.nan))
    found = {alert.kind: plain(alert.text) for alert in alerts(contents_of(tmp_path))}
    assert list(found) == ["diverged", "unfinished"]
    assert "2 of 5 runs have diverged: ER Dyn. + Comp. (seed 2) and ER Joint (seed 0)" in found["diverged"]
    assert "1 of 5 runs is unfinished and left out of means: ER Dyn. + Comp. (seed 3)" in found["unfinished"]
    assert look_of(tmp_path).best == ""  # what has no mean is not compared


def test_nothing_is_finished(tmp_path):
    write(tmp_path, DYNAMIC, 0.9, 2, status="running")
    (alert,) = alerts(contents_of(tmp_path))
    assert alert.text == "digits: no run is finished; all numbers are of the tasks learned so far."


def test_what_is_no_better_than_the_most_frequent_class(tmp_path):
    """Also where it is better on average, but not significantly."""
    write(tmp_path, DYNAMIC, 0.95, 4, majority=0.90)
    write(tmp_path, COMPOSITIONAL, 0.901, 4, noise=(0.02, -0.02, 0.01, -0.01), majority=0.90)
    write(tmp_path, JOINT, 0.80, 4, majority=0.90)
    (alert,) = alerts(contents_of(tmp_path))
    assert alert.kind == "at chance level"
    assert plain(alert.text).startswith(
        "digits: ER Compositional and ER Joint are not significantly better than always answering the most "
        "frequent class (90.0 %)."
    )


def test_nothing_is_said_where_all_is_well(tmp_path):
    write(tmp_path, DYNAMIC, 0.95, 3, majority=0.5)
    assert alerts(contents_of(tmp_path)) == []


# --- which parts helped ---


def test_parts_are_compared_with_the_reference_that_they_vary(tmp_path):
    """The full method, and each part of it changed: the others differ from each other in two."""
    write(tmp_path, DYNAMIC, 0.95, 4)
    write(tmp_path, COMPOSITIONAL, 0.93, 4, noise=(0.001, 0.0, 0.002, -0.001))
    write(tmp_path, "soft-ordering/nft/dynamic", 0.90, 4, noise=(0.0, 0.001, 0.0, 0.002))
    write(tmp_path, DYNAMIC, 0.949, 4, noise=(0.03, -0.03, 0.0, 0.01), settings={"replay_size": 1})
    found = variations(contents_of(tmp_path))
    assert {one.reference.method for one in found} == {DYNAMIC}
    assert {one.reference.variant for one in found} == {""}
    told = {(one.part, one.usual, one.other): one for one in found}
    assert set(told) == {
        ("algorithm", "Dyn. + Comp.", "Compositional"),
        ("adaptation", "ER", "NFT"),
        ("replay_size", "the usual value", "1"),
    }
    naive = told["adaptation", "ER", "NFT"].test
    differences = [-5 + 100 * (a - b) for a, b in zip((0.0, 0.001, 0.0, 0.002), NOISE, strict=False)]
    assert naive.mean == pytest.approx(np.mean(differences))
    ps = [stats.ttest_1samp(differences, 0.0).pvalue]
    assert naive.p == pytest.approx(3 * ps[0])  # the smallest of three, by Holm's method
    assert told["replay_size", "the usual value", "1"].test.p > 0.05
    assert len(ablation(contents_of(tmp_path)).rows) == 3


def test_the_usual_value_is_named_where_it_is_known(tmp_path):
    settings = piaget.Learner(algorithm="recommended", encoder="fixed").settings
    learner = json.loads(json.dumps(to_json(settings)))
    for name, chosen in {"a": {}, "b": {"expansion": "dropout"}, "c": {"encoder": "learned"}}.items():
        write(tmp_path / name, "soft-ordering-scaled/fm/recommended", 0.9, 3, settings=chosen)
        for path in (tmp_path / name).rglob("run.json"):
            note(path.parent, learner=learner)
    usual = {one.part: one.usual for one in variations(contents_of(tmp_path))}
    assert usual == {"expansion": "second-attempt (as usual)", "encoder": "fixed (as usual)"}


def test_what_parts_cost(tmp_path):
    """Beside the reference. Time is the same here, and not all runs have noted their parameters."""
    write(tmp_path, DYNAMIC, 0.95, 3, parameters=1000, kept=[4, 5])
    write(tmp_path, COMPOSITIONAL, 0.93, 3, parameters=800)
    write(tmp_path, DYNAMIC, 0.94, 3, settings={"replay_size": 1}, kept=[5])
    found = {one.part: one for one in variations(contents_of(tmp_path))}
    one = found["algorithm"]
    assert (one.components, one.parameters, one.time) == pytest.approx((4 / 6, 0.8, 1.0))
    other = found["replay_size"]
    assert other.components == pytest.approx(5 / 6)
    assert np.isnan(other.parameters)
    cells = [[cell.text for cell in row[-3:]] for row in ablation(contents_of(tmp_path)).rows]
    assert cells == [["0.83", "", "1.00"], ["0.67", "0.80", "1.00"]]


def test_of_errors_above_zero_is_better(tmp_path):
    write(tmp_path, "linear/er/joint", 10.0, 3, stream="schools", metric="rmse")
    write(tmp_path, "linear/ewc/joint", 9.0, 3, stream="schools", metric="rmse")
    write(tmp_path, "linear/er/compositional", 12.0, 3, stream="schools", metric="rmse")
    found = {one.other: one.test.mean for one in variations(contents_of(tmp_path))}
    assert found == {"EWC": pytest.approx(1.0), "Compositional": pytest.approx(-2.0)}


def test_one_varied_part_is_no_ablation(tmp_path):
    for method, level in ((DYNAMIC, 0.9), (COMPOSITIONAL, 0.8), (JOINT, 0.7)):
        write(tmp_path, method, level, 3)
    assert variations(contents_of(tmp_path)) == []


# --- statistics and words ---


@pytest.mark.parametrize(("seeds", "tests"), [(3, 1), (5, 10), (10, 1)])
def test_what_a_test_can_find_is_found_four_times_in_five(seeds, tests):
    effect = statistics.detectable(seeds, tests)
    drawn = np.random.default_rng(0).normal(effect, 1.0, (20_000, seeds))
    found = stats.ttest_1samp(drawn, 0.0, axis=1).pvalue < 0.05 / tests
    assert found.mean() == pytest.approx(0.8, abs=0.01)


@pytest.mark.parametrize("seeds", [3, 4, 5, 6])
def test_the_least_p_value_of_the_signed_rank_test(seeds):
    assert statistics.least_signed_rank(seeds) == pytest.approx(
        stats.wilcoxon(range(1, seeds + 1), method="exact").pvalue
    )


def test_names_in_words():
    words = in_words("soft-ordering/er/dynamic")
    assert words.startswith("Dynamic + compositional")
    assert "Experience replay" in words
    assert "Soft ordering" in words
    assert "omponents" not in in_words("monolithic/nft/no-components").partition(".")[2]
    assert in_words("mine/der++/my+rule") == "My+rule. Der++. Mine"
