"""The library's structures: how one task combines the components. One short class each.

What each of them can do beside what is written here: combining.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from piaget.errors import SettingError
from piaget.method.combining import Frame as Frame, Keep as Keep, Structure as Structure, chain as chain
from piaget.method.components import Components, uniform
from piaget.method.single_models import Alone as Alone, Monolithic as Monolithic
from piaget.method.trees import Tensors, resize, without_place


@dataclass(frozen=True)
class SoftOrdering(Structure):
    """Soft layer ordering: at each depth, a softmax over components. logits (k, depth).

    >>> frame = piaget.Frame(piaget.Dense(16), [(16,), (16,), (16,)], k=4, outputs=1, dtype=torch.float32)
    >>> params = piaget.SoftOrdering().draw(torch.Generator(), frame)
    >>> visible = torch.tensor([True, True, True, False])
    >>> piaget.SoftOrdering().prepare(params, visible)["weights"][:, 0]
    tensor([0.3333, 0.3333, 0.3333, 0.0000])
    """

    name = "soft-ordering"
    axes = {"logits": 0}  # noqa: RUF012
    absent = {"logits": float("-inf")}  # noqa: RUF012
    shares = True

    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        return {"logits": torch.ones(frame.k, frame.depth, dtype=frame.dtype)}

    def draw_initial(self, generator: torch.Generator, drawn: list[Tensors], k: int) -> list[Tensors]:
        """Random one-hot at each depth, drawn again until every component occurs."""
        shape = (len(drawn), drawn[0]["logits"].shape[1])  # (tasks, depth)
        for _ in range(1000):
            chosen = torch.randint(k, shape, generator=generator)
            if len(chosen.unique()) == k:
                break
        else:  # hardly more places than components: give each component a place, if there is one
            places = torch.randperm(chosen.numel(), generator=generator)[:k]
            chosen.view(-1)[places] = torch.randperm(k, generator=generator)[: len(places)]
        one_hot = torch.nn.functional.one_hot(chosen, k).transpose(1, 2).bool()  # (tasks, k, depth)
        return [
            {"logits": params["logits"].masked_fill(~one, float("-inf"))}
            for params, one in zip(drawn, one_hot, strict=True)
        ]

    def like(self, drawn: Tensors, past: Tensors, share: float) -> Tensors:
        """Between in weights, not in logits: those of an initial task are infinite, and would never learn."""
        k = len(drawn["logits"])
        weights = resize(past["logits"].softmax(0), 0, k)  # (k, depth)
        logits = (share * k * weights + (1 - share)).log() + 1  # at share 0 as they are drawn: 1
        return drawn | {"logits": logits}

    def removed(self, params: Tensors, component: int) -> Tensors:
        """The others share its weight in proportion; where it was the only one, equally."""
        logits = without_place(params["logits"], 0, component)
        nothing = (logits == float("-inf")).all(0)  # (depth,)
        return params | {"logits": torch.where(nothing, 1.0, logits)}

    def merged(self, params: Tensors, component: int, into: int, usage: Tensor) -> Tensors:
        """Its weight and the other one's add up."""
        logits = params["logits"].clone()
        logits[into] = torch.logaddexp(logits[into], logits[component])
        return params | {"logits": without_place(logits, 0, component)}

    def prepare(self, params: Tensors, visible: Tensor) -> Tensors:
        masked = params["logits"].masked_fill(~visible[:, None], float("-inf"))
        return {"weights": masked.softmax(0)}

    def weights(
        self, components: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor
    ) -> Tensor:
        return params["weights"][:, depth]

    def path(self, params: Tensors) -> Tensor | None:
        used = params["logits"] > float("-inf")  # (k, depth)
        # A class derived from this one may do more with its components than to weigh them.
        alone = type(self) is SoftOrdering and bool((used.sum(0) == 1).all())
        return used.int().argmax(0) if alone else None


