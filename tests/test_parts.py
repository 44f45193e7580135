"""Small parts: schedules, noise, Adam, objectives, components."""

import pytest
import torch
from torch import nn

import piaget
from piaget.data.tasks import Kind
from piaget.engine import noise
from piaget.engine.noise import draw_bits, packed_bytes, unpack
from piaget.method import objective
from piaget.method.expansion import Evidence
from piaget.method.optimizer import SGD, Adam
from piaget.method.parameters import new_moments
from piaget.method.rates import CosineRate
from piaget.method.schedule import ADAPTATION, ASSIMILATION, JOINT
from piaget.method.stopping import Patience
from piaget.method.trees import map_tree


def test_algorithm_1_schedule():
    assert piaget.Staged(99, 99, 1).stages() == [ASSIMILATION] * 99 + [ADAPTATION]
    assert piaget.Staged(4, 2, 3).stages() == ([ASSIMILATION] * 2 + [ADAPTATION] * 3) * 2
    assert piaget.Staged(5, 2, 1).stages()[-1] == ASSIMILATION
    assert piaget.Joint(3).stages() == [JOINT] * 3


@pytest.mark.parametrize("dropout", [0.5, 0.2])
def test_dropout_bits_have_the_right_share_and_scale(dropout):
    shapes = [(5, 3), (7,)]
    bits = draw_bits(torch.Generator().manual_seed(0), (200, 4, packed_bytes(shapes)), dropout)
    keep = unpack(bits, shapes, piaget.Dense(dropout=dropout), torch.float64)
    assert [tuple(k.shape) for k in keep] == [(200, 4, 5, 3), (200, 4, 7)]
    flat = torch.cat([k.flatten() for k in keep])
    assert set(flat.unique().tolist()) == {0.0, 1 / (1 - dropout)}
    assert float(flat.mean()) == pytest.approx(1, abs=0.02)


def test_dropout_bits_are_the_same_however_many_are_drawn_at_a_time(monkeypatch):
    def drawn():
        return draw_bits(torch.Generator().manual_seed(0), (3, 1000, 2), 0.2)

    expected = drawn()
    monkeypatch.setattr(noise, "RANDOM_BLOCK", 7)
    assert torch.equal(drawn(), expected)


