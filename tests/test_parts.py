"""Small parts: schedules, noise, Adam, objectives, components."""

import pytest
import torch
from torch import nn

import piaget
from piaget.data.tasks import Kind
from piaget.engine.noise import draw_bits, packed_bytes, unpack
from piaget.engine.step import adam_, new_moments
from piaget.method import objective


def test_algorithm_1_schedule():
    assert piaget.Staged(99, 99, 1).stages() == ["assimilation"] * 99 + ["adaptation"]
    assert piaget.Staged(4, 2, 3).stages() == (["assimilation"] * 2 + ["adaptation"] * 3) * 2
    assert piaget.Staged(5, 2, 1).stages()[-1] == "assimilation"
    assert piaget.Joint(3).stages() == ["joint"] * 3


@pytest.mark.parametrize("dropout", [0.5, 0.2])
def test_dropout_bits_have_the_right_share_and_scale(dropout):
    shapes = [(5, 3), (7,)]
    bits = draw_bits(torch.Generator().manual_seed(0), (200, 4, packed_bytes(shapes)), dropout)
    keep = unpack(bits, shapes, piaget.Dense(dropout=dropout), torch.float64)
    assert [tuple(k.shape) for k in keep] == [(200, 4, 5, 3), (200, 4, 7)]
    flat = torch.cat([k.flatten() for k in keep])
    assert set(flat.unique().tolist()) == {0.0, 1 / (1 - dropout)}
    assert float(flat.mean()) == pytest.approx(1, abs=0.02)


def test_adam_is_pytorchs_and_leaves_the_untouched_alone():
    generator = torch.Generator().manual_seed(0)
    ours = {"w": torch.randn(3, 4, generator=generator, dtype=torch.float64)}
    theirs = [nn.Parameter(ours["w"][i].clone()) for i in range(3)]
    optimizer = torch.optim.Adam(theirs, lr=0.01)
    moments = new_moments(ours, (3,))
    for step in range(20):
        gradient = torch.randn(3, 4, generator=generator, dtype=torch.float64)
        touched = torch.tensor([True, step % 2 == 0, False])
        for i in range(3):
            theirs[i].grad = gradient[i].clone() if touched[i] else None
        optimizer.step()
        adam_(ours, {"w": gradient}, moments, touched, 0.01)
    torch.testing.assert_close(ours["w"], torch.stack(list(theirs)).detach(), rtol=1e-12, atol=1e-14)
    assert moments["count"].tolist() == [20, 10, 0]
    assert not moments["mean"]["w"][2].any()


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
        rows = objective.target_rows(kind, target, width, torch.float64)
        task = objective.describe(kind, classes, width)
        losses = objective.sample_losses(out, rows["column"], rows["value"], task)
        torch.testing.assert_close(losses, expected)


def test_improvement():
    assert objective.improvement("binary", 0.84, 0.8) == pytest.approx(0.05)
    assert objective.improvement("binary", 0.1, 0.0) == float("inf")
    assert objective.improvement("regression", 0.9, 1.0) == pytest.approx(0.1)
    keep = piaget.ComponentDropout(0.05)
    assert keep.keeps("multiclass", 0.84001, 0.8)
    assert not keep.keeps("multiclass", 0.83, 0.8)
    assert keep.keeps("multiclass", 0.0, 0.0)


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
    rows = objective.target_rows(kind, y, 3, torch.float32)
    assert {t.device.type for t in rows.values()} == {"meta"}
    out = torch.zeros(3, 3, device="meta")
    task = {name: t.to("meta") for name, t in objective.describe(kind, 3, 3).items()}
    assert objective.sample_losses(out, rows["column"], rows["value"], task).device.type == "meta"
    moments = new_moments({"w": torch.zeros(2, 3, device="meta")}, (2,), "meta")
    assert moments["count"].device.type == "meta"
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
