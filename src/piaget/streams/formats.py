"""Readers of the files' formats: bytes in, checked arrays out. Nothing in a file is executed."""

from __future__ import annotations

import io
import math
import re
import struct
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from piaget.data.unpacking import LARGEST, opened, too_large
from piaget.errors import DataError, type_of
from piaget.extras import need
from piaget.streams.mat_file import read_mat


@dataclass(frozen=True, eq=False)
class Labelled:
    """Samples with class numbers, in the standard training and test parts.

    x: (n, *shape), images as bytes or features as floats; y: (n,) int64; `names` of the classes.
    """

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    names: tuple[Any, ...]

    def check(self, where: str) -> Labelled:
        """Itself, if every class has samples, and no sample another class."""
        for part, y in (("training", self.train_y), ("test", self.test_y)):
            if y.max(initial=0) >= len(self.names):
                raise DataError(f"{where}: {part} label {y.max()}; expected 0 to {len(self.names) - 1}")
            counts = np.bincount(y, minlength=len(self.names))
            if not counts.all():
                raise DataError(f"{where}: class {self.names[int(counts.argmin())]} has no {part} sample")
        return self


# --- idx: MNIST and Fashion-MNIST -----------------------------------------------------------------------


def idx_images(*paths: Path, shape: tuple[int, int], names: tuple[Any, ...]) -> Labelled:
    """Training images, training labels, test images, test labels."""
    arrays = [read_idx(path, dimensions) for path, dimensions in zip(paths, (3, 1, 3, 1), strict=True)]
    for part in (0, 2):
        images, labels = arrays[part], arrays[part + 1]
        if images.shape[1:] != shape:
            raise DataError(f"{paths[part]}: images of {images.shape[1:]} pixels; expected {shape}")
        if len(images) != len(labels):
            raise DataError(
                f"{paths[part]} has {len(images)} images, but {paths[part + 1].name} {len(labels)} labels"
            )
    train_x, train_y, test_x, test_y = arrays
    numbers = train_y.astype(np.int64), test_y.astype(np.int64)
    return Labelled(train_x[:, None], numbers[0], test_x[:, None], numbers[1], names).check(
        str(paths[1].parent)
    )


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """An idx file of bytes, packed (gzip) or not. Its head says how much follows: no more is read."""
    magic = bytes([0, 0, 8, dimensions])
    size = 4 + 4 * dimensions
    try:
        with opened(path) as handle:
            head = handle.read(size)
            if head[:4] != magic or len(head) < size:
                raise DataError(
                    f"{path} is no idx file of bytes with {dimensions} dimensions: it begins with "
                    f"{head[:4].hex() or 'nothing'}; expected {magic.hex()}"
                )
            shape = struct.unpack(f">{dimensions}I", head[4:])
            expected = math.prod(shape)
            if expected > max(LARGEST, path.stat().st_size):
                raise DataError(
                    f"{path} is cut short or too long: its head tells of {' x '.join(map(str, shape))} bytes"
                )
            data = handle.read(expected + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path} is damaged or cut short: {error}") from error
    if len(data) != expected:
        found = f"{len(data):,}" if len(data) < expected else f"more than {expected:,}"
        raise DataError(
            f"{path} is cut short or too long: {found} bytes of content; expected {expected:,} for "
            f"{' x '.join(map(str, shape))}"
        )
    return np.frombuffer(data, np.uint8).reshape(shape)


# --- .mat: the linear data sets and CUB -------------------------------------------------------------------


MOST_CLASSES = 1 << 20


