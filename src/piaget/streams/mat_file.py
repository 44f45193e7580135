"""MATLAB's files of versions 5 to 7 (save -v7): matrices of real numbers, and cells of such.

They are read here, and not by scipy, since damaged files made scipy's reader end the whole process (a
segmentation fault in scipy 1.17, found by fuzzing). What a file says of sizes is checked against what it has.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from piaget.data.unpacking import LARGEST, too_large
from piaget.errors import DataError

HEAD = 128  # bytes before the first element
ORDERS = {b"IM": "<", b"MI": ">"}  # how the file's last two bytes of the head tell the order of bytes
MATRIX, PACKED = 14, 15  # kinds of elements
CELL, REAL = 1, range(6, 16)  # kinds of matrices
COMPLEX = 0x0800  # a flag of matrices
# What kinds of elements hold numbers, and as what.
NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
DEEPEST = 4  # cells within cells
CHUNK = 1 << 20  # bytes


class _Wrong(ValueError):
    """What is wrong with a file."""


def read_mat(path: Path, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    """A MATLAB file's arrays by name; cells are arrays of objects, which are such arrays."""
    try:
        content = _content(path, keys)
    except (_Wrong, zlib.error, UnicodeDecodeError) as error:
        raise DataError(f"{path} is damaged or no MATLAB file that can be read: {error}") from error
    absent = [key for key in keys if key not in content]
    if absent:
        raise DataError(f"{path} has no {' and no '.join(map(repr, absent))}; expected {' and '.join(keys)}")
    return {key: content[key] for key in keys}


def _content(path: Path, keys: tuple[str, ...]) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    order = ORDERS.get(data[HEAD - 2 : HEAD])
    if order is None:
        raise _Wrong("its head is not that of a MATLAB file of version 5 to 7")
    (version,) = struct.unpack(f"{order}H", data[HEAD - 4 : HEAD - 2])
    if version == 0x0200:
        raise DataError(f"{path} is a MATLAB file of version 7.3; expected version 7 (save -v7)")
    content, left = {}, LARGEST
    for kind, element in _elements(order, data[HEAD:]):
        if kind == PACKED:
            element = _unpacked(path, element, left)
            left -= len(element)
            ((kind, element),) = [*_elements(order, element)][:1] or [(0, b"")]
        if kind == MATRIX:
            name, array = _matrix(order, element, keys)
            if array is not None:
                content[name] = array
    return content


def _unpacked(path: Path, packed: bytes, most: int) -> bytes:
    """What a packed element holds; more than `most` bytes are an error before they are there."""
    unpacking, parts, done = zlib.decompressobj(), [], 0
    while packed and not unpacking.eof:
        parts.append(unpacking.decompress(packed, CHUNK))
        packed = unpacking.unconsumed_tail
        done += len(parts[-1])
        if done > most:
            raise too_large(path)
    return b"".join(parts)


def _elements(order: str, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Elements that follow each other: the kind and the bytes of each."""
    at = 0
    while at + 8 <= len(data):
        kind, size = struct.unpack(f"{order}2I", data[at : at + 8])
        if kind >> 16:  # a short one: at most 4 bytes, in the place of the size
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
            at += 8
            if size > 4:
                raise _Wrong(f"a short element of {size} bytes")
        else:
            start = at + 8
            if start + size > len(data):
                raise _Wrong(f"an element of {size} bytes, of which {len(data) - start} are there")
            at = start + size + (0 if kind == PACKED else -size % 8)  # packed ones are not filled up
        yield kind, data[start : start + size]


def _matrix(
    order: str, data: bytes, keys: tuple[str, ...] | None = None, deep: int = 0
) -> tuple[str, np.ndarray | None]:
    """A matrix's name, and the matrix; None if it is not among those that are asked for."""
    if deep > DEEPEST:
        raise _Wrong(f"cells within cells, more than {DEEPEST} deep")
    if not data:  # an empty cell
        return "", np.zeros((0, 0))
    parts = [*_elements(order, data)]
    if len(parts) < 3 or len(parts[0][1]) < 4 or len(parts[1][1]) % 4:
        raise _Wrong("a matrix without flags, sizes and a name")
    (flags,) = struct.unpack(f"{order}I", parts[0][1][:4])
    shape = struct.unpack(f"{order}{len(parts[1][1]) // 4}i", parts[1][1])
    name = parts[2][1].decode("ascii")
    if keys is not None and name not in keys:
        return name, None
    if len(shape) < 2 or min(shape) < 0:
        raise _Wrong(f"{name!r} has the sizes {shape}")
    kind, count = flags & 0xFF, math.prod(shape)
    if kind == CELL:
        return name, _cells(order, parts[3:], shape, count, deep)
    if kind not in REAL or flags & COMPLEX:
        raise _Wrong(f"{name!r} is something else; expected a full matrix of real numbers, or of cells")
    stored, numbers = parts[3] if len(parts) > 3 else (9, b"")
    if stored not in NUMBERS:
        raise _Wrong(f"{name!r} holds elements of kind {stored}; expected numbers")
    dtype = np.dtype(order + NUMBERS[stored])
    if len(numbers) != count * dtype.itemsize:
        raise _Wrong(f"{name!r} has {len(numbers)} bytes; expected {count} numbers of {dtype.itemsize} bytes")
    array = np.frombuffer(numbers, dtype).astype(dtype.newbyteorder("="))
    return name, array.reshape(shape, order="F")


def _cells(
    order: str, parts: list[tuple[int, bytes]], shape: tuple[int, ...], count: int, deep: int
) -> np.ndarray:
    if len(parts) != count or any(kind != MATRIX for kind, _ in parts):
        raise _Wrong(f"{len(parts)} cells; expected {count}, each of them a matrix")
    cells = np.empty(count, dtype=object)
    for i, (_, data) in enumerate(parts):
        cells[i] = _matrix(order, data, deep=deep + 1)[1]
    return cells.reshape(shape, order="F")
