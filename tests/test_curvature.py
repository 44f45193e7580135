"""Kronecker factors and the EWC penalty against dense matrices in float64."""

from typing import Any

import pytest
import torch

import piaget
from piaget.method import curvature
from piaget.method.adaptation import Finished, StepContext
from piaget.method.curvature import as_matrices, from_matrices, nearest_kronecker, sample_gradients
from piaget.method.objective import Targets, probabilities
from piaget.method.trees import map_tree
from tests.small import image_tasks, make_task

KINDS = ["regression", "binary", "multiclass"]


def learned(kind, components, tasks=None, depth=3, structure="soft-ordering"):
    """A learner whose components are used at every depth, with its first non-initial task."""
    features = 5
    tasks = tasks or [make_task(f"t{i}", kind, features=features, n=20, seed=i) for i in range(3)]
    learner = piaget.Learner(
        structure,
        "nft",
        "compositional",
        components=components,
        initial_components=2,
        depth=depth,
        epochs=4,
        initial_tasks=2,
        batch_size=8,
        dtype="float64",
        learning_rate=0.05,
    )
    for task in tasks:
        learner.learn(task)
    record = learner.state.records[tasks[-1].name]
    return learner, record, tasks[-1]


def params(learner, record):
    return learner.state.params(record, learner.model)


def outputs(learner, record, components, x):
    whole = params(learner, record)._replace(components=components)
    h = learner.model.encode(record.params.encoder, x)
    visible = record.visible(learner.components)
    return learner.model.forward(whole, h, [None] * learner.model.depth, visible)


def dense_fisher(learner, record, x):
    """(n, k, out, in) Jacobians of every output by autograd, and the exact Fisher blocks."""
    components = map_tree(torch.clone, learner.state.components)
    blocks = None
    for n in range(len(x)):
        jacobian = torch.func.jacrev(lambda c, n=n: outputs(learner, record, c, x[n : n + 1])[0])(components)
        rows = as_matrices(jacobian, lead=2)["weight"]  # (outputs, k, out, in)
        out = outputs(learner, record, components, x[n : n + 1])
        if record.kind == "regression":
            hessian = 2 * torch.eye(1, dtype=torch.float64)
        elif record.kind == "binary":
            p = out[0].sigmoid()
            hessian = (p * (1 - p))[None]
        else:
            p = probabilities(record.kind, out)[0]
            hessian = torch.diag(p) - torch.outer(p, p)
        flat = rows.flatten(2)  # (outputs, k, out * in)
        block = torch.einsum("aki,ab,bkj->kij", flat, hessian, flat) / len(x)
        blocks = block if blocks is None else blocks + block
    return blocks


def nearest_by_svd(fisher, out, inp):
    """Van Loan & Pitsianis: the leading singular pair of the rearranged matrix."""
    rearranged = fisher.view(out, inp, out, inp).permute(0, 2, 1, 3).reshape(out * out, inp * inp)
    u, s, v = torch.linalg.svd(rearranged)
    return s[0] * torch.outer(u[:, 0], v[0])


def rearrange(left, right):
    return torch.outer(left.flatten(), right.flatten())


@pytest.mark.parametrize("seed", range(3))
def test_factors_are_the_nearest_kronecker_product(seed):
    g = torch.Generator().manual_seed(seed)
    gradients = torch.randn(9, 2, 4, 3, generator=g, dtype=torch.float64)
    left, right = nearest_kronecker(gradients)
    for k in range(2):
        flat = gradients[:, k].flatten(1)
        expected = nearest_by_svd(flat.T @ flat / 9, 4, 3)
        torch.testing.assert_close(rearrange(left[k], right[k]), expected, rtol=1e-5, atol=1e-8)
        assert torch.linalg.eigvalsh(left[k]).min() > -1e-12
        assert torch.linalg.eigvalsh(right[k]).min() > -1e-12


def test_unused_component_has_zero_factors():
    left, right = nearest_kronecker(torch.zeros(3, 2, 4, 5))
    assert not left.any()
    assert not right.any()


