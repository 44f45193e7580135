"""Labels: what rows are taken to say, against plain twins, numerical integration and draws."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import integrate, special

import piaget
from piaget import prior
from piaget.prior import label_terms as label_module
from piaget.prior.evidence import components_of, first_scales
from piaget.prior.gaussian import Quadratic, infer, task_posterior
from piaget.prior.label_terms import Batch, LabelTerms
from piaget.prior.sites import moments, said, touching
from tests.test_prior import learned, made


@pytest.mark.parametrize("variance", [0.01, 1.0, 9.0, 60.0])
@pytest.mark.parametrize("center", [-12.0, -2.0, 0.0, 5.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_moments_of_a_tilted_gaussian(center, variance, sign):
    """Against adaptive quadrature."""
    deviation = math.sqrt(variance)

    def density(f):
        return special.expit(sign * f) * math.exp(-((f - center) ** 2) / variance / 2) / deviation

    ends = center - 12 * deviation - 60, center + 12 * deviation + 60
    points = np.linspace(center - 10 * deviation, center + 10 * deviation, 21)

    def by_quadrature(power, about=0.0):
        return integrate.quad(
            lambda f: density(f) * (f - about) ** power, *ends, points=points, limit=500, epsabs=0
        )[0]

    mass = by_quadrature(0)
    mean = by_quadrature(1) / mass
    spread = by_quadrature(2, mean) / mass
    found = moments(*(torch.tensor([v], dtype=torch.float64) for v in (center, variance, sign)))
    expected = math.log(mass / math.sqrt(2 * math.pi)), mean, spread
    np.testing.assert_allclose([float(part) for part in found], expected, rtol=1e-3, atol=1e-4)


def task(rows=20, inputs=2, spread=2.0, seed=0):
    """One task's features and labels, and the root of its weights' covariance."""
    g = torch.Generator().manual_seed(seed)
    features = torch.cat([torch.ones(rows, 1), torch.randn(rows, inputs - 1, generator=g)], 1).double()
    w = spread * torch.randn(inputs, generator=g).double()
    y = (torch.rand(rows, generator=g) < (features @ w).sigmoid()).long()
    return features, y, spread * torch.eye(inputs).double()


def terms_of(features, y) -> LabelTerms:
    """Of one task, as rows touch at zero."""
    batch = Batch(features[None], y[None], torch.ones(1, len(y), dtype=torch.float64))
    sites = touching(torch.zeros(1, len(y), 1, dtype=torch.float64), batch.y)
    terms = said(batch.features, sites)
    nothing = Quadratic(*(torch.zeros_like(part) for part in terms))
    w = torch.zeros_like(terms.linear)
    return LabelTerms((batch,), nothing, (sites,), w, w[0], terms)


def components(root):
    """Weights about a mu of zero, which is known."""
    d = len(root)
    parts = components_of(first_scales(torch.zeros(d, dtype=torch.int64)), torch.zeros(d, dtype=torch.int64))
    return parts._replace(root=root, width=torch.zeros(d, dtype=torch.float64))


@pytest.mark.parametrize(("rows", "spread"), [(6, 3.0), (20, 1.0), (20, 4.0), (200, 2.0)])
def test_evidence_and_beliefs_against_a_grid(rows, spread):
    """Two weights: p(y), means and covariance by sums over a fine grid. Means by quadratics that touch at the
    mode are farther away."""
    features, y, root = task(rows, spread=spread)
    axis = torch.linspace(-14 * spread**0.5, 14 * spread**0.5, 1201).double()
    grid = torch.cartesian_prod(axis, axis)
    log_prior = -(grid / spread).square().sum(1) / 2 - math.log(2 * math.pi * spread**2)
    logits = torch.where(y == 1, 1.0, -1.0)[:, None] * (features @ grid.mT)
    log_joint = log_prior + torch.nn.functional.logsigmoid(logits).sum(0)
    exact = float(log_joint.logsumexp(0)) + 2 * math.log(float(axis[1] - axis[0]))
    weight = log_joint.softmax(0)
    mean = weight @ grid
    covariance = (weight[:, None] * (grid - mean)).mT @ (grid - mean)

    parts = components(root)
    matched = terms_of(features, y).refreshed(parts)[0].terms
    w = torch.zeros(1, 1, 2, dtype=torch.float64)
    for _ in range(30):
        touched = said(features[None], touching(features @ w.mT, y[None]))
        w = task_posterior(touched, root, infer(touched, root, parts.width).mu).mean
    errors = []
    for terms in (matched, touched):
        found = infer(terms, root, parts.width)
        belief = task_posterior(terms, root, found.mu)
        scale = covariance.diagonal().sqrt()
        errors.append(
            (
                abs(float(found.evidence) - exact),
                float(((belief.mean[0, 0] - mean) / scale).abs().max()),
                float(((belief.covariance[0, 0] - covariance) / (scale[:, None] * scale)).abs().max()),
            )
        )
    assert errors[0][1] < errors[1][1] / 2
    assert np.less(errors[0], (0.1, 0.05, 0.25)).all()


def test_against_plain_expectation_propagation():
    """One task: rows one after the other, by numpy and quadrature, as the textbook has it."""
    features, y, root = task(12, inputs=3, spread=1.5)
    x, sign = features.numpy(), np.where(y.numpy() == 1, 1.0, -1.0)
    prior_precision = np.linalg.inv((root @ root.mT).numpy())
    tau, nu = np.full(12, 1e-10), np.zeros(12)
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    for _ in range(60):
        for i in range(12):
            covariance = np.linalg.inv(prior_precision + (x.T * tau) @ x)
            mean = covariance @ (x.T @ nu)
            v, m = x[i] @ covariance @ x[i], x[i] @ mean
            cavity = 1 / (1 / v - tau[i])
            center = cavity * (m / v - nu[i])
            f = center + math.sqrt(cavity) * nodes
            density = weights * special.expit(sign[i] * f)
            new = (density @ f) / density.sum()
            spread = (density @ (f - new) ** 2) / density.sum()
            tau[i], nu[i] = 1 / spread - 1 / cavity, new / spread - center / cavity
    found = terms_of(features, y)
    for _ in range(5):
        found = found.refreshed(components(root))[0]
    np.testing.assert_allclose(found.sites[0].precision[0, :, 0], tau, rtol=1e-4)
    np.testing.assert_allclose(found.sites[0].linear[0, :, 0], nu, rtol=1e-4)


def test_the_slope_of_the_evidence_is_that_of_matched_rows():
    """Where rows match, the evidence changes with components as it does with rows held fixed: what lets
    components and rows be found by turns. By differences, with rows matched anew on both sides."""
    features, y, root = task(15, inputs=2, spread=1.5)

    def evidence(scale, start: LabelTerms):
        parts = components(scale * root)
        now: Any = start
        for _ in range(4):
            now = now.refreshed(parts)[0]
        return float(infer(now.terms, parts.root, parts.width).evidence), now

    _, at = evidence(1.0, terms_of(features, y))
    anew = (evidence(1.01, at)[0] - evidence(0.99, at)[0]) / 0.02
    held = [
        float(infer(at.terms, components(scale * root).root, torch.zeros(2).double()).evidence)
        for scale in (1.01, 0.99)
    ]
    assert (held[0] - held[1]) / 0.02 == pytest.approx(anew, rel=2e-3, abs=1e-4)


def test_how_much_tasks_differ_is_found():
    """300 tasks of 15 rows, drawn from the model. Quadratics that touch find 1.17 and 1.11."""
    g = torch.Generator().manual_seed(0)
    data = {}
    for t in range(300):
        x = torch.randn(15, 1, generator=g).double()
        w = 1.5 * torch.randn(2, generator=g).double()
        data[f"t{t}"] = x, (torch.rand(15, generator=g) < (w[0] + x[:, 0] * w[1]).sigmoid()).long()
    known = prior.settled(learned_at_once(data))
    frame = known.standard_frame
    assert float(frame.scale[0]) == pytest.approx(1, abs=0.1)
    found = known.components.own + known.components.phi.square().sum(1)
    assert found.sqrt().tolist() == pytest.approx([1.5, 1.5], abs=0.2)


def learned_at_once(data):
    from piaget.prior.many import learn_many

    return learn_many(prior.begin("binary", 2, trees=False), data)


def test_rare_classes_are_as_frequent_as_they_are():
    """20 groups of 100 rows, of which 1 % say yes: so many are expected."""
    g = torch.Generator().manual_seed(1)
    data = {}
    for t in range(20):
        x = torch.randn(100, 3, generator=g).double()
        level = -4.8 + 0.4 * float(torch.randn((), generator=g))
        data[f"t{t}"] = x, (torch.rand(100, generator=g) < (level + 0.5 * x[:, 0]).sigmoid()).long()
    known = prior.settled(learned_at_once(data))
    said_yes = [float(prior.probabilities(known, x, name)[:, 1].mean()) for name, (x, _) in data.items()]
    frequency = float(torch.cat([y for _, y in data.values()]).double().mean())
    assert 0.005 < frequency < 0.02
    assert np.mean(said_yes) == pytest.approx(frequency, rel=0.1)


def test_rows_that_touch_are_a_start():
    """An older version kept no sites: its files begin with rows that touch at the weights, and match as soon
    as something is learned."""
    data = made("binary", tasks=4, rows=25, seed=3)
    known = prior.settled(learned(data, "binary", 2, trees=False))
    plain, tree = prior.describe(known)
    for own in tree["tasks"].values():
        own.pop("sites")
    old = prior.restore(plain, tree)
    x, y = made("binary", tasks=5, rows=25, seed=3)["t4"]
    one, other = (prior.adapt(prior.learn(each, "new", x, y)) for each in (known, old))
    for name in data:
        torch.testing.assert_close(
            prior.probabilities(one, x, name), prior.probabilities(other, x, name), atol=2e-3, rtol=0
        )


def test_later_rows_and_rows_that_are_gone_keep_their_places():
    """Sites go with their rows: of a task that has more than are kept, and gets more."""
    data = made("binary", tasks=3, rows=60, seed=4)
    known = learned(data, "binary", 2, trees=False, rows=40)
    x, y = made("binary", tasks=4, rows=30, seed=5)["t3"]
    known = prior.update(known, "t1", x, y)
    for name, record in known.records.items():
        sites = known.structures[name].sites
        assert sites is not None
        assert len(sites.constant) == len(record.y) == 40
    again = prior.restore(*prior.describe(known))
    torch.testing.assert_close(prior.probabilities(again, x, "t1"), prior.probabilities(known, x, "t1"))
    likelihoods: Any = known.likelihoods
    moved = likelihoods.refreshed(known.components)[0]
    for before, after in zip(likelihoods.sites, moved.sites, strict=True):
        torch.testing.assert_close(before.precision, after.precision, atol=0.01, rtol=0.05)


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("precision", -1.0, "negative precision"),
        ("linear", math.nan, "finite"),
        ("constant", math.inf, "finite"),
    ],
)
def test_damaged_sites_are_not_taken(part, value, words):
    known = learned(made("binary", tasks=2, rows=20), "binary", 2, trees=False)
    plain, tree = prior.describe(known)
    sites = tree["tasks"]["0"]["sites"]
    tree["tasks"]["0"]["sites"] = sites | {part: torch.full_like(sites[part], value)}
    with pytest.raises(ValueError, match=words):
        prior.restore(plain, tree)


def test_more_sites_than_rows_are_not_taken():
    known = learned(made("binary", tasks=2, rows=20), "binary", 2, trees=False)
    plain, tree = prior.describe(known)
    sites = tree["tasks"]["0"]["sites"]
    tree["tasks"]["0"]["sites"] = {name: torch.cat([one, one]) for name, one in sites.items()}
    with pytest.raises(ValueError, match="expected"):
        prior.restore(plain, tree)


def test_separable_classes_are_saved_and_loaded(tmp_path):
    """Surely known rows have no curvature; rounding must not make it negative."""
    rng = np.random.default_rng(0)
    x = 3 * rng.normal(size=(400, 3))
    y = np.array(list("wxyz"))[(x[:, 0] > 0) * 2 + (x[:, 1] > 0)]
    learner = piaget.PriorLearner(trees=False)
    learner.learn_all(piaget.streams.from_arrays(x, y, groups=np.repeat(list("abcd"), 100)))
    learner.save(tmp_path / "learner")
    again = piaget.PriorLearner.load(tmp_path / "learner")
    np.testing.assert_array_equal(again.predict_proba(x, "a"), learner.predict_proba(x, "a"))


def groups(count, rows, columns=3, seed=0):
    g = torch.Generator().manual_seed(seed)
    common = torch.randn(columns, generator=g).double()
    data = {}
    for t in range(count):
        x = torch.randn(rows, columns, generator=g).double()
        w = common + 0.5 * torch.randn(columns, generator=g).double()
        data[f"t{t}"] = x, (torch.rand(rows, generator=g) < (x @ w).sigmoid()).long()
    return data


@pytest.mark.parametrize("factor", [1e3, 1e9, 1e13])
def test_a_group_in_other_units_does_no_harm(factor):
    """It is told that it is unusual; others are answered as before, and it can be forgotten."""
    data = groups(20, 60)
    known = prior.settled(learned_at_once(data))
    x, y = groups(1, 60, seed=9)["t0"]
    far = x.clone()
    far[:, 0] *= factor
    assert prior.appraise(known, far, y).found <= 0
    assert prior.appraise(known, factor * x, y).found <= 0
    both = prior.settled(prior.learn(known, "bad", far, y))
    prior.restore(*prior.describe(both))

    def loss(one):
        return np.mean(
            [
                -float(prior.probabilities(one, x, n).gather(1, y[:, None]).log().mean())
                for n, (x, y) in data.items()
            ]
        )

    assert loss(both) < loss(known) + 0.15
    without = prior.forget(both, "bad")
    assert loss(without) == pytest.approx(loss(known), abs=0.01)


def test_moments_far_out_are_finite():
    center, variance, sign = (
        part.flatten()
        for part in torch.meshgrid(
            torch.tensor([-1e9, -1e5, -10.0, 0.0, 10.0, 1e5, 1e9]).double(),
            torch.tensor([1e-8, 1.0, 1e4, 1e8, 1e16]).double(),
            torch.tensor([-1.0, 1.0]).double(),
            indexing="ij",
        )
    )
    log_mass, mean, spread = moments(center, variance, sign)
    assert bool(torch.isfinite(log_mass).all() and torch.isfinite(mean).all() and (spread > 0).all())
    assert float(log_mass.max()) < 1e-6
    assert bool((spread <= variance * (1 + 1e-3)).all())  # but for rounding


def test_rows_are_matched_in_pieces(monkeypatch):
    """Whatever their number, and without those that pad shorter tasks."""
    data = {name: (x[: 5 + 9 * t], y[: 5 + 9 * t]) for t, (name, (x, y)) in enumerate(groups(5, 60).items())}
    found = []
    for piece in (7, 2048):
        monkeypatch.setattr(label_module, "PIECE", piece)
        found.append(learned_at_once(data))
    for name, (x, _) in data.items():
        one, other = (prior.probabilities(known, x, name) for known in found)
        torch.testing.assert_close(one, other, atol=1e-9, rtol=1e-9)


def test_probabilities_are_those_expected_under_the_belief():
    """One task: by draws of its weights."""
    (x, y) = groups(1, 30, columns=4)["t0"]
    known = prior.adapt(learned({"t0": (x, y)}, "binary", trees=False))
    belief, features = known.posterior("t0"), known.standard_frame.features(x)
    noise = torch.randn(20000, 5, generator=torch.Generator().manual_seed(0)).double()
    draws = belief.mean[0] + noise @ torch.linalg.cholesky(belief.covariance[0]).mT
    expected = (features @ draws.mT).sigmoid().mean(1)
    assert float((prior.probabilities(known, x, "t0")[:, 1] - expected).abs().max()) < 0.02


def test_several_classes_touch_at_the_joint_mode():
    """There the slope of likelihood and prior together, by automatic differentiation, is zero."""
    known = prior.adapt(learned(made("multiclass", tasks=3, rows=30), "multiclass", 3, trees=False))
    likelihoods: Any = known.likelihoods
    for _ in range(20):
        likelihoods = likelihoods.refreshed(known.components)[0]
    w, mu = (part.clone().requires_grad_() for part in (likelihoods.w, likelihoods.mu))
    height = likelihoods._height(w, mu, known.components.root, known.components.width)
    for slope in torch.autograd.grad(height, (w, mu)):
        assert float(slope.abs().max()) < 1e-5


def test_sites_do_not_keep_a_batch_in_memory():
    """A task of few rows beside one of many, which pads the batch."""
    data = groups(3, 10)
    data["long"] = groups(1, 400, seed=5)["t0"]
    known = learned_at_once(data)
    for name in ("t0", "t1", "t2"):
        sites = known.structures[name].sites
        assert sites is not None
        assert all(part.untyped_storage().nbytes() == 8 * part.numel() for part in sites)
