"""L-BFGS, uphill: a few dozen numbers, an objective of milliseconds. torch.optim's would load torch's
compiler, which takes longer than all of it."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

HISTORY, HALVINGS = 12, 12
FARTHEST = 3.0  # that a step goes along any coordinate

Objective = Callable[[Tensor], tuple[Tensor, Tensor]]


def climb(objective: Objective, start: Tensor, steps: int, close: float = 1e-3) -> Tensor:
    """Where some steps lead; fewer, if one gains less than `close`. objective: value and gradient at (p,).

    The value never falls: a step that does not gain is halved, and at last not taken.
    """
    at = start
    value, gradient = objective(at)
    moves: list[tuple[Tensor, Tensor]] = []  # differences of places, and of gradients downhill
    for _ in range(steps):
        way = _direction(gradient, moves)
        rise = float(way @ gradient)
        size = 1.0 if moves else min(1.0, 1.0 / float(gradient.norm().clamp(min=1e-12)))
        size = min(size, FARTHEST / float(way.abs().max().clamp(min=1e-12)))
        for _ in range(HALVINGS):
            new = at + size * way
            new_value, new_gradient = objective(new)
            if bool(torch.isfinite(new_value)) and float(new_value - value) >= 1e-4 * size * rise:
                break
            size /= 2
        else:
            return at
        gain = float(new_value - value)
        move, turn = new - at, gradient - new_gradient
        if float(move @ turn) > 1e-10 * float(turn @ turn):
            moves = [*moves[-HISTORY + 1 :], (move, turn)]
        at, value, gradient = new, new_value, new_gradient
        if gain < close:
            break
    return at


def _direction(gradient: Tensor, moves: list[tuple[Tensor, Tensor]]) -> Tensor:
    """The inverse curvature that the moves showed, times the gradient."""
    way, shares = gradient.clone(), []
    for move, turn in reversed(moves):
        share = (move @ way) / (move @ turn)
        shares.append(share)
        way = way - share * turn
    if moves:
        move, turn = moves[-1]
        way = way * (move @ turn) / (turn @ turn)
    for (move, turn), share in zip(moves, reversed(shares), strict=True):
        way = way + (share - (turn @ way) / (move @ turn)) * move
    return way
