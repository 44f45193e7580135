"""Every stream that can be asked for by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from piaget.streams import named, sources
from piaget.streams.lazy import LazyStream
from piaget.streams.objects import HELD_OUT
from piaget.streams.sources import Source


@dataclass(frozen=True)
class Named:
    """A stream that can be asked for by name."""

    name: str
    what: str
    tasks: int
    make: Callable[..., LazyStream]  # (name, seed, data_dir, **options)
    sources: tuple[Source, ...] = ()  # none: it comes with the package


_BIRDS_AND_DIGITS = (sources.MNIST, sources.FASHION, sources.CUB)
STREAMS = {
    stream.name: stream
    for stream in (
        Named("objects", "drawn objects: 3 of 48 shapes x colours x places a task", 16, named.objects),
        Named("objects-random", "the same as objects", 16, named.objects),
        *(
            Named(f"objects-{held}", f"objects, {held} only in the last {last} tasks", 16, named.objects)
            for held, last in HELD_OUT.items()
        ),
        Named("digits", "pairs of digits of 8 x 8 pixels: small and real", 10, named.digits),
        Named("landmine", "mines or clutter in a field", 29, named.landmine, (sources.LANDMINE,)),
        Named("schools", "exam scores of a school's students", 139, named.schools, (sources.SCHOOLS,)),
        Named("fera", "an action unit of a person's face", 21, named.fera, (sources.FERA,)),
        Named("mnist", "pairs of handwritten digits", 10, named.mnist, (sources.MNIST,)),
        Named("fashion", "pairs of articles of clothing", 10, named.fashion, (sources.FASHION,)),
        Named("cub", "10 of 200 species of birds a task", 20, named.cub, (sources.CUB,)),
        Named("cifar100", "5 of 100 classes of pictures a task", 20, named.cifar100, (sources.CIFAR100,)),
        Named("omniglot", "the characters of an alphabet", 50, named.omniglot, (sources.OMNIGLOT,)),
        Named("combined", "mnist, fashion and cub, shuffled", 40, named.combined, _BIRDS_AND_DIGITS),
        Named("pixel-mnist", "from coordinates to ink in a 4", 10, named.pixel_mnist, (sources.MNIST,)),
    )
}
