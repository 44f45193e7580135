"""Boosted trees that correct another model's answers: histograms, Newton steps, honest by cross-fitting.

The rows are cut into folds, and each fold has a forest of its own that never saw it. All forests grow in
step, a tree each a round, as long as the rows that each did not see are predicted better. If they are not
surely better than without, no tree is kept. New rows are answered by the mean of all forests, old ones
also by the forest that did not see them: so what the correction is worth is known without another split
of the data.

Trees are complete, of one depth, kept as plain arrays. A tree has one structure for all outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

BINS, FOLDS = 48, 4
DEPTHS, ENOUGH = (4, 5), 2000  # of trees: the second from that many rows on
ROUNDS, PATIENCE, RATE = 300, 12, 0.08
SURE = 2.0  # standard errors by which rows must be predicted better with trees
MANY = 4000  # rows; with more, a tree is grown on half of them
RIDGE, LEAST = 2.0, 8.0  # of a leaf's value; the curvature (rows, where noise is as usual) that a leaf needs


class Forest(NamedTuple):
    """R trees. Nodes are numbered in layers: those below node i are 2 i + 1 and 2 i + 2."""

    feature: np.ndarray  # (R, 2**depth - 1) int64
    cut: np.ndarray  # (R, 2**depth - 1) int64: bins above it go right
    value: np.ndarray  # (R, 2**depth, C): what a leaf adds

    def answer(self, codes: np.ndarray) -> np.ndarray:
        """(n, F) bins -> (n, C)."""
        total = np.zeros((len(codes), self.value.shape[-1]))
        rows, nodes = np.arange(len(codes)), self.feature.shape[1]
        for feature, cut, value in zip(*self, strict=True):
            node = np.zeros(len(codes), np.int64)
            for _ in range(nodes.bit_length()):
                node = 2 * node + 1 + (codes[rows, feature[node]] > cut[node])
            total += value[node - nodes]
        return total


@dataclass(frozen=True)
class Correction:
    """Forests of all folds, and the bins' edges (F, BINS - 1)."""

    edges: np.ndarray
    forests: tuple[Forest, ...]

    @property
    def rounds(self) -> int:
        return len(self.forests[0].feature)

    def answer(self, x: np.ndarray) -> np.ndarray:
        """What is added to the outputs for inputs x (n, F): (n, C)."""
        codes = binned(x, self.edges)
        return np.mean([forest.answer(codes) for forest in self.forests], 0)


def bin_edges(x: np.ndarray) -> np.ndarray:
    """(F, BINS - 1): by the rows' quantiles; beyond a column's different values, infinite."""
    edges = np.full((x.shape[1], BINS - 1), np.inf)
    for j, column in enumerate(x.T):
        values = np.unique(column)
        if len(values) > BINS:
            values = np.unique(np.quantile(column, np.linspace(0, 1, BINS + 1)[1:-1], method="lower"))
            middle = values
        else:
            middle = (values[1:] + values[:-1]) / 2
        edges[j, : len(middle)] = middle[: BINS - 1]
    return edges


