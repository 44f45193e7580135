"""Small pictures of glyphs, divided into those for training, validation and test: what grids are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from piaget.errors import DataError
from piaget.streams import sources
from piaget.streams.cuts import divide
from piaget.streams.fetch import open_source
from piaget.streams.formats import Labelled

SPLITS = ("train", "validation", "test")
FRACTIONS = (0.6, 0.2, 0.2)
CHARACTERS = 20  # of Omniglot, drawn from the seed
SHAPES = ("disc", "square", "triangle", "cross", "ring", "frame", "diamond", "bar", "column", "saltire")
SHAPE_SIDE, SHAPE_PICTURES = 12, 300  # pixels; drawn of each shape


@dataclass(frozen=True, eq=False)
class Glyphs:
    """`pictures[split][glyph]` is (n, side, side) bytes. No picture is in two splits."""

    names: tuple[Any, ...]
    pictures: dict[str, list[np.ndarray]]

    @property
    def side(self) -> int:
        return int(self.pictures["train"][0].shape[-1])


def _divided(rng: np.random.Generator, names: tuple[Any, ...], of_glyphs: list[np.ndarray]) -> Glyphs:
    """Each glyph's pictures, (n, side, side), divided at random. Copies of one picture count as one."""
    pictures: dict[str, list[np.ndarray]] = {split: [] for split in SPLITS}
    for name, whole in zip(names, of_glyphs, strict=True):
        different = np.unique(whole, axis=0)
        parts = divide(rng, len(different), FRACTIONS)
        if not all(map(len, parts)):
            raise DataError(f"glyph {name!r} has {len(different)} different pictures; expected 5 or more")
        for split, rows in zip(SPLITS, parts, strict=True):
            pictures[split].append(different[rows])
    return Glyphs(names, pictures)


def _bytes(pictures: np.ndarray, most: float) -> np.ndarray:
    """Numbers from 0 to `most` (beyond: cut off) as bytes."""
    return np.round(np.clip(pictures / most, 0, 1) * 255).astype(np.uint8)


def _blocks(pictures: np.ndarray, size: int) -> np.ndarray:
    """Means over blocks of size x size pixels: (n, h, w) -> (n, h / size, w / size)."""
    n, h, w = pictures.shape
    return pictures.reshape(n, h // size, size, w // size, size).mean((2, 4))


def digits(rng: np.random.Generator, data_dir: Any) -> Glyphs:
    """The digits of 8 x 8 pixels that come with the package."""
    x, y = sources.packaged_digits()
    pictures = _bytes(x[:, 0], 16)
    return _divided(rng, tuple(range(10)), [pictures[y == digit] for digit in range(10)])


def mnist(rng: np.random.Generator, data_dir: Any) -> Glyphs:
    """MNIST at half its size, 14 x 14 pixels; its test pictures are for test."""
    data: Labelled = open_source(sources.MNIST, data_dir)
    train, test = (_bytes(_blocks(x[:, 0], 2), 255) for x in (data.train_x, data.test_x))
    pictures: dict[str, list[np.ndarray]] = {split: [] for split in SPLITS}
    for digit in range(10):
        whole = train[data.train_y == digit]
        first, second, _ = divide(rng, len(whole), (0.8, 0.2, 0))
        pictures["train"].append(whole[first])
        pictures["validation"].append(whole[second])
        pictures["test"].append(test[data.test_y == digit])
    return Glyphs(tuple(range(10)), pictures)


def omniglot(rng: np.random.Generator, data_dir: Any) -> Glyphs:
    """Characters of Omniglot of whatever alphabets, at a seventh of their size, 15 x 15 pixels."""
    archive = open_source(sources.OMNIGLOT, data_dir)
    characters = [
        (alphabet, i, f"{alphabet}/{name}")
        for alphabet in archive.alphabets
        for i, name in enumerate(archive.labels(alphabet)[1])
    ]
    chosen = [characters[c] for c in rng.permutation(len(characters))[:CHARACTERS]]
    pictures = []
    for alphabet, i, _ in chosen:
        ink = 1 - archive.images(alphabet)[archive.labels(alphabet)[0] == i, 0]
        pictures.append(_bytes(_blocks(ink, 7), 0.4))  # a line of three pixels is black
    return _divided(rng, tuple(name for *_, name in chosen), pictures)


def shapes(rng: np.random.Generator, data_dir: Any) -> Glyphs:
    """Drawn shapes of 12 x 12 pixels, of different sizes, places and shades."""
    return _divided(rng, SHAPES, [_drawn(rng, shape) for shape in SHAPES])


def _drawn(rng: np.random.Generator, shape: str) -> np.ndarray:
    """(n, side, side) bytes."""
    n = SHAPE_PICTURES
    centre = SHAPE_SIDE / 2 + rng.uniform(-1, 1, (2, n, 1, 1))
    half, shade = rng.uniform(3.0, 4.7, (n, 1, 1)), rng.integers(160, 256, (n, 1, 1))
    pixel = np.arange(SHAPE_SIDE) + 0.5
    x, y = (pixel[None, None, :] - centre[0]) / half, (pixel[None, :, None] - centre[1]) / half
    far, near = np.maximum(abs(x), abs(y)), np.minimum(abs(x), abs(y))
    radius = np.hypot(x, y)
    inside = {
        "disc": radius <= 1,
        "square": far <= 0.9,
        "triangle": (abs(y) <= 1) & (abs(x) <= (y + 1) / 2),
        "cross": (far <= 1) & (near <= 0.3),
        "ring": abs(radius - 0.8) <= 0.25,
        "frame": abs(far - 0.75) <= 0.22,
        "diamond": abs(x) + abs(y) <= 1.1,
        "bar": (abs(x) <= 1) & (abs(y) <= 0.35),
        "column": (abs(y) <= 1) & (abs(x) <= 0.35),
        "saltire": (far <= 1) & (abs(abs(x) - abs(y)) <= 0.35),
    }[shape]
    return np.where(inside, shade, 0).astype(np.uint8)


GLYPHS: dict[str, Callable[[np.random.Generator, Any], Glyphs]] = {
    "digits": digits,
    "mnist": mnist,
    "omniglot": omniglot,
    "shapes": shapes,
}
