"""Inference of tasks: from what is noted of a task when it ends, how likely an input is of that task.

A method notes a few statistics of each task's training data (`fit`), and later scores inputs by them
(`scores`). Held-out samples of the task are scored, too, and these scores are kept: by them it is known how
low the score of an input may be before it is of none of the tasks.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from piaget.data.arrays import Kind
from piaget.errors import TaskError
from piaget.method.model import Model
from piaget.method.parameters import Params
from piaget.method.trees import Tensors
from piaget.method.values import WHOLE, check_fields, one_of

View = Literal["inputs", "encoded", "features"]


@dataclass(frozen=True, eq=False)
class Seen:
    """Inputs, and the network of a task that looks at them.

    >>> class Margin(piaget.Inference):  # by how much the likeliest class is ahead of the next one
    ...     name = "margin"
    ...     def fit(self, seen, y, earlier):  # `seen` is one of these
    ...         print(tuple(seen.view("inputs").shape), tuple(seen.view("features").shape))
    ...         return {}
    ...     def scores(self, noted, seen):
    ...         best, second = seen.logits().topk(2).values.T
    ...         return best - second
    >>> x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    >>> learner = piaget.Learner(inference=Margin(), initial_tasks=1, epochs=2, width=8)
    >>> rows = learner.learn(piaget.Task.from_arrays("site 1", x, y))
    (12, 2) (12, 8)
    """

    x: Tensor  # (n, *shape), as the network takes them
    given: Tensor  # the same in the units in which they were given: alike for all tasks
    kind: Kind
    classes: int
    model: Model
    params: Params
    visible: Tensor  # (k,): the components that the task may use

    def view(self, name: View) -> Tensor:
        """(n, features): the inputs, what enters the components, or what leaves the last depth."""
        with torch.no_grad():
            if name == "inputs":
                return self.given.flatten(1)
            h = self.model.encode(self.params.encoder, self.x)
            if name == "encoded":
                return h.flatten(1)
            features = self.model.features_of_encoded(self.params, h, self.visible)
            return features.flatten(1) if features.ndim > 1 else features[:, None]

    def logits(self) -> Tensor:
        """(n, classes), in float64. A binary task's single logit z counts as (-z/2, z/2)."""
        out = self.model.outputs(self.params, self.x, self.visible).double()
        if self.kind == "binary":
            return torch.stack([-out[:, 0] / 2, out[:, 0] / 2], 1)
        return out[:, : self.classes]


class Inference(ABC):
    """A way to tell of which task an input is.

    >>> class Nearest(piaget.Inference):
    ...     name, comparable = "nearest", True
    ...     def fit(self, seen, y, earlier):
    ...         return {"mean": seen.view("inputs").double().mean(0)}  # (features,)
    ...     def scores(self, noted, seen):
    ...         return -(seen.view("inputs") - noted["mean"]).norm(dim=1)  # (n,)
    >>> x, y = np.arange(80.0).reshape(40, 2), np.arange(40) % 2
    >>> learner = piaget.Learner(inference=Nearest(), initial_tasks=2, epochs=2, width=8)
    >>> for task in piaget.streams.from_arrays(x, y, groups=["north"] * 20 + ["south"] * 20):
    ...     rows = learner.learn(task)
    >>> learner.infer(np.array([[10.0, 11.0], [60.0, 61.0]])).answers
    ['north', 'south']
    """

    name: str
    notes: bool = True  # is anything noted when a task ends?
    comparable: bool = False  # can scores by different tasks be compared as they are?

    def check_kind(self, kind: Kind) -> None:  # noqa: B027  (any kind is a fine answer)
        """Raises TaskError if tasks of this kind cannot be told from others."""

    @abstractmethod
    def fit(self, seen: Seen, y: Tensor, earlier: Sequence[Tensors]) -> Tensors:
        """What is noted of a task: of training inputs and their targets y (n,). earlier: what was noted of
        tasks before it with inputs of the same shape."""

    @abstractmethod
    def scores(self, noted: Tensors, seen: Seen) -> Tensor:
        """(n,): the higher, the likelier the inputs are of the task."""

    def recognizes(self, noted: Tensors, features: int, classes: int) -> bool:
        """Is this what `fit` returns? Asked of what a file holds. features: those of an input."""
        return True


