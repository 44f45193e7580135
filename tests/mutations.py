"""Wrong values, and right files made wrong: strategies for tests/test_fuzz.py."""

import copy
import hashlib
import json
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st

# --- values -----------------------------------------------------------------------------------------------

NUMBERS = [0, 1, -1, 2, 3, 7, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, -0.5, 1e-320, 1e308, 1e39]
NOT_FINITE = [float("nan"), float("inf"), float("-inf")]
NUMPY = [
    np.int64(3),
    np.uint8(2),
    np.float32(0.5),
    np.float64("nan"),
    np.bool_(True),
    np.array(3),
    np.array([1, 2]),
    np.str_("er"),
    np.datetime64("2020-01-01"),
    np.complex64(1j),
]
TEXTS = ["", " ", "0", "-1", "²", "٣", "1e5", "nan", "None", "True", "all", "é\n", "\0", "a" * 300, "\ud800"]
JSON_LEAVES: list[Any] = [
    None,
    True,
    False,
    *NUMBERS,
    *NOT_FINITE,
    *TEXTS,
    [],
    {},
    [[]],
    {"": None},
    [1, "a"],
]
OTHERS: list[Any] = [
    object(),
    int,
    len,
    b"",
    b"\xff",
    (),
    (1, 2, 3),
    {1},
    range(3),
    torch.zeros(2),
    Ellipsis,
    1j,
]


def odd() -> st.SearchStrategy[Any]:
    """Anything."""
    return st.one_of(
        st.sampled_from([*JSON_LEAVES, *NUMPY, *OTHERS]),
        st.integers(-5, 40),
        st.floats(width=32),
        st.text(max_size=5),
        st.lists(st.integers(-2, 3), max_size=4),
    )


def odd_text() -> st.SearchStrategy[str]:
    """A word of a command line."""
    return st.one_of(st.sampled_from(TEXTS[:-1]), st.text(max_size=4), st.integers().map(str))


# --- bytes ------------------------------------------------------------------------------------------------


class Changed(NamedTuple):
    """A file's new content, and what was done to it, in words: for small and clear examples."""

    content: bytes
    how: str


@st.composite
def mutated_bytes(draw: st.DrawFn, data: bytes) -> Changed:
    """A file with one to three faults."""
    faults = []
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        kind = draw(st.sampled_from(["flip", "cut", "zero", "insert", "double", "byte", "drop"]))
        length, value = draw(st.integers(1, 30)), draw(st.binary(min_size=1, max_size=8))
        if kind == "flip" and data:
            data = data[:at] + bytes([data[at] ^ 1 << value[0] % 8]) + data[at + 1 :]
        elif kind == "byte" and data:
            data = data[:at] + value[:1] + data[at + 1 :]
        elif kind == "cut":
            data = data[:at]
        elif kind == "zero":
            data = data[:at] + bytes(len(data) - at)
        elif kind == "insert":
            data = data[:at] + value + data[at:]
        elif kind == "drop":
            data = data[:at] + data[at + length :]
        elif kind == "double":
            data = data[:at] + data[at : at + length] + data[at:]
        faults.append(
            f"{kind} at {at} ({value!r})" if kind in ("flip", "byte", "insert") else f"{kind} at {at}"
        )
    return Changed(data, ", ".join(faults))


@st.composite
def mutated_ends(draw: st.DrawFn, data: bytes) -> Changed:
    """Faults near the beginning or the end, where formats have their heads and tables."""
    if draw(st.booleans()):
        content, how = draw(mutated_bytes(data[:400]))
        return Changed(content + data[400:], how)
    content, how = draw(mutated_bytes(data[-400:]))
    return Changed(data[:-400] + content, f"in the last 400 bytes: {how}")


# --- JSON -------------------------------------------------------------------------------------------------


def _nodes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all nodes but the root."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [node for key, child in items for node in [(*path, key), *_nodes(child, (*path, key))]]


def _at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


@st.composite
def mutated_json(draw: st.DrawFn, data: Any) -> tuple[Any, str]:
    """JSON with one or two nodes that are another, missing, or twice there; and which."""
    data, faults = copy.deepcopy(data), []
    for _ in range(draw(st.integers(1, 2))):
        paths = _nodes(data)
        if not paths:
            break
        *way, last = path = draw(st.sampled_from(paths))
        parent = _at(data, tuple(way))
        kind = draw(st.sampled_from(["other", "number", "remove", "double", "rename", "wrap", "copy"]))
        if kind == "other":
            parent[last] = copy.deepcopy(draw(st.sampled_from(JSON_LEAVES)))
        elif kind == "number":
            parent[last] = draw(st.integers(-3, 50))
        elif kind == "double" and isinstance(parent, list):
            parent.insert(last, copy.deepcopy(parent[last]))
        elif kind == "rename" and isinstance(parent, dict):
            parent[draw(st.sampled_from(TEXTS[:-1]))] = parent.pop(last)
        elif kind == "wrap":
            parent[last] = [parent[last]]
        elif kind == "copy":
            parent[last] = copy.deepcopy(_at(data, draw(st.sampled_from(paths))))
        else:
            del parent[last]
        now = repr(parent[last])[:60] if isinstance(parent, dict) and last in parent else kind
        faults.append(f"{'.'.join(map(str, path))}: {now}")
    return data, "; ".join(faults)


def unsealed(text: bytes) -> Any:
    """A file's JSON, without the hash of itself that it may have."""
    data = json.loads(text)
    if isinstance(data, dict):
        data.pop("sha256", None)
    return data


def sealed(data: Any) -> bytes:
    """A file's JSON with the hash of itself, as piaget.files writes it: whoever wrote it knew how."""
    body = json.dumps(data, indent=1).encode(errors="surrogatepass")
    if not isinstance(data, dict) or not data:
        return body
    body = body.removesuffix(b"\n}")
    return body + f',\n "sha256": "{hashlib.sha256(body).hexdigest()}"\n}}'.encode()


@st.composite
def mutated_json_file(draw: st.DrawFn, text: bytes) -> Changed:
    """Another JSON with a right hash of itself or with none, or other bytes."""
    kind = draw(st.sampled_from(["sealed", "sealed", "plain", "bytes"]))
    if kind == "bytes":
        return draw(mutated_bytes(text))
    data, how = draw(mutated_json(unsealed(text)))
    plain = json.dumps(data).encode(errors="surrogatepass")
    return Changed(sealed(data) if kind == "sealed" else plain, f"{kind}: {how}")
