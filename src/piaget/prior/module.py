"""What is known of a task as a plain `nn.Module`: to be exported and served without the rest."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from piaget.prior.boosting import Correction
from piaget.prior.correcting import moderated, seen, spread_of
from piaget.prior.features import Bumps, Frame
from piaget.prior.knowledge import Knowledge
from piaget.prior.labels import chances


def module(known: Knowledge, task: str | None, divisor: float = 1.0) -> nn.Module:
    """From inputs (n, ...) to `probabilities` (n, classes), or to the mean of `values` (n,), of a task; of
    one that is not known: the prior's. Whole numbers are divided by `divisor` first.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> prior.module(known, "a")(x).shape
    torch.Size([6])
    """
    return TaskAnswers(known, task, divisor).eval()


class TaskAnswers(nn.Module):
    """A task's weights, what is not known of them, bumps that some are of, and the trees that correct them.
    In 64 bits."""

    def __init__(self, known: Knowledge, task: str | None, divisor: float) -> None:
        super().__init__()
        self.divisor = divisor
        self.bumps = None
        if known.bent is not None:
            self.bumps = nn.ParameterList([_kept(part) for part in known.bent.bumps])
            known = known.bent.known
        belief = known.posterior(task if task in known.records else None)
        self.regression = known.form.kind == "regression"
        self.mean, self.covariance = _kept(belief.mean), _kept(belief.covariance)
        self.frame = nn.ParameterList([_kept(part) for part in known.standard_frame])
        self.reach = known.reach
        self.trees = None if known.correction is None else Trees(known.correction)

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        if self.divisor != 1 and not x.is_floating_point():
            x = x.double() / self.divisor
        if self.bumps is not None:
            x = Bumps(*self.bumps).beside(x)
        frame = Frame(*self.frame)
        features = frame.features(x)
        out = features @ self.mean.mT
        if not self.regression:
            out = moderated(out, spread_of(features, self.covariance))
        out = out.clamp(*self.reach)
        if self.trees is not None:
            level = self.mean[:, 0].expand_as(out)
            out = out + self.trees(seen(self.trees.edges, x, out, level))
            out = out.clamp(*self.reach)
        if self.regression:
            return frame.origin + frame.unit * out[:, 0]
        p = chances(out)
        return torch.cat([1 - p, p], 1) if p.shape[1] == 1 else p


class Trees(nn.Module):
    """A correction's forests, all of whose trees are gone through at once. R: trees of all forests."""

    def __init__(self, correction: Correction) -> None:
        super().__init__()
        self.forests = len(correction.forests)
        parts = zip(*correction.forests, strict=True)
        self.feature, self.cut, self.value = (_kept(torch.from_numpy(np.concatenate(p))) for p in parts)
        self.edges = _kept(torch.from_numpy(correction.edges))

    def forward(self, x: Tensor) -> Tensor:
        """(n, F) -> (n, C)."""
        codes = (x.unsqueeze(-1) > self.edges).sum(-1)  # (n, F): how many edges lie below
        trees, nodes = self.feature.shape
        tree = torch.arange(trees, device=x.device)
        node = torch.zeros_like(codes[:, :1]).expand(-1, trees)  # (n, R)
        for _ in range(nodes.bit_length()):
            right = codes.gather(1, self.feature[tree, node]) > self.cut[tree, node]
            node = 2 * node + 1 + right
        return self.value[tree, node - nodes].sum(1) / self.forests


def _kept(tensor: Tensor) -> nn.Parameter:
    """A copy that is saved and moved with the module, and does not learn."""
    return nn.Parameter(tensor.detach().clone(), requires_grad=False)
