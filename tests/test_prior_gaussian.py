"""The algebra of the prior, against the whole hierarchical model as one big Gaussian, in float64."""

import math

import pytest
import torch
from torch.distributions import MultivariateNormal

from piaget.prior.climbing import climb
from piaget.prior.evidence import Scales, components_of, first_scales, fit, grown, height, occam, pruned
from piaget.prior.gaussian import (
    Quadratic,
    beside,
    infer,
    integrate,
    others_of,
    slopes,
    task_means,
    task_posterior,
)
from piaget.prior.likelihoods import Noise, ValueTerms, agreement, inverse_trigamma

TASKS, OUTPUTS, ROWS, D, K = 4, 2, 9, 3, 2


class Whole:
    """All rows of all tasks as one Gaussian vector: an output's y = X (mu + own) + noise."""

    def __init__(self, seed=0):
        g = torch.Generator().manual_seed(seed)

        def normal(*shape):
            return torch.randn(*shape, generator=g, dtype=torch.float64)

        self.x, self.y = normal(TASKS, ROWS, D), normal(TASKS, OUTPUTS, ROWS)
        self.noise = torch.rand(TASKS, generator=g, dtype=torch.float64) + 0.5
        self.phi, self.own = normal(D, K), torch.rand(D, generator=g, dtype=torch.float64) + 0.1
        self.width = torch.rand(D, generator=g, dtype=torch.float64) + 0.5

    @property
    def sigma(self):
        return self.phi @ self.phi.mT + torch.diag(self.own)

    @property
    def root(self):
        return torch.linalg.cholesky(self.sigma)

    def terms(self):
        precision = self.x.mT @ self.x / self.noise[:, None, None]
        linear = torch.einsum("tnd,tcn->tcd", self.x, self.y) / self.noise[:, None, None]
        square = self.y.square().sum(-1) / self.noise[:, None]
        constant = -(square + ROWS * (2 * math.pi * self.noise[:, None]).log()) / 2
        return Quadratic(precision[:, None].expand(TASKS, OUTPUTS, D, D), linear, constant)

    def weights_covariance(self, sigma, variance):
        """Of all tasks' weights: (T d, T d)."""
        own = torch.kron(torch.eye(TASKS, dtype=torch.float64), sigma)
        return own + torch.kron(torch.ones(TASKS, TASKS, dtype=torch.float64), torch.diag(variance))

    def evidence(self, sigma, variance):
        design = torch.block_diag(*self.x)
        noise = torch.diag(self.noise.repeat_interleave(ROWS))
        covariance = design @ self.weights_covariance(sigma, variance) @ design.mT + noise
        zero = torch.zeros(TASKS * ROWS, dtype=torch.float64)
        return sum(
            MultivariateNormal(zero, covariance).log_prob(self.y[:, c].flatten()) for c in range(OUTPUTS)
        )

    def posterior(self, output, x_new=None):
        """Mean and covariance of all tasks' weights, given an output's rows."""
        design = torch.block_diag(*self.x)
        prior = self.weights_covariance(self.sigma, self.width.square())
        rows = design @ prior @ design.mT + torch.diag(self.noise.repeat_interleave(ROWS))
        gain = prior @ design.mT @ torch.linalg.inv(rows)
        return gain @ self.y[:, output].flatten(), prior - gain @ design @ prior


def test_evidence_is_that_of_the_whole_model():
    whole = Whole()
    found = infer(whole.terms(), whole.root, whole.width)
    expected = whole.evidence(whole.sigma, whole.width.square())
    assert float(found.evidence) == pytest.approx(float(expected), abs=1e-8)


