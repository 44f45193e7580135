"""Trees of tensors: the form in which parameters, batches and memory travel.

A tree is a tensor, None, a dictionary of trees, or a tuple (mostly a NamedTuple) of trees. The parameters of
one part (components, an encoder, a structure, a decoder) are always a flat dictionary, `Tensors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor

from piaget.errors import NotFinite

Tensors = dict[str, Tensor]
T = TypeVar("T")  # a tree, whose form is kept


def map_tree(function: Callable[..., Any], tree: T, *others: Any) -> T:
    """Applies `function` leaf by leaf to trees of the same form.

    >>> piaget.map_tree(torch.numel, {"anchor": {"weight": torch.zeros(2, 3)}})
    {'anchor': {'weight': 6}}
    """
    if isinstance(tree, Tensor):
        return function(tree, *others)
    mapped: Any = None
    if isinstance(tree, dict):
        mapped = {key: map_tree(function, tree[key], *(other[key] for other in others)) for key in tree}
    elif tree is not None:
        assert isinstance(tree, tuple)
        branches = [map_tree(function, *branch) for branch in zip(tree, *others, strict=True)]
        mapped = type(tree)(*branches) if hasattr(tree, "_fields") else tuple(branches)
    return mapped


def leaves(tree: Any) -> Iterator[Tensor]:
    """The tensors of a tree, in order."""
    if isinstance(tree, Tensor):
        yield tree
    elif tree is not None:
        for branch in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(branch)


def check_finite(what: str, tree: Any) -> None:
    """Raises an error if a number in the tree is not finite."""
    for tensor in leaves(tree):
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise NotFinite(f"{what} are not finite")


def rebuild(like: T, tensors: Iterable[Tensor]) -> T:
    """A tree of this form from its leaves."""
    remaining = iter(tensors)
    return map_tree(lambda _: next(remaining), like)


def flatten(tree: Any, prefix: str = "") -> dict[str, Tensor]:
    """{"a": {"b": t}} -> {"a/b": t}, for files."""
    if isinstance(tree, Tensor):
        return {prefix.removesuffix("/"): tree}
    return {k: t for key, value in tree.items() for k, t in flatten(value, f"{prefix}{key}/").items()}


def unflatten(flat: dict[str, Tensor]) -> dict[str, Any]:
    """The inverse of `flatten` (empty branches are not restored)."""
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        *path, last = name.split("/")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
            if isinstance(node, Tensor):
                raise ValueError(f"tensor {name} is inside another tensor")
        node[last] = value
    return tree


def ordered(tree: T) -> T:
    """The same tree with its dictionaries in the order of their names, as files have them."""
    branches: Any = tree
    if isinstance(tree, dict):
        branches = {key: ordered(tree[key]) for key in sorted(tree)}
    elif isinstance(tree, tuple):
        branches = type(tree)(*map(ordered, tree))
    return branches


def rounded(size: int, parts: int = 8) -> int:
    """A size rounded up to one of `parts` sizes between two powers of two: few forms, little waste."""
    step = max(1, 2 ** (max(size, 1).bit_length() - 1) // parts)
    return -(-size // step) * step


def without_place(tensor: Tensor, axis: int, place: int) -> Tensor:
    """The tensor without one of its places along an axis."""
    after = tensor.narrow(axis, place + 1, tensor.shape[axis] - place - 1)
    return torch.cat([tensor.narrow(axis, 0, place), after], axis)


def resize(tensor: Tensor, axis: int, size: int) -> Tensor:
    """Cuts `tensor` along `axis` to `size`, or pads it there with zeros.

    >>> piaget.resize(torch.ones(2), 0, 3)
    tensor([1., 1., 0.])
    """
    have = tensor.shape[axis]
    if have >= size:
        return tensor.narrow(axis, 0, size)
    shape = list(tensor.shape)
    shape[axis] = size
    padded = tensor.new_zeros(shape)
    padded.narrow(axis, 0, have).copy_(tensor)
    return padded
