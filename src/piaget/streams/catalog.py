"""Every stream that can be asked for by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from piaget.streams import sources
from piaget.streams.sources import Source

if TYPE_CHECKING:
    from piaget.streams.lazy import LazyStream

HELD_OUT = {"circle": 5, "top-left": 4, "orange": 4}  # of objects: what only the last tasks have


@dataclass(frozen=True)
class Named:
    """A stream that can be asked for by name."""

    name: str
    what: str
    tasks: int
    maker: str  # a function of `module`: (name, seed, data_dir, **options) -> stream
    sources: tuple[Source, ...] = ()  # none: it comes with the package
    module: str = "named"

    @property
    def make(self) -> Callable[..., LazyStream]:
        # With all that it needs: not for a mere list.
        return getattr(importlib.import_module(f"piaget.streams.{self.module}"), self.maker)


def _standard() -> Iterator[Named]:
    """Those of other papers."""
    for source in (sources.MNIST, sources.FASHION):
        for way, tasks, what in (
            ("split", 5, f"two classes of {source.name} after the other, in their order"),
            ("permuted", 10, f"all of {source.name}, its pixels in another order each task"),
            ("rotated", 10, f"all of {source.name}, turned by another angle each task"),
        ):
            yield Named(f"{way}-{source.name}", what, tasks, way, (source,), "standard")
    what = "ten classes of pictures after the other, in their order"
    yield Named("split-cifar100", what, 10, "split", (sources.CIFAR100,), "standard")


_BIRDS_AND_DIGITS = (sources.MNIST, sources.FASHION, sources.CUB)
STREAMS = {
    stream.name: stream
    for stream in (
        Named("objects", "drawn objects: 3 of 48 shapes x colours x places a task", 16, "objects"),
        Named("objects-random", "the same as objects", 16, "objects"),
        *(
            Named(f"objects-{held}", f"objects, {held} only in the last {last} tasks", 16, "objects")
            for held, last in HELD_OUT.items()
        ),
        Named("digits", "pairs of digits of 8 x 8 pixels: small and real", 10, "digits"),
        Named("grids", "glyphs in four cells: combinations of known factors, of any number", 120, "grids"),
        Named("landmine", "mines or clutter in a field", 29, "landmine", (sources.LANDMINE,)),
        Named("schools", "exam scores of a school's students", 139, "schools", (sources.SCHOOLS,)),
        Named("fera", "an action unit of a person's face", 21, "fera", (sources.FERA,)),
        Named("mnist", "pairs of handwritten digits", 10, "mnist", (sources.MNIST,)),
        Named("fashion", "pairs of articles of clothing", 10, "fashion", (sources.FASHION,)),
        Named("cub", "10 of 200 species of birds a task", 20, "cub", (sources.CUB,)),
        Named("cifar100", "5 of 100 classes of pictures a task", 20, "cifar100", (sources.CIFAR100,)),
        Named("omniglot", "the characters of an alphabet", 50, "omniglot", (sources.OMNIGLOT,)),
        Named("combined", "mnist, fashion and cub, shuffled", 40, "combined", _BIRDS_AND_DIGITS),
        Named("pixel-mnist", "from coordinates to ink in a 4", 10, "pixel_mnist", (sources.MNIST,)),
        *_standard(),
    )
}