def test_gradient_is_that_of_the_whole_model():
    whole = Whole(1)
    sigma, variance = whole.sigma.requires_grad_(), whole.width.square().requires_grad_()
    expected = torch.autograd.grad(whole.evidence(sigma, variance), (sigma, variance))
    slope = slopes(infer(whole.terms(), whole.root, whole.width))
    torch.testing.assert_close(slope.times(torch.eye(D).double()), expected[0], atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(slope.diagonal(), expected[0].diagonal(), atol=1e-8, rtol=1e-8)
    torch.testing.assert_close(slope.width, expected[1], atol=1e-8, rtol=1e-8)


def test_posteriors_are_those_of_the_whole_model():
    whole = Whole(2)
    found = infer(whole.terms(), whole.root, whole.width)
    tasks = task_posterior(whole.terms(), whole.root, found.mu)
    means = task_means(found.messages, whole.root, found.mu.mean)
    torch.testing.assert_close(means, tasks.mean, atol=1e-8, rtol=1e-8)
    for c in range(OUTPUTS):
        mean, covariance = whole.posterior(c)
        torch.testing.assert_close(tasks.mean[:, c].flatten(), mean, atol=1e-8, rtol=1e-8)
        for t in range(TASKS):
            block = covariance[t * D : (t + 1) * D, t * D : (t + 1) * D]
            torch.testing.assert_close(tasks.covariance[t, c], block, atol=1e-8, rtol=1e-8)


def test_each_task_beside_the_others():
    whole = Whole(2)
    found = infer(whole.terms(), whole.root, whole.width)
    each = beside(found.messages, others_of(found.messages), whole.width)
    for t in range(TASKS):
        rest = Quadratic(*(torch.cat([part[:t], part[t + 1 :]]) for part in whole.terms()))
        left = infer(rest, whole.root, whole.width)
        assert float(each.evidence[t]) == pytest.approx(float(found.evidence - left.evidence), abs=1e-8)
        torch.testing.assert_close(each.mu.mean[t], found.mu.mean)
        torch.testing.assert_close(each.mu.covariance[t], found.mu.covariance)


def test_a_task_without_rows_has_the_priors_posterior():
    whole = Whole(3)
    found = infer(whole.terms(), whole.root, whole.width)
    silent = Quadratic(*(torch.zeros_like(part[0]) for part in whole.terms()))
    new = task_posterior(silent, whole.root, found.mu)
    torch.testing.assert_close(new.mean, found.mu.mean)
    torch.testing.assert_close(new.covariance, found.mu.covariance + whole.sigma)


def test_variances_of_zero_and_overwhelming_evidence():
    whole = Whole(4)
    terms = whole.terms()
    zero = infer(terms, torch.zeros(D, D, dtype=torch.float64), whole.width)
    pooled = Quadratic(*(part.sum(0) for part in terms))
    expected = integrate(pooled, torch.diag(whole.width))
    torch.testing.assert_close(zero.mu.mean, expected.posterior.mean)
    strong = Quadratic(terms.precision * 1e9, terms.linear * 1e9, terms.constant)
    found = infer(strong, whole.root, whole.width)
    own = task_posterior(strong, whole.root, found.mu)
    exact = torch.linalg.solve(terms.precision, terms.linear.unsqueeze(-1))[..., 0]
    torch.testing.assert_close(own.mean, exact, atol=1e-4, rtol=1e-4)


# --- components ------------------------------------------------------------------------------------------


def made_terms(tasks=25, rows=40, d=6, k=1, seed=0, strength=1.0):
    """Tasks with k hidden directions, and blocks of features."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(tasks, rows, d, generator=g, dtype=torch.float64)
    x[..., 0] = 1
    phi = strength * torch.randn(d, k, generator=g, dtype=torch.float64)
    psi = torch.randn(tasks, k, generator=g, dtype=torch.float64)
    w = torch.ones(d, dtype=torch.float64) + psi @ phi.mT + 0.05 * torch.randn(tasks, d, generator=g).double()
    y = (x @ w.unsqueeze(-1))[..., 0] + 0.5 * torch.randn(tasks, rows, generator=g).double()
    level = math.log(0.25)
    terms = ValueTerms(
        torch.full((tasks,), float(rows), dtype=torch.float64),
        x.mT @ x,
        (x.mT @ y.unsqueeze(-1))[..., 0],
        y.square().sum(-1),
        torch.full((tasks,), level, dtype=torch.float64),
        Noise(level, 10.0),
    )
    blocks = torch.ones(d, dtype=torch.int64)
    blocks[0] = 0
    return terms, blocks


def test_gradient_of_scales_is_the_numerical_one():
    terms, blocks = made_terms(tasks=5)
    g = torch.Generator().manual_seed(0)
    first = first_scales(blocks)
    scales = Scales(*first[:3], torch.zeros(6, 2, dtype=torch.float64))
    flat = scales.flat() + 0.3 * torch.randn(scales.flat().shape, generator=g, dtype=torch.float64)
    gradient = height(scales.like(flat), terms, blocks)[1].flat()
    for i in range(len(flat)):
        step = torch.zeros_like(flat)
        step[i] = 1e-5
        up, down = (height(scales.like(flat + s), terms, blocks)[0] for s in (step, -step))
        assert float(gradient[i]) == pytest.approx(float(up - down) / 2e-5, rel=1e-4, abs=1e-4)


def test_climbing_never_falls():
    terms, blocks = made_terms()
    like = first_scales(blocks)
    seen = []

    def objective(flat):
        value, gradient, _ = height(like.like(flat), terms, blocks)
        return value, gradient.flat()

    at = like.flat()
    for _ in range(12):
        seen.append(float(objective(at)[0]))
        at = climb(objective, at, steps=1)
    assert seen == sorted(seen)
    assert seen[-1] > seen[0] + 1


@pytest.mark.parametrize("k", [0, 1, 2])
def test_evidence_finds_how_many_directions_there_are(k):
    terms, blocks = made_terms(k=k, tasks=30)
    best = grown(fit(first_scales(blocks), terms, blocks), blocks, patience=2)
    assert best.scales.k == k
    if k == 1:  # and which
        found = components_of(best.scales, blocks).phi[:, 0]
        g = torch.Generator().manual_seed(0)
        torch.randn(30, 40, 6, generator=g, dtype=torch.float64)
        phi = torch.randn(6, 1, generator=g, dtype=torch.float64)[:, 0]
        assert abs(float(torch.cosine_similarity(found, phi, 0))) > 0.98


def test_directions_that_are_not_worth_it_are_left_out():
    terms, blocks = made_terms(k=1)
    best = fit(first_scales(blocks), terms, blocks)
    for _ in range(3):
        more = torch.randn(6, 1, generator=torch.Generator().manual_seed(best.scales.k), dtype=torch.float64)
        scales = best.scales._replace(directions=torch.cat([best.scales.directions, more], 1))
        best = fit(scales, terms, blocks)
    assert pruned(best, blocks).scales.k == 1


def test_freedom_costs_nothing_where_tasks_say_nothing():
    terms, blocks = made_terms(k=1)
    scales = first_scales(blocks)._replace(directions=torch.ones(6, 1, dtype=torch.float64))
    found = height(scales, terms, blocks)[2]
    assert occam(scales, found, blocks) > 3
    silent = found._replace(messages=Quadratic(*(torch.zeros_like(part) for part in found.messages)))
    assert occam(scales, silent, blocks) == 0


def test_agreement_of_noise():
    """Where all tasks have the same noise it is shared; where it differs, the scatter is found."""
    g = torch.Generator().manual_seed(0)
    free = torch.full((4000,), 30.0, dtype=torch.float64)
    chi = torch.randn(4000, 30, generator=g, dtype=torch.float64).square().mean(1)
    same = agreement(2.0 * chi, free)
    assert same.level == pytest.approx(math.log(2.0), abs=0.02)
    assert same.dof > 300
    scatter = torch.randn(4000, 8, generator=g, dtype=torch.float64).square().mean(1)
    differ = agreement(chi / scatter, free)
    assert differ.dof == pytest.approx(8, rel=0.15)
    for y in (1e-3, 0.3, 5.0):
        x = torch.tensor(inverse_trigamma(y), dtype=torch.float64)
        assert float(torch.polygamma(1, x)) == pytest.approx(y, rel=1e-8)