def binned(x: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """(n, F) -> (n, F) int64: how many edges lie below."""
    return np.stack([np.searchsorted(e, c, side="left") for e, c in zip(edges, x.T, strict=True)], 1)


class Loss:
    """Squared error with weights, for a regression."""

    def __init__(self, y: np.ndarray, start: np.ndarray, weight: np.ndarray) -> None:
        self.y, self.start, self.weight = y, start, weight

    def some(self, rows: np.ndarray) -> Loss:
        """Of some of the rows."""
        return type(self)(self.y[rows], self.start[rows], self.weight[rows])

    def slopes(self, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Minus the gradient, and the curvature, of each row's loss with its outputs: (n, C) each."""
        weight = self.weight[:, None]
        return weight * (self.y[:, None] - self.start - out), weight

    def value(self, out: np.ndarray) -> np.ndarray:
        """(n,): each row's loss."""
        return self.weight * (self.y - self.start[:, 0] - out[:, 0]) ** 2 / 2


class ClassLoss(Loss):
    """Cross-entropy: y are class numbers; one output is a logit, several are a class's each."""

    def slopes(self, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = probabilities(self.start + out)
        right = self.y[:, None] == (np.arange(p.shape[1]) if p.shape[1] > 1 else 1)
        return right - p, np.maximum(p * (1 - p), 1e-6)

    def value(self, out: np.ndarray) -> np.ndarray:
        p = probabilities(self.start + out)
        if p.shape[1] == 1:
            p = np.concatenate([1 - p, p], 1)
        return -np.log(np.maximum(p[np.arange(len(p)), self.y], 1e-12))


def probabilities(out: np.ndarray) -> np.ndarray:
    """One column: of a logistic function; several: softmax."""
    if out.shape[1] == 1:
        return 1 / (1 + np.exp(-np.clip(out, -60, 60)))
    e = np.exp(out - out.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def boost(x: np.ndarray, loss: Loss, fold: np.ndarray) -> tuple[Correction, np.ndarray]:
    """The correction, and what it says to each row by the forest that did not see it (n, C)."""
    edges = bin_edges(x)
    codes = binned(x, edges)
    growing = [_Growing(codes, loss, np.flatnonzero(fold != k)) for k in range(FOLDS)]
    held = [fold == k for k in range(FOLDS)]
    n, outputs = loss.start.shape

    def honest() -> np.ndarray:
        out = np.zeros((n, outputs))
        for grown, rows in zip(growing, held, strict=True):
            out[rows] = grown.out[rows]
        return out

    without = loss.value(np.zeros((n, outputs)))
    best, best_round, kept = without.mean(), 0, np.zeros((n, outputs))
    for turn in range(1, ROUNDS + 1):
        for grown in growing:
            grown.grow()
        now = honest()
        value = loss.value(now).mean()
        if value < best * (1 - 1e-5):
            best, best_round, kept = value, turn, now
        elif turn - best_round >= PATIENCE:
            break
    gain = without - loss.value(kept)
    if gain.mean() < SURE * gain.std() / np.sqrt(n):
        best_round, kept = 0, np.zeros((n, outputs))
    return Correction(edges, tuple(grown.forest(best_round) for grown in growing)), kept


class _Growing:
    """A forest that grows on some rows. All rows go down its trees: `out` is what it says to each."""

    def __init__(self, codes: np.ndarray, loss: Loss, rows: np.ndarray) -> None:
        self.codes, self.loss, self.rows = codes, loss, rows
        self.features = codes.shape[1]
        self.places = codes[rows] + BINS * np.arange(self.features)  # (n, F): of a bin among all
        self.out: np.ndarray = np.zeros(loss.start.shape)
        self.depth = DEPTHS[len(codes) >= ENOUGH]
        self.trees: list[list[np.ndarray]] = []

    def forest(self, rounds: int) -> Forest:
        trees = self.trees[:rounds]
        if trees:
            feature, cut, value = (np.stack([tree[part] for tree in trees]) for part in range(3))
            return Forest(feature, cut, value)
        nodes, outputs = 2**self.depth - 1, self.out.shape[-1]
        empty = np.zeros((0, nodes), np.int64)
        return Forest(empty, empty, np.zeros((0, nodes + 1, outputs)))

    def grow(self) -> None:
        """One more tree, layer by layer."""
        slope, curve = self.loss.slopes(self.out)
        curve = np.broadcast_to(curve, slope.shape)
        own_slope, own_curve = slope[self.rows], curve[self.rows]
        node = np.zeros(len(self.codes), np.int64)
        features, cuts = [], []
        every = np.arange(len(self.codes))
        part = slice(None) if len(self.rows) < MANY else slice(len(self.trees) % 2, None, 2)
        for layer in range(self.depth):
            at = node[self.rows][part] - (2**layer - 1)
            feature, cut = self._best(self.places[part], at, 2**layer, own_slope[part], own_curve[part])
            features.append(feature)
            cuts.append(cut)
            at = node - (2**layer - 1)
            node = 2 * node + 1 + (self.codes[every, feature[at]] > cut[at])
        leaf = node - (2**self.depth - 1)
        sums = [
            np.stack(
                [np.bincount(leaf[self.rows], part[:, c], 2**self.depth) for c in range(part.shape[1])], 1
            )
            for part in (own_slope, own_curve)
        ]
        value = RATE * sums[0] / (sums[1] + RIDGE)
        self.out += value[leaf]
        self.trees.append([np.concatenate(features), np.concatenate(cuts), value])

    def _best(
        self, places: np.ndarray, node: np.ndarray, nodes: int, slope: np.ndarray, curve: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Where each node of a layer is cut: by the largest gain. BINS, where nothing is gained."""
        size = self.features * BINS
        places = (places + (node * size)[:, None]).ravel()
        shape = (nodes, self.features, BINS)
        gain, least = np.zeros(shape), np.full(shape, np.inf)
        for c in range(slope.shape[1]):
            g, h = (
                np.bincount(places, np.repeat(part[:, c], self.features), nodes * size).reshape(shape)
                for part in (slope, curve)
            )
            left_g, left_h = g.cumsum(2), h.cumsum(2)
            right_g, right_h = left_g[..., -1:] - left_g, left_h[..., -1:] - left_h
            gain += left_g**2 / (left_h + RIDGE) + right_g**2 / (right_h + RIDGE)
            gain -= left_g[..., -1:] ** 2 / (left_h[..., -1:] + RIDGE)
            least = np.minimum(least, np.minimum(left_h, right_h))
        gain[least < LEAST * self.scale] = -np.inf
        flat = gain.reshape(nodes, size)
        best = flat.argmax(1)
        useful = flat[np.arange(nodes), best] > 1e-9
        return best // BINS, np.where(useful, best % BINS, BINS)

    @property
    def scale(self) -> float:
        """Curvature of a usual row, in which leaves are measured."""
        return 0.25 if isinstance(self.loss, ClassLoss) else 1.0