@dataclass(frozen=True)
class SoftGating(Structure):
    """Soft gating: at each depth, a softmax over components that depends on the input.

    Dense components: a linear gate on the depth's input. Convolutional ones: a gating network
    with the main network's layers; the input of depth j passes through layers j .. last and a
    linear head of that depth. weight (depth, k, features), bias (depth, k).

    >>> frame = piaget.Frame(piaget.Dense(16), [(16,), (16,), (16,)], k=4, outputs=1, dtype=torch.float32)
    >>> piaget.SoftGating().draw(torch.Generator(), frame)["weight"].shape  # (depth, k, features)
    torch.Size([2, 4, 16])
    """

    name = "soft-gating"
    axes = {"weight": 1, "bias": 1}  # noqa: RUF012
    absent = {"weight": 0.0, "bias": float("-inf")}  # noqa: RUF012
    shares = True

    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        components, shapes, depth, k = frame.components, frame.shapes, frame.depth, frame.k
        params: Tensors = {}
        if components.gated_by_network:
            layers = [components.draw(generator, shapes[0], frame.dtype) for _ in range(depth)]
            params = {f"layers/{name}": torch.stack([p[name] for p in layers]) for name in layers[0]}
        features = math.prod(shapes[-1] if components.gated_by_network else max(shapes[:-1], key=math.prod))
        params["weight"] = uniform(generator, (depth, k, features), features, frame.dtype)
        params["bias"] = uniform(generator, (depth, k), features, frame.dtype)
        return params

    def merged(self, params: Tensors, component: int, into: int, usage: Tensor) -> Tensors:
        """For weights that add up, the gate z of both would be log(exp z_i + exp z_j), which no gate is. The
        largest one that is nowhere above it, and touches it where the weights have the ratio p : 1 - p that
        they have on average, is p z_i + (1 - p) z_j - p log p - (1 - p) log (1 - p)."""
        pair = usage[[into, component]].to(params["bias"])  # (2, depth)
        whole = pair.sum(0)
        p, q = torch.where(whole > 0, pair / whole.clamp(min=1e-12), 0.5)  # (depth,) each
        weight, bias = params["weight"].clone(), params["bias"].clone()
        weight[:, into] = p[:, None] * weight[:, into] + q[:, None] * weight[:, component]
        # A component that a task never has is gated by minus infinity.
        ours = torch.where(p > 0, p * bias[:, into], 0)
        theirs = torch.where(q > 0, q * bias[:, component], 0)
        bias[:, into] = ours + theirs - torch.xlogy(p, p) - torch.xlogy(q, q)
        return self.removed(params | {"weight": weight, "bias": bias}, component)

    def weights(
        self, components: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor
    ) -> Tensor:
        if components.gated_by_network:
            layers = {n.removeprefix("layers/"): p for n, p in params.items() if n.startswith("layers/")}
            for layer in range(depth, len(params["bias"])):
                h = components.apply_one({name: p[layer] for name, p in layers.items()}, h)
        h = h.flatten(1)
        logits = torch.nn.functional.linear(
            h, params["weight"][depth, :, : h.shape[1]], params["bias"][depth]
        )
        return logits.masked_fill(~visible, float("-inf")).softmax(1)


