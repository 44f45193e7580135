"""Damaging files that a run keeps, and remembering what they were."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

KEPT = ("run.json", "rows.csv", "sweep.json", "checkpoint*.json", "checkpoint-*.safetensors", "learner*")


def _flipped(data: bytes, rng: random.Random) -> bytes:
    """One bit is another."""
    at = rng.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data))]


def _zeroed(data: bytes, rng: random.Random) -> bytes:
    """The end is zeros, as after a power loss."""
    at = rng.randrange(len(data))
    return data[:at] + bytes(len(data) - at)


def _longer(data: bytes, rng: random.Random) -> bytes:
    """A torn line, or anything, follows."""
    line = data.splitlines()[-1]
    return data + rng.choice([line[: rng.randrange(1, len(line) + 1)], line + b"\n", rng.randbytes(40)])


KINDS: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "flipped": _flipped,
    "cut": _cut,
    "zeroed": _zeroed,
    "longer": _longer,  # only rows: other files are written whole
}


@dataclass(frozen=True)
class Damage:
    """A file as it was, and as it was made."""

    path: Path
    kind: str
    before: bytes
    after: bytes

    def there(self) -> bool:
        """Is the file still as it was made? Else the program has written another one, or removed it."""
        return self.path.is_file() and self.path.read_bytes() == self.after

    def undo(self) -> None:
        """Puts back what was there."""
        self.path.write_bytes(self.before)

    def named(self, text: str) -> bool:
        """Does a message say which file it is?"""
        return str(self.path) in text or (str(self.path.parent) in text and self.path.name in text)


def damage(out: Path, rng: random.Random, besides: Collection[Path] = ()) -> Damage | None:
    """Damages one of the kept files, besides those that are; None: there is none yet."""
    found = sorted(path for pattern in KEPT for path in out.rglob(pattern) if path.is_file())
    found = [path for path in found if path.stat().st_size and path not in besides]
    if not found:
        return None
    path = rng.choice(found)
    kind = rng.choice([kind for kind in KINDS if kind != "longer" or path.name == "rows.csv"])
    before = path.read_bytes()
    after = KINDS[kind](before, rng)
    if after == before:  # its end was zeros
        return None
    path.write_bytes(after)
    return Damage(path, kind, before, after)