@pytest.mark.parametrize("kind", KINDS)
def test_mean_outer_product_of_sample_gradients_is_the_fisher_block(kind):
    """Every application counts: a component is used at all three depths with weight > 0."""
    learner, record, task = learned(kind, piaget.Dense(4))
    assert (learner.structures()[task.name] > 0.05).all(), "every component at every depth"
    x = task.train.x[:6].double()
    exact = dense_fisher(learner, record, x)
    draws = 1 if kind in ("regression",) else 4000
    generator = torch.Generator().manual_seed(0)
    repeated = x.repeat(draws, 1)
    gradients = sample_gradients(
        learner.model,
        params(learner, record),
        record.visible(learner.components),
        kind,
        record.classes,
        repeated,
        generator,
    )
    flat = as_matrices(gradients, lead=2)["weight"].flatten(2)
    estimate = torch.einsum("nki,nkj->kij", flat, flat) / len(flat)
    if draws == 1:  # no labels are drawn
        torch.testing.assert_close(estimate, exact, rtol=1e-9, atol=1e-12)
    else:  # the mean over many drawn labels
        assert (estimate - exact).norm() < 0.05 * exact.norm()


@pytest.mark.parametrize("components", [piaget.Dense(4), piaget.Conv(3)])
def test_sample_gradients_count_every_application(monkeypatch, components):
    """Against autograd of the plain sum over samples, one sample at a time."""
    tasks = image_tasks(3) if isinstance(components, piaget.Conv) else None
    learner, record, task = learned("multiclass", components, tasks, depth=2)
    x = task.train.x[:4].double()
    labels = []
    original = curvature.draw_labels

    def spy(*args):
        labels.append(original(*args))
        return labels[-1]

    monkeypatch.setattr(curvature, "draw_labels", spy)
    gradients = sample_gradients(
        learner.model,
        params(learner, record),
        record.visible(2),
        record.kind,
        record.classes,
        x,
        torch.Generator().manual_seed(1),
    )
    for n in range(4):
        variables = map_tree(lambda p: p.clone().requires_grad_(), learner.state.components)
        out = outputs(learner, record, variables, x[n : n + 1])
        loss = torch.nn.functional.cross_entropy(out, labels[0][n : n + 1])
        expected = torch.autograd.grad(loss, [variables["weight"], variables["bias"]])
        torch.testing.assert_close(gradients["weight"][n], expected[0], rtol=1e-8, atol=1e-12)
        torch.testing.assert_close(gradients["bias"][n], expected[1], rtol=1e-8, atol=1e-12)


def step_context(components, memory):
    """A step with a gradient of zero."""
    return StepContext(
        components=components,
        gradient=map_tree(torch.zeros_like, components),
        memory=memory,
        reference=None,
        reference_loss=None,
        inputs=torch.zeros(0, 5),
        targets=Targets(torch.zeros(0), torch.zeros(0)),
        task=None,
        weight=torch.zeros(0),
        step=torch.zeros(()),
        random=torch.zeros(0),
        loss=lambda components: torch.zeros(()),
        outputs=lambda components: torch.zeros(0, 1),
    )