@dataclass(frozen=True)
class Scaled(Structure):
    """Another structure, with a scale and a shift of each task's own after every depth:
    (1 + gain) * mixture + shift, for each unit or, of images, for each channel.

    gain, shift: (depth, units), or (depth, channels, 1, 1). Both begin at 0, where they change nothing, and
    where weight decay pulls them; those of initial tasks stay there, as all of their structures does.

    Raises `SettingError` if `inner` is no structure, or one without depths (`LinearCombination`, say).

    >>> piaget.Learner(structure="soft-ordering-scaled").settings.structure
    Scaled(inner=SoftOrdering())
    >>> frame = piaget.Frame(piaget.Dense(16), [(16,), (16,), (16,)], k=4, outputs=1, dtype=torch.float32)
    >>> params = piaget.Scaled(piaget.SoftOrdering()).draw(torch.Generator(), frame)
    >>> {name: tuple(p.shape) for name, p in params.items()}
    {'logits': (4, 2), 'gain': (2, 16), 'shift': (2, 16)}
    """

    inner: Structure

    def __post_init__(self) -> None:
        inner: object = self.inner
        if not isinstance(inner, Structure):
            raise SettingError(f"inner={inner!r}; expected a structure, as Scaled(SoftOrdering())")
        if type(inner).body is not Structure.body or inner.output_axes:
            raise SettingError(f"structure {inner.name!r} has no depths whose mixtures could be scaled")

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"{self.inner.name}-scaled"

    @property
    def axes(self) -> dict[str, int]:  # type: ignore[override]
        return self.inner.axes

    @property
    def absent(self) -> dict[str, float]:  # type: ignore[override]
        return self.inner.absent

    @property
    def expandable(self) -> bool:  # type: ignore[override]
        return self.inner.expandable

    @property
    def shares(self) -> bool:  # type: ignore[override]
        return self.inner.shares

    @property
    def fixed_initially(self) -> bool:  # type: ignore[override]
        return self.inner.fixed_initially

    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        drawn, (units, *sides) = self.inner.draw(generator, frame), frame.shapes[-1]
        if {"gain", "shift"} & drawn.keys():
            raise SettingError(f"structure {self.inner.name!r} has a gain or a shift already")
        zeros = torch.zeros(frame.depth, units, *(1 for _ in sides), dtype=frame.dtype)
        return drawn | {"gain": zeros, "shift": zeros.clone()}

    def draw_initial(self, generator: torch.Generator, drawn: list[Tensors], k: int) -> list[Tensors]:
        initial = self.inner.draw_initial(generator, drawn, k)
        return [params | fixed for params, fixed in zip(drawn, initial, strict=True)]

    def like(self, drawn: Tensors, past: Tensors, share: float) -> Tensors:
        own = {name: torch.lerp(drawn[name], past[name], share) for name in ("gain", "shift")}
        fresh, then = ({n: p for n, p in params.items() if n not in own} for params in (drawn, past))
        return self.inner.like(fresh, then, share) | own

    def removed(self, params: Tensors, component: int) -> Tensors:
        return params | self.inner.removed(params, component)

    def merged(self, params: Tensors, component: int, into: int, usage: Tensor) -> Tensors:
        return params | self.inner.merged(params, component, into, usage)

    def prepare(self, params: Tensors, visible: Tensor) -> Tensors:
        prepared = self.inner.prepare(params, visible)
        return prepared | {"gain": params["gain"], "shift": params["shift"]}

    def weights(
        self, components: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor
    ) -> Tensor:
        return self.inner.weights(components, params, depth, h, visible)

    def mix(self, components: Components, outputs: Tensor, weights: Tensor) -> Tensor:
        return self.inner.mix(components, outputs, weights)

    def transform(self, params: Tensors, depth: int, mixture: Tensor) -> Tensor:
        mixture = self.inner.transform(params, depth, mixture)
        return mixture * (1 + params["gain"][depth]) + params["shift"][depth]

    def path(self, params: Tensors) -> Tensor | None:
        scaled = bool(params["gain"].any()) or bool(params["shift"].any())
        return None if scaled else self.inner.path(params)


@dataclass(frozen=True)
class LinearCombination(Structure):
    """f(x) = psi^T (Phi^T x): psi (k, outputs), one column for a value or a binary logit.

    >>> frame = piaget.Frame(piaget.Linear(), [(9,), (1,)], k=4, outputs=1, dtype=torch.float32)
    >>> piaget.LinearCombination().draw(torch.Generator(), frame)["psi"].shape
    torch.Size([4, 1])
    """

    name = "linear"
    axes = {"psi": 0}  # noqa: RUF012
    absent = {"psi": 0.0}  # noqa: RUF012
    output_axes = {"psi": 1}  # noqa: RUF012
    component_axis = 0

    def draw(self, generator: torch.Generator, frame: Frame) -> Tensors:
        return {"psi": torch.rand(frame.k, frame.outputs, dtype=frame.dtype, generator=generator)}

    def draw_initial(self, generator: torch.Generator, drawn: list[Tensors], k: int) -> list[Tensors]:
        """Task t uses component t alone; with several outputs, output c uses t + c."""
        initial = []
        for t, params in enumerate(drawn):
            psi = torch.zeros_like(params["psi"])
            columns = torch.arange(psi.shape[1])
            psi[(t + columns) % k, columns] = 1
            initial.append({"psi": psi})
        return initial

    def merged(self, params: Tensors, component: int, into: int, usage: Tensor) -> Tensors:
        psi = params["psi"].clone()
        psi[into] += psi[component]
        return self.removed({"psi": psi}, component)

    def weights(
        self, components: Components, params: Tensors, depth: int, h: Tensor, visible: Tensor
    ) -> Tensor:
        """One column an output: (k, outputs)."""
        return params["psi"].masked_fill(~visible[:, None], 0.0)

    def mix(self, components: Components, outputs: Tensor, weights: Tensor) -> Tensor:
        return outputs @ weights

    def usage(
        self, components: Components, params: Tensors, visible: Tensor, inputs: Sequence[Tensor]
    ) -> Tensor:
        return params["psi"]


STRUCTURES: dict[str, Structure] = {
    s.name: s
    for s in (
        LinearCombination(),
        SoftOrdering(),
        SoftGating(),
        Scaled(SoftOrdering()),
        Scaled(SoftGating()),
        Monolithic(),
        Alone(),
    )
}
