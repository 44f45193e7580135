"""Starts: what a new task's structure, and a candidate component, begin as."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from piaget.data.arrays import Kind
from piaget.method.components import Shape
from piaget.method.model import Model
from piaget.method.objective import output_width
from piaget.method.parameters import Params, SharedParams, TaskParams
from piaget.method.trees import Tensors
from piaget.method.values import FLAG, POSITIVE, SHARE, WHOLE, check_fields


@dataclass(frozen=True, eq=False)
class PastTask:
    """A task that has been learned, as a start sees it.

    >>> class Looking(piaget.Start):
    ...     def begin(self, new):
    ...         first = new.past[0]  # it is one of these
    ...         print(first.input_shape, int(first.visible.sum()), "components")
    ...         return new.drawn
    >>> x, y = np.arange(80.0).reshape(40, 2), np.arange(40) % 2
    >>> learner = piaget.Learner(start=Looking(), initial_tasks=1, epochs=2, width=8)
    >>> for task in piaget.streams.from_arrays(x, y, groups=["north"] * 20 + ["south"] * 20):
    ...     rows = learner.learn(task)
    (2,) 4 components
    """

    params: TaskParams  # for the components that it may use
    visible: Tensor  # (k,): which these are, of all
    input_shape: Shape


@dataclass(frozen=True, eq=False)
class NewTask:
    """A task that is about to be learned, as a start sees it.

    >>> class Telling(piaget.Start):
    ...     def begin(self, new):  # `new` is one of these
    ...         x, y = new.sample(8)
    ...         print(new.kind, tuple(x.shape), tuple(y.shape), len(new.past), "past task")
    ...         return new.drawn
    >>> x, y = np.arange(80.0).reshape(40, 2), np.arange(40) % 2
    >>> learner = piaget.Learner(start=Telling(), initial_tasks=1, epochs=2, width=8)
    >>> for task in piaget.streams.from_arrays(x, y, groups=["north"] * 20 + ["south"] * 20):
    ...     rows = learner.learn(task)
    binary (8, 2) (8,) 1 past task
    """

    kind: Kind
    classes: int
    input_shape: Shape
    model: Model
    drawn: TaskParams  # its own parameters, as they were drawn
    components: Tensors  # (k, ...), with the candidate
    shared: SharedParams
    past: Sequence[PastTask]  # in the order in which they were learned
    sample: Callable[[int], tuple[Tensor, Tensor]] = field(repr=False)  # so many training samples, or all

    def features(self, x: Tensor, encoder: Tensors, structure: Tensors, visible: Tensor) -> Tensor:
        """What leaves the last depth for inputs x (n, ...): (n, features), in float64."""
        outputs = output_width(self.kind, self.classes)
        h = self.model.encode(self.shared.encoder or encoder, x)
        task = self.model.resized(TaskParams({}, structure, {}), len(visible), outputs)
        params = Params(self.components, task, self.shared)
        return self.model.features_of_encoded(params, h, visible).flatten(1).double()


# --- a task's own parameters -----------------------------------------------------------------------------


class Start(ABC):
    """What a new task's own parameters begin as. (Those of initial tasks begin as they are drawn.)

    >>> class LikeTheLast(piaget.Start):  # half as it was drawn, half as the last task's structure
    ...     def begin(self, new):
    ...         last = new.past[-1].params.structure
    ...         structure = new.model.structure.like(new.drawn.structure, last, 0.5)
    ...         return new.drawn._replace(structure=structure)
    >>> x, y = np.arange(80.0).reshape(40, 2), np.arange(40) % 2
    >>> learner = piaget.Learner(start=LikeTheLast(), initial_tasks=1, epochs=2, width=8)
    >>> for task in piaget.streams.from_arrays(x, y, groups=["north"] * 20 + ["south"] * 20):
    ...     rows = learner.learn(task)
    >>> learner.structures()["south"].shape  # (components, depths)
    torch.Size([4, 4])
    """

    @abstractmethod
    def begin(self, new: NewTask) -> TaskParams:
        """From those that were drawn, `new.drawn`."""


@dataclass(frozen=True)
class AsDrawn(Start):
    """As they were drawn: soft ordering weighs all components alike. This is the default.

    >>> piaget.Learner(start="drawn").settings.start
    AsDrawn()
    """

    def begin(self, new: NewTask) -> TaskParams:
        return new.drawn


@dataclass(frozen=True)
class SimilarTask(Start):
    """The structure begins near that of the most similar past task: the one whose structure gives the
    features from which a linear map best predicts the new task's targets.

    That is told by the leave-one-out error, on some training samples, of a ridge regression of the targets on
    what leaves the last depth. A past task's structure must do better than the one that was drawn.

    samples: how many. share: of the past task's structure in the start, the rest being the one that was
    drawn, so that it can still learn to be any other. penalty: of the ridge regression, relative to the
    features' mean square. encoder: a past task's encoder for inputs of the same shape goes with its
    structure, where encoders learn.

    Raises `SettingError` for numbers that make no sense.

    >>> piaget.Learner(start=piaget.SimilarTask(samples=64, share=0.8)).settings.start
    SimilarTask(samples=64, share=0.8, penalty=0.001, encoder=True)
    """

    samples: int = 256
    share: float = 0.5
    penalty: float = 1e-3
    encoder: bool = True

    def __post_init__(self) -> None:
        check_fields(self, samples=WHOLE, share=SHARE, penalty=POSITIVE, encoder=FLAG)

    @torch.no_grad()
    def begin(self, new: NewTask) -> TaskParams:
        x, y = new.sample(self.samples)
        if len(x) < 2 or not new.model.structure.axes:  # nothing to leave out, or no components to weigh
            return new.drawn
        targets = _columns(new, y)
        k = len(next(iter(new.components.values())))
        drawn = new.features(x, new.drawn.encoder, new.drawn.structure, torch.ones(k, device=x.device) > 0)
        best, least = new.drawn, left_out_error(drawn, targets, self.penalty)
        for task in new.past:
            structure = task.params.structure
            if not _fits(new, structure):
                continue
            same = tuple(task.input_shape) == tuple(new.input_shape)
            follows = self.encoder and same and new.model.encoder.learns and not new.model.encoder.shared
            encoder = task.params.encoder if follows else new.drawn.encoder
            features = new.features(x, encoder, structure, task.visible.to(x.device))
            error = left_out_error(features, targets, self.penalty)
            if error < least:
                like = new.model.structure.like(new.drawn.structure, structure, self.share)
                best, least = TaskParams(encoder, like, new.drawn.decoder), error
        return best


def _columns(new: NewTask, y: Tensor) -> Tensor:
    """Targets (n, columns) in float64: a column a class, 1 or 0; or the values."""
    return y.double()[:, None] if new.kind == "regression" else one_hot(y, new.classes).double()


def _fits(new: NewTask, structure: Tensors) -> bool:
    """Has a past task's structure the form of the new one's, but for the number of components?"""
    axes, drawn = new.model.structure.axes, new.drawn.structure

    def form(params: Tensors) -> dict[str, list[int]]:
        return {n: [s for i, s in enumerate(p.shape) if i != axes.get(n)] for n, p in params.items()}

    return form(structure) == form(drawn)


def left_out_error(features: Tensor, targets: Tensor, penalty: float) -> float:
    """The mean squared leave-one-out error of a ridge regression with an intercept, in closed form.

    features (n, f), targets (n, columns). The penalty is relative to the mean squared length of the features,
    after their mean is taken off. With K = F F^T of these, and S = lambda (K + lambda)^-1, the residuals are
    S y, and what a sample would have if it were left out is its residual over S_ii - 1 / n.
    """
    n = len(features)
    features, targets = features - features.mean(0), targets - targets.mean(0)
    gram = features @ features.T  # (n, n)
    strength = max(penalty * float(gram.diagonal().mean()), 1e-12)
    eye = torch.eye(n, dtype=gram.dtype, device=gram.device)
    smoother = strength * torch.linalg.inv(gram + strength * eye)
    left = (smoother.diagonal() - 1 / n).clamp(min=1e-12)[:, None]
    return float((smoother @ targets / left).square().mean())


# --- a candidate component -------------------------------------------------------------------------------


class CandidateStart(ABC):
    """What a component on trial begins as.

    >>> class MeanOfAll(piaget.CandidateStart):
    ...     def begin(self, drawn, components, usage):
    ...         return {name: (p + components[name].mean(0)) / 2 for name, p in drawn.items()}
    >>> components, usage = {"bias": torch.tensor([[1.0, 3.0], [3.0, 5.0]])}, torch.tensor([0.2, 0.8])
    >>> MeanOfAll().begin({"bias": torch.zeros(2)}, components, usage)
    {'bias': tensor([1., 2.])}
    >>> piaget.Learner(candidate_start=MeanOfAll())
    Learner(soft-ordering/er/dynamic, 0 tasks learned, 0 components)
    """

    @abstractmethod
    def begin(self, drawn: Tensors, components: Tensors, usage: Tensor) -> Tensors:
        """From a fresh one, as it was drawn. components: those that there are, (k, ...). usage: how much all
        past tasks together use each, (k,)."""


@dataclass(frozen=True)
class FreshCandidate(CandidateStart):
    """As it was drawn. This is the default.

    >>> piaget.Learner(candidate_start="drawn").settings.candidate_start
    FreshCandidate()
    """

    def begin(self, drawn: Tensors, components: Tensors, usage: Tensor) -> Tensors:
        return drawn


@dataclass(frozen=True)
class MostUsed(CandidateStart):
    """Near the component that past tasks use most: `share` of it, and the rest of a fresh one, since the two
    would otherwise learn the same.

    Raises `SettingError` if `share` is no share.

    >>> components, usage = {"bias": torch.tensor([[1.0, 3.0], [3.0, 5.0]])}, torch.tensor([0.2, 0.8])
    >>> piaget.MostUsed(share=0.5).begin({"bias": torch.zeros(2)}, components, usage)
    {'bias': tensor([1.5000, 2.5000])}
    """

    share: float = 0.9

    def __post_init__(self) -> None:
        check_fields(self, share=SHARE)

    def begin(self, drawn: Tensors, components: Tensors, usage: Tensor) -> Tensors:
        most = int(usage.argmax())
        return {name: torch.lerp(p, components[name][most], self.share) for name, p in drawn.items()}


STARTS: dict[str, Start] = {"drawn": AsDrawn(), "similar": SimilarTask()}
CANDIDATE_STARTS: dict[str, CandidateStart] = {"drawn": FreshCandidate(), "most-used": MostUsed()}
