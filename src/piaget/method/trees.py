"""Nested dictionaries of tensors ("trees"): the form in which all parameters travel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torch import Tensor

Tree = dict[str, Any]  # str -> Tensor | Tree


def map_tree(function: Callable[..., Any], tree: Tree, *others: Tree) -> Tree:
    """Applies `function` leaf by leaf to trees of the same form."""
    return {
        key: map_tree(function, value, *(other[key] for other in others))
        if isinstance(value, dict)
        else function(value, *(other[key] for other in others))
        for key, value in tree.items()
    }


def leaves(tree: Tree) -> Iterator[Tensor]:
    """The tensors of a tree, in the order of its keys."""
    for value in tree.values():
        if isinstance(value, dict):
            yield from leaves(value)
        else:
            yield value


def rebuild(like: Tree, tensors: Iterable[Tensor]) -> Tree:
    """A tree of this form from its leaves."""
    found = iter(tensors)
    return map_tree(lambda _: next(found), like)


def flatten(tree: Tree, prefix: str = "") -> dict[str, Tensor]:
    """{"a": {"b": t}} -> {"a/b": t}, for files."""
    flat: dict[str, Tensor] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}/"))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def unflatten(flat: dict[str, Tensor]) -> Tree:
    """The inverse of `flatten` (empty sub-trees are not restored)."""
    tree: Tree = {}
    for name, value in flat.items():
        *path, last = name.split("/")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    return tree


def rounded(size: int, parts: int = 8) -> int:
    """A size rounded up to one of `parts` sizes between two powers of two: few forms, little waste."""
    step = max(1, 2 ** (max(size, 1).bit_length() - 1) // parts)
    return -(-size // step) * step


def resize(tensor: Tensor, axis: int, size: int) -> Tensor:
    """Cuts `tensor` along `axis` to `size`, or pads it there with zeros."""
    have = tensor.shape[axis]
    if have >= size:
        return tensor.narrow(axis, 0, size)
    shape = list(tensor.shape)
    shape[axis] = size
    padded = tensor.new_zeros(shape)
    padded.narrow(axis, 0, have).copy_(tensor)
    return padded
