"""Keep rules on errors: McNemar's exact test, and the sign test on squared errors."""

import pytest
import torch
from scipy.stats import binomtest

import piaget
from piaget.method.expansion import fair_tail
from tests.small import mixed_tasks


def evidence(mended, spoilt, right=0, wrong=0):
    """Binary outputs: so many samples are right only with the candidate, only without it, both ways, and
    neither way."""
    with_candidate = [1.0] * mended + [-1.0] * spoilt + [1.0] * right + [-1.0] * wrong
    without = [-1.0] * mended + [1.0] * spoilt + [1.0] * right + [-1.0] * wrong
    new, old = (torch.tensor(values)[:, None] for values in (with_candidate, without))
    return piaget.Evidence("binary", new, old, torch.ones(len(without), dtype=torch.int64))


@pytest.mark.parametrize("throws", [1, 2, 7, 50, 1001, 20_000])
def test_the_tail_is_scipys(throws):
    for heads in sorted({0, 1, throws // 3, throws // 2, throws // 2 + 1, throws * 51 // 100, throws}):
        expected = binomtest(heads, throws, alternative="greater").pvalue
        assert fair_tail(heads, throws) == pytest.approx(expected, rel=1e-9, abs=1e-300)
    assert fair_tail(0, throws) <= 1


def test_kept_if_significant():
    rule = piaget.McNemar(level=0.05, least=0.0)
    assert rule.keeps(evidence(5, 0, 50))  # p = 1 / 32
    assert not rule.keeps(evidence(4, 0, 50))  # p = 1 / 16
    assert piaget.McNemar(level=0.1, least=0.0).keeps(evidence(4, 0, 50))
    assert not rule.keeps(evidence(20, 15, 50))
    assert not rule.keeps(evidence(0, 0, 50))


def test_kept_if_the_error_falls_enough():
    """From 100 wrong answers to 90: significant, and 10 % less."""
    for least, kept in ((0.0, True), (0.0999, True), (0.1001, False)):
        assert piaget.McNemar(least=least).keeps(evidence(10, 0, 900, 90)) == kept
    with pytest.raises(piaget.SettingError, match="below 1"):
        piaget.McNemar(least=1.0)


def test_it_can_fire_where_the_papers_rule_cannot():
    """From 96 % to 98 %: half of the errors are gone, but the accuracy rose by 2 %."""
    better = evidence(20, 0, 960, 20)
    assert better.scores == pytest.approx((0.98, 0.96))
    assert better.errors == pytest.approx((0.02, 0.04))
    assert not piaget.ComponentDropout().keeps(better)
    assert piaget.McNemar().keeps(better)


def test_of_regressions_signs_of_paired_errors_count():
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(60, generator=generator, dtype=torch.float64)
    noise = torch.randn(60, generator=generator, dtype=torch.float64)

    def case(with_candidate, without):
        new, old = ((values + error)[:, None] for error in (with_candidate, without))
        return piaget.Evidence("regression", new, old, values)

    assert piaget.McNemar().keeps(case(0.9 * noise, noise))
    assert not piaget.McNemar().keeps(case(noise, 0.9 * noise))
    assert not piaget.McNemar().keeps(case(0.99 * noise, noise))  # by 2 % only
    few = noise.clone()
    few[noise.abs().topk(4).indices] = 0.0  # a much smaller error, of four samples
    assert case(few, noise).errors[0] < 0.8 * case(few, noise).errors[1]
    assert not piaget.McNemar().keeps(case(few, noise))
    spread = noise * torch.where(torch.arange(60) % 20 == 0, 9.0, 0.9)  # most get better, the mean does not
    assert not piaget.McNemar(least=0.0).keeps(case(spread, noise))


@pytest.mark.parametrize("algorithm", ["dynamic", "compositional"])
def test_by_name(algorithm, tmp_path):
    learner = piaget.Learner(algorithm=algorithm, expansion="mcnemar", width=8, epochs=4, initial_tasks=2)
    assert learner.settings.algorithm.expansion == piaget.McNemar()
    rows = [row for task in mixed_tasks(4) for row in learner.learn(task)]
    assert {row["trained"] for row in rows if row["metric"] == "kept"} == {"task 2", "task 3"}
    learner.save(tmp_path)
    assert piaget.Learner.load(tmp_path).settings == learner.settings
    with pytest.raises(piaget.SettingError, match="threshold is not a setting of McNemar"):
        piaget.Learner(expansion="mcnemar", threshold=0.1)