@dataclass(frozen=True)
class NoInference(Inference):
    """Nothing is noted: tasks are always named. This is the default.

    A learner that is asked without a task raises `SettingError`.

    >>> x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    >>> learner = piaget.Learner(inference="none", initial_tasks=1, epochs=2, width=8)
    >>> rows = learner.learn(piaget.Task.from_arrays("site 1", x, y))
    >>> learner.predict(x)
    Traceback (most recent call last):
    piaget.errors.SettingError: ...
    """

    name = "none"
    notes = False

    def fit(self, seen: Seen, y: Tensor, earlier: Sequence[Tensors]) -> Tensors:
        raise AssertionError("nothing is noted")

    def scores(self, noted: Tensors, seen: Seen) -> Tensor:
        raise AssertionError("nothing is noted")


@dataclass(frozen=True)
class Density(Inference):
    """The log-density of a mixture with one part a class and one covariance.

    Each part is Student's t with as many degrees of freedom as there were samples: what is to be expected of
    a Gaussian that is known from these.

    view: of what. The inputs of all tasks of one shape lie in one space, so their densities can be compared;
    a task's encoder and structure make a space of the task's own. More features than `dimensions` are
    reduced to so many by a fixed random projection.

    The covariance is shrunk, with the weight of as many samples as there are dimensions, towards that of
    earlier tasks where they lie in the same space, and else towards its diagonal.

    Raises `SettingError` if `view` is another word, or `dimensions` not a whole number from 1 on.

    >>> x, y = np.arange(80.0).reshape(40, 2), np.arange(40) % 2
    >>> learner = piaget.Learner(inference=piaget.Density("inputs"), initial_tasks=2, epochs=2, width=8)
    >>> for task in piaget.streams.from_arrays(x, y, groups=["north"] * 20 + ["south"] * 20):
    ...     rows = learner.learn(task)
    >>> learner.infer(np.array([[10.0, 11.0], [60.0, 61.0]])).answers
    ['north', 'south']
    >>> learner.infer(x[:20], together=True)  # inputs of one task are told more surely
    Inferred('north': 1)
    """

    view: View = "inputs"
    dimensions: int = 64

    def __post_init__(self) -> None:
        check_fields(self, view=one_of("inputs", "encoded", "features"), dimensions=WHOLE)

    @property
    def name(self) -> str:  # type: ignore[override]
        """As settings have it."""
        return self.view

    @property
    def comparable(self) -> bool:  # type: ignore[override]
        """Only in the one space that tasks share."""
        return self.view == "inputs"

    def fit(self, seen: Seen, y: Tensor, earlier: Sequence[Tensors]) -> Tensors:
        z = self._reduced(seen)  # (n, d)
        labels = torch.zeros(len(z), dtype=torch.int64) if seen.kind == "regression" else y.cpu()
        _, labels, counts = labels.unique(return_inverse=True, return_counts=True)
        mean = torch.zeros(len(counts), z.shape[1], dtype=z.dtype).index_add_(0, labels, z) / counts[:, None]
        residuals = z - mean[labels]
        scatter = residuals.T @ residuals
        n, d = z.shape
        alike = [noted for noted in earlier if self.comparable and noted["covariance"].shape == (d, d)]
        prior = _pooled(alike) if alike else (scatter / n).diagonal().diag()
        covariance = (scatter + d * prior) / (n + d)
        covariance = (covariance + covariance.T) / 2  # to the bit
        return {
            "mean": mean,
            "weight": counts.double() / n,
            "covariance": covariance + _floor(covariance.diagonal(), z.square().mean(0)).diag(),
            "count": torch.tensor(n),
        }

    def scores(self, noted: Tensors, seen: Seen) -> Tensor:
        z, mean = self._reduced(seen), noted["mean"]
        factor = torch.linalg.cholesky(noted["covariance"])
        solved = torch.linalg.solve_triangular(factor, torch.cat([z, mean]).T, upper=False).T
        distances = torch.cdist(
            solved[: len(z)], solved[len(z) :], compute_mode="donot_use_mm_for_euclid_dist"
        )
        n, d = float(noted["count"]), z.shape[1]
        volume = math.lgamma(n / 2) - math.lgamma((n + d) / 2) + d / 2 * math.log(n * math.pi)
        volume += float(factor.diagonal().log().sum())
        each = noted["weight"].log() - (n + d) / 2 * torch.log1p(distances.square() / n)  # (samples, classes)
        return each.logsumexp(1) - volume

    def recognizes(self, noted: Tensors, features: int, classes: int) -> bool:
        if noted.keys() != {"mean", "weight", "covariance", "count"}:
            return False
        mean, weight, covariance, count = (noted[name] for name in ("mean", "weight", "covariance", "count"))
        wide = covariance.shape[-1] if covariance.ndim else 0
        most = min(features, self.dimensions) if self.view == "inputs" else self.dimensions
        shapes = (mean.shape, weight.shape, covariance.shape, count.shape)
        groups = len(weight) if weight.ndim else 0
        return (
            1 <= groups <= max(classes, 1)
            and 1 <= wide <= most
            and (self.view != "inputs" or wide == most)
            and shapes == ((groups, wide), (groups,), (wide, wide), ())
            and {mean.dtype, weight.dtype, covariance.dtype} == {torch.float64}
            and count.dtype == torch.int64
            and int(count) > 0
            and bool((weight > 0).all())
            and bool(torch.equal(covariance, covariance.T))
            and int(torch.linalg.cholesky_ex(covariance).info) == 0
        )

    def _reduced(self, seen: Seen) -> Tensor:
        z = seen.view(self.view).double().cpu()
        return z @ _signs(z.shape[1], self.dimensions) if z.shape[1] > self.dimensions else z