def mat_groups(path: Path, *, tasks: int, features: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """`feature` and `label`: one cell a task, of (n, features) and (n, 1)."""
    content = read_mat(path, ("feature", "label"))
    cells = {key: list(array.ravel()) if array.dtype == object else [] for key, array in content.items()}
    if not len(cells["feature"]) == len(cells["label"]) == tasks:
        raise DataError(
            f"{path}: {len(cells['feature'])} cells of features and {len(cells['label'])} of labels; "
            f"expected {tasks} of each, one a task"
        )
    groups = []
    for i, (x, y) in enumerate(zip(cells["feature"], cells["label"], strict=True)):
        if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
            raise DataError(f"{path}, task {i}: {type_of(x)} and {type_of(y)}; expected matrices")
        y = y.ravel()
        if x.ndim != 2 or x.shape != (len(y), features) or not len(y):
            raise DataError(
                f"{path}, task {i}: features of shape {x.shape} and {len(y)} labels; expected "
                f"(samples, {features}) and as many labels"
            )
        groups.append((_floats(path, x), _finite(path, y)))
    return groups


def mat_features(train: Path, test: Path) -> Labelled:
    """`X` (n, features) and `y` (n), numbered from 0."""
    parts: list[np.ndarray] = []
    for path in (train, test):
        content = read_mat(path, ("X", "y"))
        x, y = content["X"], np.asarray(content["y"]).ravel()
        if not isinstance(x, np.ndarray):
            raise DataError(f"{path}: X is {type_of(x)}; expected a full matrix")
        if x.ndim != 2 or len(x) != len(y) or not len(y):
            raise DataError(
                f"{path}: X of shape {x.shape} and {len(y)} labels y; expected as many rows as labels"
            )
        y = _finite(path, y)
        if not np.array_equal(y, np.round(y)) or y.min() < 0 or y.max() > MOST_CLASSES:
            raise DataError(f"{path}: y holds {y.min()} to {y.max()}; expected class numbers from 0")
        parts += [_floats(path, x), y.astype(np.int64)]
    if parts[0].shape[1] != parts[2].shape[1]:
        raise DataError(f"{train.name} has {parts[0].shape[1]} features, but {test.name} {parts[2].shape[1]}")
    names = tuple(range(int(max(parts[1].max(), parts[3].max())) + 1))
    return Labelled(parts[0], parts[1], parts[2], parts[3], names).check(str(train))


def _floats(path: Path, array: np.ndarray) -> np.ndarray:
    """As the networks compute; what is too large for that is an error, too."""
    with np.errstate(over="ignore"):
        return _finite(path, _finite(path, array).astype(np.float32))


def _finite(path: Path, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
        raise DataError(f"{path} holds NaN, infinite values, or no numbers; expected finite numbers")
    return array


# --- CIFAR-100, the binary edition --------------------------------------------------------------------------

RECORD = 2 + 3 * 32 * 32  # coarse label, fine label, red, green and blue planes


def cifar100(path: Path) -> Labelled:
    """Read from the archive, in which only three members are looked at; nothing is unpacked."""
    members: dict[str, bytes] = {}
    try:
        with opened(path) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as archive:
            for member in archive:
                name = PurePosixPath(member.name).name
                if name in ("train.bin", "test.bin", "fine_label_names.txt"):
                    handle = archive.extractfile(member) if member.isreg() else None  # no links
                    if handle is None or member.size > 400e6:
                        raise DataError(f"{path}: {name} is no plain file, or too large")
                    members[name] = handle.read()
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error) as error:
        raise DataError(f"{path} is damaged or cut short: {error}") from error
    if len(members) < 3:
        raise DataError(
            f"{path} holds {', '.join(members) or 'none'} of train.bin, test.bin and fine_label_names.txt; "
            "expected the binary edition of CIFAR-100 with all three"
        )
    names = tuple(members["fine_label_names.txt"].decode("utf-8", "replace").split())
    parts: list[np.ndarray] = []
    for part in ("train.bin", "test.bin"):
        if len(members[part]) % RECORD or not members[part]:
            raise DataError(
                f"{path}: {part} has {len(members[part]):,} bytes; expected a multiple of {RECORD:,}"
            )
        records = np.frombuffer(members[part], np.uint8).reshape(-1, RECORD)
        parts += [records[:, 2:].reshape(-1, 3, 32, 32), records[:, 1].astype(np.int64)]
    return Labelled(parts[0], parts[1], parts[2], parts[3], names).check(str(path))


# --- Omniglot -----------------------------------------------------------------------------------------------

CHARACTER = re.compile(r"images_(?:background|evaluation)/([^/]+)/(character\d+)/[^/]+\.png")
SIDE = 105


class Omniglot:
    """Alphabets, read from the zip files when asked for. Pixels are 1 (paper) or 0 (ink), as in the files.

    What was decoded is kept, a bit a pixel: 45 MB for all alphabets.
    """

    def __init__(self, *paths: Path) -> None:
        self.members: dict[str, list[tuple[Path, str, str]]] = {}  # alphabet -> (file, member, character)
        self._archives = {path: _open_zip(path) for path in paths}  # stay open: their directories are long
        for path, archive in self._archives.items():
            for name in archive.namelist():
                found = CHARACTER.fullmatch(name)
                if found:
                    self.members.setdefault(found[1], []).append((path, name, found[2]))
        if not self.members:
            raise DataError(
                f"{paths[0]} holds no characters; expected images_background/ALPHABET/characterNN/*.png"
            )
        # Sorted: the same content gives the same stream, in whatever order it was packed.
        self.alphabets = sorted(self.members)
        for members in self.members.values():
            members.sort(key=lambda member: member[1])
            if len(members) > LARGEST // SIDE**2:
                raise too_large(members[0][0])
            names = [name for _, name, _ in members]
            if len(set(names)) < len(names):
                raise DataError(
                    f"{members[0][0]} holds a picture twice, such as {max(names, key=names.count)}"
                )
        self._packed: dict[str, np.ndarray] = {}

    def labels(self, alphabet: str) -> tuple[np.ndarray, tuple[str, ...]]:
        """(n,) class numbers, and the characters they stand for."""
        characters = [character for _, _, character in self.members[alphabet]]
        names, numbers = np.unique(characters, return_inverse=True)
        return numbers.astype(np.int64), tuple(names.tolist())

    def images(self, alphabet: str) -> np.ndarray:
        """(n, 1, 105, 105) bytes, 0 or 1."""
        if alphabet not in self._packed:
            self._packed[alphabet] = np.packbits(self._decode(alphabet), axis=-1)
        return np.unpackbits(self._packed[alphabet], axis=-1, count=SIDE)

    def check(self) -> None:
        """Decodes everything: a damaged picture is an error."""
        for alphabet in self.alphabets:
            self._decode(alphabet)

    def _decode(self, alphabet: str) -> np.ndarray:
        members = self.members[alphabet]
        images = np.empty((len(members), 1, SIDE, SIDE), bool)
        for i, (path, name, _) in enumerate(members):
            images[i, 0] = _picture(path, self._archives[path], name)
        return images


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(path)
    except Exception as error:  # the reader fails in many ways on what is no zip file
        raise DataError(f"{path} is damaged, cut short, or no zip file: {error}") from error
    for name in archive.namelist():
        if name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name) or ":" in name:
            raise DataError(f"{path} holds {name!r}, a path that leads out of the folder: refused")
    return archive


def _picture(path: Path, archive: zipfile.ZipFile, name: str) -> np.ndarray:
    image_module = need("PIL.Image", "pictures")
    try:
        with archive.open(name) as member:  # its size in the directory may be a lie
            data = member.read((1 << 20) + 1)
        if len(data) > 1 << 20:
            raise DataError(f"{path}: {name} is too large for a picture of {SIDE} x {SIDE} pixels")
        with image_module.open(io.BytesIO(data), formats=["PNG"]) as picture:
            if picture.size != (SIDE, SIDE):
                raise DataError(f"{path}: {name} has {picture.size} pixels; expected {SIDE} x {SIDE}")
            return np.asarray(picture.convert("1"))
    except DataError:
        raise
    except Exception as error:  # broken zip members and broken pictures fail in many ways
        raise DataError(f"{path}: {name} is damaged: {type(error).__name__}: {error}") from error