OPTIMIZERS = {
    "adam": (Adam(), lambda p: torch.optim.Adam(p, lr=0.01)),
    "adamw": (Adam(weight_decay=0.3), lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=0.3)),
    "sgd": (SGD(), lambda p: torch.optim.SGD(p, lr=0.01)),
    "momentum": (SGD(momentum=0.9), lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_are_pytorchs_and_leave_the_untouched_alone(name):
    """A step count for each of three parameters; the second is touched every other time, the third never."""
    ours, make = OPTIMIZERS[name]
    generator = torch.Generator().manual_seed(0)
    w = torch.randn(3, 4, generator=generator, dtype=torch.float64)
    start = w.clone()
    theirs = [nn.Parameter(w[i].clone()) for i in range(3)]
    optimizer = make(theirs)
    slots = [torch.zeros_like(w) for _ in ours.slots]
    count, rate = torch.zeros(3, dtype=torch.float64), torch.tensor(0.01, dtype=torch.float64)
    for step in range(20):
        gradient = torch.randn(3, 4, generator=generator, dtype=torch.float64)
        touched = torch.tensor([True, step % 2 == 0, False])
        for i in range(3):
            theirs[i].grad = gradient[i].clone() if touched[i] else None
        optimizer.step()
        live = touched.double()
        count += live
        factors = ours.factors(live, count.clamp(min=1), rate)
        ours.update_(w, gradient, slots, [factor[:, None] for factor in factors])
    torch.testing.assert_close(w, torch.stack(list(theirs)).detach(), rtol=1e-12, atol=1e-14)
    assert torch.equal(w[2], start[2])
    assert not any(slot[2].any() for slot in slots)


def test_rates_and_patience():
    cosine = CosineRate(least=0.1)
    assert cosine.factor(0, 10) == 1
    assert cosine.factor(5, 10) == pytest.approx(0.55)
    assert 0.1 < cosine.factor(9, 10) < 0.13
    assert not Patience(2).stops([0.5, 0.6, 0.6])  # the first of equals is the best
    assert Patience(2).stops([0.5, 0.6, 0.5, 0.6])
    with pytest.raises(piaget.SettingError, match="1 or more"):
        Patience(0)


@pytest.mark.parametrize("width", [3, 5])
def test_losses_are_pytorchs(width):
    generator = torch.Generator().manual_seed(0)
    out = torch.randn(8, width, generator=generator, dtype=torch.float64)
    y = torch.randint(0, 2, (8,), generator=generator)
    cases: dict[Kind, tuple[int, torch.Tensor]] = {
        "multiclass": (3, nn.functional.cross_entropy(out[:, :3], y, reduction="none")),
        "binary": (
            2,
            nn.functional.binary_cross_entropy_with_logits(out[:, 0], y.double(), reduction="none"),
        ),
        "regression": (0, (out[:, 0] - y).square()),
    }
    for kind, (classes, expected) in cases.items():
        target = y.double() if kind == "regression" else y
        rows = objective.targets(kind, target, width, torch.float64)
        form = objective.output_form(kind, classes, width)
        losses = objective.sample_losses(out, rows, form)
        torch.testing.assert_close(losses, expected)


def test_improvement():
    assert objective.improvement("binary", 0.84, 0.8) == pytest.approx(0.05)
    assert objective.improvement("binary", 0.1, 0.0) == float("inf")
    assert objective.improvement("regression", 0.9, 1.0) == pytest.approx(0.1)
    keep = piaget.ComponentDropout(0.05)
    assert keep.keeps(evidence(85, 80))
    assert not keep.keeps(evidence(83, 80))
    assert keep.keeps(evidence(0, 0))


def evidence(right_with, right_without):
    """Of 100 samples, so many are right with the candidate, and so many without it."""
    targets = torch.ones(100, dtype=torch.int64)

    def outputs(right):
        return torch.where(torch.arange(100) < right, 1.0, -1.0)[:, None]

    return Evidence("binary", outputs(right_with), outputs(right_without), targets)


@pytest.mark.parametrize("kind", [piaget.Dense(5), piaget.Conv(4), piaget.Conv(4, padding=0)])
def test_padded_inputs_are_not_multiplied_but_mean_the_same(kind):
    generator = torch.Generator().manual_seed(0)
    shape = (3,) if isinstance(kind, piaget.Dense) else (3, 8, 8)
    width = 5 if isinstance(kind, piaget.Dense) else 4
    one = [kind.draw(generator, shape, torch.float64) for _ in range(2)]
    params = {name: torch.stack([p[name] for p in one]) for name in one[0]}
    h = torch.randn(2, *shape, generator=generator, dtype=torch.float64)
    padded = torch.cat([h, torch.zeros(2, width - 3, *shape[1:], dtype=torch.float64)], 1)
    out = kind.apply(params, h)
    assert out.shape == (2, 2, *kind.output_shape(shape))
    torch.testing.assert_close(out, kind.apply(params, padded))
    torch.testing.assert_close(out[:, 1], kind.apply_one(one[1], h))


class WithDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))

    def forward(self, x):
        return self.layer(x)


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (lambda: nn.Linear(3, 4), "preserves the shape"),
        (WithDropout, "dropout layers"),
        (lambda: nn.BatchNorm1d(3), "has buffers"),
        (lambda: "no module", "expected an nn.Module"),
    ],
)
def test_modules_that_cannot_be_components(factory, message):
    with pytest.raises(piaget.SettingError, match=message):
        piaget.Module(factory).draw(torch.Generator(), (3,), torch.float32)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
def test_nothing_strays_to_another_device(kind):
    """The meta device stands in for a GPU: mixing it with the CPU is an error."""
    y = torch.zeros(3, device="meta", dtype=torch.float32 if kind == "regression" else torch.int64)
    rows = objective.targets(kind, y, 3, torch.float32)
    assert {t.device.type for t in rows} == {"meta"}
    out = torch.zeros(3, 3, device="meta")
    form = map_tree(lambda t: t.to("meta"), objective.output_form(kind, 3, 3))
    assert objective.sample_losses(out, rows, form).device.type == "meta"
    moments = new_moments(("mean",), {"w": torch.zeros(2, 3, device="meta")}, 2)
    assert moments.updates.device.type == "meta"
    bits = torch.zeros(3, 2, 1, dtype=torch.uint8, device="meta")
    assert unpack(bits, [(4,)], piaget.Dense(), torch.float32)[0].device.type == "meta"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("adaptation", ["er", "ewc"])
def test_learns_on_a_gpu(adaptation):
    from tests.small import mixed_tasks

    learner = piaget.Learner(
        adaptation=adaptation, components=piaget.Dense(8), epochs=3, initial_tasks=2, device="cuda"
    )
    tasks = mixed_tasks(4)
    for task in tasks:
        learner.learn(task)
    assert len(learner.predict(tasks[3].test.x, "task 3")) == 30