def _pooled(noted: Sequence[Tensors]) -> Tensor:
    """The mean of covariances, weighed by the samples that they are of."""
    counts = torch.stack([one["count"] for one in noted]).double()
    return torch.tensordot(counts / counts.sum(), torch.stack([one["covariance"] for one in noted]), 1)


def _floor(variances: Tensor, squares: Tensor) -> Tensor:
    """What is added to variances (d,), so that none is 0: an input that never varied in training may vary a
    little later. squares: the mean square of each, to tell rounding from small units."""
    varies = variances > 1e-12 * squares
    usual = variances[varies].median() if bool(varies.any()) else variances.new_tensor(1e-9)
    return torch.where(varies, 1e-6 * variances, 1e-3 * usual)


@functools.lru_cache(maxsize=8)
def _signs(features: int, dimensions: int) -> Tensor:
    """A projection (features, dimensions) of random signs. They are hashes of their places (splitmix64), so
    that they are the same everywhere and for ever, and need not be kept."""
    with np.errstate(over="ignore"):
        z = np.arange(1, features * dimensions + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    signs = 1.0 - 2.0 * (z >> np.uint64(63)).astype(np.float64)
    return torch.from_numpy(signs).view(features, dimensions) / math.sqrt(features)


class _OfOutputs(Inference):
    """A score of a classification's outputs. Nothing but the scores of held-out samples is noted; they are of
    the components as they were then."""

    def check_kind(self, kind: Kind) -> None:
        if kind == "regression":
            raise TaskError(
                f"a regression's outputs tell nothing of the task: inference={self.name!r} is for "
                "classifications; expected inference='inputs', 'encoded' or 'features'"
            )

    def fit(self, seen: Seen, y: Tensor, earlier: Sequence[Tensors]) -> Tensors:
        return {}

    def recognizes(self, noted: Tensors, features: int, classes: int) -> bool:
        return not noted


@dataclass(frozen=True)
class Confidence(_OfOutputs):
    """The probability of the likeliest class: the simplest way, to compare others with.

    Learning a regression raises `TaskError`.

    >>> x, y = np.arange(40.0).reshape(20, 2), np.arange(20) % 2
    >>> learner = piaget.Learner(inference=piaget.Confidence(), initial_tasks=1, epochs=2, width=8)
    >>> rows = learner.learn(piaget.Task.from_arrays("site 1", x, y))
    >>> scores = learner.infer(x).scores  # (n, tasks)
    >>> np.allclose(np.exp(scores[:, 0]), learner.predict_proba(x, task="site 1").max(1))
    True
    """

    name = "confidence"
    comparable = True

    def scores(self, noted: Tensors, seen: Seen) -> Tensor:
        return seen.logits().log_softmax(1).max(1).values  # its logarithm: probabilities near 1 differ, too


@dataclass(frozen=True)
class Energy(_OfOutputs):
    """The logarithm of the summed exponentials of a task's logits.

    Learning a regression raises `TaskError`.

    >>> learner = piaget.Learner(inference=piaget.Energy(), initial_tasks=1, epochs=2, width=8)
    >>> x = np.arange(40.0).reshape(20, 2)
    >>> learner.learn(piaget.Task.from_arrays("site 1", x, x.sum(1)))
    Traceback (most recent call last):
    piaget.errors.TaskError: ...
    """

    name = "energy"

    def scores(self, noted: Tensors, seen: Seen) -> Tensor:
        return seen.logits().logsumexp(1)


INFERENCES: dict[str, Inference] = {
    part.name: part
    for part in (
        NoInference(),
        Density("inputs"),
        Density("encoded"),
        Density("features"),
        Energy(),
        Confidence(),
    )
}