def test_penalty_gradient_is_the_dense_product():
    """lambda sum_t (L_t kron R_t) vec(Phi - Phi_t), and the gradient of the quadratic penalty."""
    learner, record, task = learned("binary", piaget.Dense(4))
    ewc = piaget.KroneckerEWC(0.3)
    state = learner.state
    memory: dict[str, Any] = {}
    anchors = []
    generator = torch.Generator().manual_seed(5)
    components = state.components
    for t in range(3):
        components = map_tree(
            lambda p: p + 0.1 * torch.randn(p.shape, generator=generator, dtype=p.dtype), components
        )
        whole = params(learner, record)._replace(components=components)
        finished = Finished(
            t,
            record.kind,
            record.classes,
            task.train.x.double(),
            task.train.y,
            learner.model,
            whole,
            record.visible(2),
            6,
            generator,
            stores_inputs=False,
        )
        memory = ewc.remember(memory, finished)
        anchors.append(as_matrices(components)["weight"])
    now = map_tree(lambda p: p + 0.2 * torch.randn(p.shape, generator=generator, dtype=p.dtype), components)
    context = step_context(now, ewc.constants(memory, 2))
    corrected = as_matrices(ewc.correct(context).gradient)["weight"]
    phi = as_matrices(now)["weight"].requires_grad_()
    for k in range(2):
        dense = torch.zeros(20, 20, dtype=torch.float64)
        expected = torch.zeros(20, dtype=torch.float64)
        penalty = torch.zeros((), dtype=torch.float64)
        for t in range(3):
            block = torch.kron(memory["left"]["weight"][t, k], memory["right"]["weight"][t, k])
            dense += block
            delta = (phi[k] - anchors[t][k]).flatten()
            expected = expected + 0.3 * block @ delta
            penalty = penalty + 0.3 / 2 * delta @ block @ delta
        assert dense.norm() > 1e-3
        torch.testing.assert_close(corrected[k].flatten(), expected.detach(), rtol=1e-9, atol=1e-12)
        by_autograd = torch.autograd.grad(penalty, phi)[0][k]
        torch.testing.assert_close(corrected[k], by_autograd, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("tasks", [1, 5, 40])
def test_components_with_one_output_need_one_product_for_all_tasks(tasks):
    generator = torch.Generator().manual_seed(tasks)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    ewc, left, right = piaget.KroneckerEWC(0.3), normal(tasks, 2, 1, 1).square(), normal(tasks, 2, 4, 4)
    weight, bias, anchor = normal(2, 1, 3), normal(2, 1), normal(2, 1, 4)
    memory = {"left": {"weight": left}, "right": {"weight": right}, "anchor": {"weight": anchor}}
    constants = ewc.constants(memory, 2)
    assert constants["right"]["weight"].shape == (2, 4, 4)
    found = ewc.correct(step_context({"weight": weight, "bias": bias}, constants)).gradient
    phi = torch.cat([weight, bias[..., None]], -1)
    expected = 0.3 * (sum(left[t] @ phi @ right[t] for t in range(tasks)) - anchor)
    torch.testing.assert_close(as_matrices(found)["weight"], expected)


def test_matrices_join_weight_and_bias_and_come_back():
    shapes = {
        "weight": (2, 3, 4),
        "bias": (2, 3),
        "scale": (2, 5),
        "conv:weight": (2, 3, 4, 3, 3),
        "conv:bias": (2, 3),
        "gain": (2,),
    }
    generator = torch.Generator().manual_seed(0)
    params = {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    matrices = as_matrices(params)
    assert {n: tuple(m.shape) for n, m in matrices.items()} == {
        "weight": (2, 3, 5),
        "scale": (2, 5, 1),
        "conv:weight": (2, 3, 37),
        "gain": (2, 1, 1),
    }
    back = from_matrices(matrices, params)
    assert back.keys() == params.keys()
    for name, p in params.items():
        assert torch.equal(back[name], p)


# --- one product for all tasks -----------------------------------------------------------------------------


def semidefinite(generator, k, n, rank):
    root = torch.randn(k, n, rank, generator=generator, dtype=torch.float64)
    return root @ root.mT


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_the_product_nearest_to_a_sum_is_that_of_the_dense_matrix(seed, scale):
    g = torch.Generator().manual_seed(seed)
    one = semidefinite(g, 3, 4, 2), semidefinite(g, 3, 3, 3)
    other = scale * semidefinite(g, 3, 4, 4), semidefinite(g, 3, 3, 1)
    left, right = curvature.nearest_to_sum(one, other)
    for k in range(3):
        dense = torch.kron(one[0][k], one[1][k]) + torch.kron(other[0][k], other[1][k])
        expected = nearest_by_svd(dense, 4, 3)
        torch.testing.assert_close(
            rearrange(left[k], right[k]), expected, rtol=1e-8, atol=1e-8 * expected.max()
        )
        for factor in (left[k], right[k]):
            assert torch.linalg.eigvalsh(factor).min() > -1e-9 * factor.norm()
        torch.testing.assert_close(left[k].norm(), right[k].norm())


def test_sums_with_nothing_and_with_what_has_nothing_in_common():
    a = torch.diag(torch.tensor([1.0, 0.0])).double()[None]
    b = torch.diag(torch.tensor([0.0, 1.0])).double()[None]
    zero = torch.zeros_like(a)
    left, right = curvature.nearest_to_sum((zero, zero), (zero, zero))
    assert not left.any()
    assert not right.any()
    for pair in (((a, a), (zero, zero)), ((zero, zero), (a, a))):
        left, right = curvature.nearest_to_sum(*pair)
        torch.testing.assert_close(torch.kron(left[0], right[0]), torch.kron(a[0], a[0]))
    left, right = curvature.nearest_to_sum((a, a), (b, b))  # either is nearest
    torch.testing.assert_close(torch.kron(left[0], right[0]), torch.kron(a[0], a[0]))
    left, right = curvature.nearest_to_sum((a, a), (2 * b, b))
    torch.testing.assert_close(torch.kron(left[0], right[0]), torch.kron(2 * b[0], b[0]))
    left, right = curvature.nearest_to_sum((a, a), (3 * a, a))  # the sum is a product
    torch.testing.assert_close(torch.kron(left[0], right[0]), torch.kron(4 * a[0], a[0]))


def ewc_learner(adaptation, tasks=6):
    learner = piaget.Learner(
        adaptation=adaptation,
        algorithm="compositional",
        components=piaget.Dense(4),
        initial_components=2,
        initial_tasks=2,
        epochs=3,
        batch_size=10,
        dtype="float64",
    )
    sizes = []
    for i in range(tasks):
        learner.learn(make_task(f"t{i}", "binary", 2, 5, n=20, seed=i))
        sizes.append(sum(t.numel() for part in learner.state.memory.values() for t in part.values()))
    return learner, sizes


def test_merged_memory_does_not_grow_and_is_near_the_sum():
    """Same components for both (strength 0), so the same factors: the merged one against the dense sum."""
    merged, sizes = ewc_learner(piaget.MergedEWC(0.0))
    apart, growing = ewc_learner(piaget.KroneckerEWC(0.0))
    assert len(set(sizes[1:])) == 1
    assert growing[-1] > 2.5 * growing[1]
    ours, theirs = merged.state.memory, apart.state.memory
    for k in range(2):
        pairs = zip(theirs["left"]["weight"][:, k], theirs["right"]["weight"][:, k], strict=True)
        dense = sum(torch.kron(left, right) for left, right in pairs)
        assert isinstance(dense, torch.Tensor)
        product = torch.kron(ours["left"]["weight"][k], ours["right"]["weight"][k])
        best = nearest_by_svd(dense, 4, 5)
        least = float((rearrange_dense(dense, 4, 5) - best).norm() / dense.norm())
        error = float((dense - product).norm() / dense.norm())
        assert least <= error < 1.1 * least + 0.05, (least, error)  # task by task: hardly worse than at once
    torch.testing.assert_close(ours["anchor"]["weight"], as_matrices(merged.state.components)["weight"])


def rearrange_dense(matrix, out, inp):
    return matrix.view(out, inp, out, inp).permute(0, 2, 1, 3).reshape(out * out, inp * inp)


def test_merged_penalty_gradient_is_the_dense_product():
    """lambda (L kron R) vec(Phi - Phi*), also for a component that came later, which is free."""
    learner, _ = ewc_learner(piaget.MergedEWC(0.3))
    ewc, memory = learner.settings.adaptation, learner.state.memory
    generator = torch.Generator().manual_seed(1)
    grown = {
        n: torch.cat([p, torch.randn(p[:1].shape, generator=generator, dtype=p.dtype)])
        for n, p in learner.state.components.items()
    }
    now = map_tree(lambda p: p + 0.2 * torch.randn(p.shape, generator=generator, dtype=p.dtype), grown)
    context = step_context(now, ewc.constants(memory, 3))
    corrected = as_matrices(ewc.correct(context).gradient)["weight"]
    for k in range(2):
        block = torch.kron(memory["left"]["weight"][k], memory["right"]["weight"][k])
        delta = (as_matrices(now)["weight"][k] - memory["anchor"]["weight"][k]).flatten()
        torch.testing.assert_close(corrected[k].flatten(), 0.3 * block @ delta, rtol=1e-9, atol=1e-12)
    assert not corrected[2].any()
