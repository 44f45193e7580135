"""The benchmarks do what they say: the same amount of work on both sides. Speed is not tested."""

from dataclasses import replace

import pytest
import torch

import piaget
from benchmarks import avalanche, end_to_end, prior_streams, speed
from benchmarks.cases import CASES
from benchmarks.plain import prepare_naive
from piaget.engine.step import Step


@pytest.fixture(autouse=True)
def _draws_as_users_do():
    """The plain implementation draws from the global generator."""
    with torch.random.fork_rng(devices=[]):
        yield


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", [case for case in CASES if case.kind != "omniglot"], ids=lambda c: c.name)
def test_both_sides_take_as_many_steps(case, monkeypatch):
    small, steps = replace(case, batches=2, past=4), []
    original = Step.__call__

    def counted(self, *arguments, **named):
        steps.extend(self.passes)  # one for each pass of the batch
        original(self, *arguments, **named)

    epoch, plain = speed.prepare(small, 1, compile="never"), prepare_naive(small)
    monkeypatch.setattr(Step, "__call__", counted)
    said = epoch()
    assert len(steps) == said == plain()


def test_end_to_end():
    times, cold = end_to_end.end_to_end(tasks=5, epochs=2, samples=64, cohort=2)
    assert set(times) == {"naive", "one", "cohort"}
    assert min(*times.values(), cold) > 0
    row = speed.as_row(end_to_end.CASE, times, cold, 1.0)
    assert row["ratio"]["one"] == times["naive"] / times["one"]
    assert "end to end" in speed.show(row, 1e9)


def test_the_side_of_piaget_against_avalanche(monkeypatch):
    """Of one run and of two together, without compilation."""
    monkeypatch.setattr("piaget.engine.part_step.compiled", lambda step, arguments: None)
    streams = [[piaget.stream("digits", seed)[i] for i in range(2)] for seed in range(2)]
    for runs in (1, 2):
        seconds, accuracy = avalanche.piaget_seconds(streams[:runs], epochs=8)
        assert seconds > 0
        assert accuracy > 0.7  # pairs of classes


def test_what_the_prior_is_compared_with_is_what_the_results_say():
    """Without data: the methods of results/paper, with the numbers of docs/results.md."""
    scores = prior_streams.theirs("schools")
    (alone,) = (method for method in scores if method.endswith("/alone"))
    means = {method: sum(of["rmse"].values()) / len(of["rmse"]) for method, of in scores.items()}
    papers = {
        method: scores[method] for method in scores if method.split("/")[-1] in prior_streams.ALGORITHMS
    }
    assert len(papers) == 10  # nine, and frozen components, which the paper has for other structures
    assert {len(of["rmse"]) for of in papers.values()} == {10}
    assert (
        min(means[method] for method in papers)
        == means["monolithic/er/no-components"]
        == pytest.approx(10.33, abs=0.005)
    )
    assert means[alone] == pytest.approx(10.57, abs=0.005)
