"""A learner's files, changed at random: each is refused with a LoadError, or answers as before."""

import contextlib
import copy
import functools
import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import piaget
from piaget.knowledge.snapshot import describe
from piaget.knowledge.storage import FORMAT, VERSIONS, flatten, write_files
from piaget.method.description import to_json
from tests.small import binary_tasks, make_task, mixed_tasks

MUTATIONS = 60  # of each learner
SMALL: dict[str, Any] = {"components": piaget.Dense(5), "initial_components": 2, "epochs": 2}
SMALL |= {"initial_tasks": 2, "batch_size": 8}


class Killed(BaseException):
    pass


def stop(report):
    raise Killed


def _tables():
    rows = [
        {"who": w, "age": i, "kind": "ab"[i % 2], "target": ("no", "yes")[i % 2]}
        for w in "xy"
        for i in range(20)
    ]
    return list(piaget.streams.from_table(rows, group="who", target="target"))


# Of each: settings, tasks that are learned, and a task in the middle of which it was stopped.
LEARNERS: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "er": ({}, lambda: mixed_tasks(3, n=12), None),
    "ewc": ({"adaptation": "ewc", "structure": "soft-gating"}, lambda: mixed_tasks(3, n=12), None),
    "linear": (
        {"structure": "linear", "components": None, "batch_size": None},
        lambda: binary_tasks(3),
        None,
    ),
    "shared": ({"encoder": "shared", "decoder": "shared"}, lambda: binary_tasks(3), None),
    "midway": ({"optimizer": "sgd"}, lambda: mixed_tasks(2, n=12), lambda: make_task("next", n=12)),
    "pending": ({"initial_tasks": 3, "stop": piaget.Patience(3)}, lambda: mixed_tasks(2, n=12), None),
    "initializing": ({}, lambda: mixed_tasks(1, n=12), lambda: make_task("next", n=12)),
    "table": ({}, _tables, None),
    "inference": ({"inference": "inputs"}, lambda: mixed_tasks(3, n=12), None),
}


@functools.cache
def learned(name: str) -> piaget.Learner:
    settings, tasks, midway = LEARNERS[name]
    learner = piaget.Learner(**(SMALL | settings))
    for task in tasks():
        learner.learn(task)
    if midway is not None:
        with pytest.raises(Killed):
            learner.learn(midway(), every=1, on_epoch=stop)
    return learner


def write(folder: Path, description: dict[str, Any], tensors: dict[str, torch.Tensor]) -> None:
    """The files of such a learner, with the right hashes."""
    write_files(folder, "learner", description, tensors)


def described(learner: piaget.Learner) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    description, tree = describe(learner.state)
    header = {"format": FORMAT, "version": VERSIONS[0], "settings": to_json(learner.settings)}
    return json.loads(json.dumps(header | description)), flatten(tree)


def answers(learner: piaget.Learner) -> dict[str, bytes]:
    """Of all tasks, and what it has still to learn."""
    found = {}
    for name in learner.tasks:
        record = learner.record(name)
        g = torch.Generator().manual_seed(1)
        x = torch.rand(5, *record.input_shape, generator=g)
        found[name] = np.asarray(learner.predict(x, name)).tobytes()
        if record.encoding is not None:
            rows = [{"age": 3, "kind": "b"}, {"age": 30, "kind": "a"}]
            found[name] += np.asarray(learner.predict(rows, name)).tobytes()
    found["pending"] = repr(learner.pending).encode()
    return found


# --- at random -------------------------------------------------------------------------------------------

VALUES: list[Any] = [
    None,
    True,
    False,
    -1,
    0,
    3,
    2**40,
    10**400,
    0.5,
    float("nan"),
    float("inf"),
    "",
    "x",
    [],
    [[]],
    {},
]
OPTIONAL = ("labels", "encoding")  # of a task: None is as good as any other value
VALUES += [{"a": 1}, [1, "x", None], {"part": "Dense"}, {"custom": "os.system"}]


def odd(value: Any, instead_of: Any) -> bool:
    """Is it of another of JSON's types, or a number that cannot be meant there?"""

    def is_number(one: Any) -> bool:
        return isinstance(one, int | float) and not isinstance(one, bool)

    if not is_number(value) or not is_number(instead_of):
        return type(value) is not type(instead_of)
    whole = isinstance(instead_of, int)
    strange = value != value or abs(value) == float("inf") or abs(value) > (2**39 if whole else 10**300)
    return strange or (value < 0 and whole)


def nodes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    )
    return [path, *(deeper for key, child in children for deeper in nodes(child, (*path, key)))]


def mutate_plain(data: dict[str, Any], rng: random.Random) -> str:
    *path, key = rng.choice([path for path in nodes(data) if path])
    parent: Any = data
    for step in path:
        parent = parent[step]
    change = rng.choice(["replace", "replace", "delete", "duplicate"])
    where = ".".join(map(str, [*path, key]))
    if change == "delete":
        del parent[key]
    elif change == "duplicate" and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(parent[key]))
    elif change == "duplicate":
        parent[f"{key} again"] = copy.deepcopy(parent[key])
    else:
        odd_values = [value for value in VALUES if odd(value, parent[key])]
        if key in OPTIONAL:
            odd_values = [value for value in odd_values if value is not None]
        if "labels" in path:  # a label may be any text or number
            odd_values = [value for value in odd_values if value is None or isinstance(value, list | dict)]
        parent[key] = rng.choice(odd_values)
        change = f"is {str(parent[key])[:30]}"
    return f"{where}: {change}"


def odd_tensor(tensor: torch.Tensor, rng: random.Random) -> tuple[str, torch.Tensor]:
    floating = tensor.is_floating_point()
    changes: dict[str, Any] = {
        "as float64": lambda t: t.double() if t.dtype != torch.float64 else t.float(),
        "as int32": lambda t: t.nan_to_num(0, 0, 0).int(),
        "one more axis": lambda t: t[None],
        "flat": lambda t: t.reshape(-1) if t.ndim != 1 else t[None],
        "longer": lambda t: torch.cat([t.reshape(-1), t.reshape(-1)[:1]]),
        "shorter": lambda t: t.reshape(-1)[1:],
        "empty": lambda t: t.reshape(-1)[:0],
    }
    if floating and tensor.numel():
        changes["nan"] = lambda t: (
            t.clone().reshape(-1).index_fill(0, torch.tensor([0]), float("nan")).view_as(t)
        )
    name = rng.choice(list(changes))
    return name, changes[name](tensor).contiguous()


def mutate_tensors(tensors: dict[str, torch.Tensor], rng: random.Random) -> str:
    name = rng.choice(sorted(tensors))
    change = rng.choice(["drop", "rename", "copy", "odd", "odd", "odd"])
    if change == "drop":
        del tensors[name]
    elif change == "rename":
        tensors[f"{name}x"] = tensors.pop(name)
    elif change == "copy":
        tensors[f"{name}/x"] = tensors[name].clone()
    else:
        change, tensors[name] = odd_tensor(tensors[name], rng)
    return f"{name}: {change}"


@pytest.mark.parametrize("name", LEARNERS)
def test_files_changed_at_random(name, tmp_path):
    learner = learned(name)
    data, tensors = described(learner)
    write(tmp_path, data, tensors)
    expected = answers(learner)
    assert answers(piaget.Learner.load(tmp_path)) == expected
    rng, refused, another = random.Random(name), 0, make_task("another", "binary", n=12)
    for _ in range(MUTATIONS):
        changed, others = copy.deepcopy(data), dict(tensors)
        change = mutate_plain(changed, rng) if rng.random() < 0.5 else mutate_tensors(others, rng)
        try:
            write(tmp_path, changed, others)
            found = piaget.Learner.load(tmp_path)
            assert answers(found) == expected, change
            with contextlib.suppress(piaget.PiagetError):
                found.learn(another)
        except piaget.LoadError as error:
            refused += 1
            named = str(tmp_path) in str(error)
        except Exception as error:
            raise AssertionError(f"{change}: {type(error).__name__}: {error}") from error
        assert not refused or named, change
    assert refused > 0.7 * MUTATIONS


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "1" * 10_000,
        "",
        "\0",
        "NaN",
        '"x"',
        '{"format": "piaget learner"}',
        "\ud800",
    ],
    ids=range(9),
)
def test_texts_that_are_no_description(tmp_path, text):
    write(tmp_path, *described(learned("er")))
    (tmp_path / "learner.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(piaget.LoadError, match=re.escape(str(tmp_path))):
        piaget.Learner.load(tmp_path)


def test_what_is_wrong_is_named(tmp_path):
    data, tensors = described(learned("er"))

    def message(change):
        changed, others = copy.deepcopy(data), dict(tensors)
        change(changed, others)
        write(tmp_path, changed, others)
        with pytest.raises(piaget.LoadError) as caught:
            piaget.Learner.load(tmp_path)
        return str(caught.value)

    weight = tensors["components/weight"]
    assert "tensor components/weight is missing" in message(lambda d, t: t.pop("components/weight"))
    assert "components/weight is not finite" in message(
        lambda d, t: t.update({"components/weight": weight * float("nan")})
    )
    assert "float64'); expected" in message(lambda d, t: t.update({"components/weight": weight.double()}))
    assert "it uses 9 of" in message(lambda d, t: d["records"][1].update(k=9))
    assert "multiclass with -3 classes" in message(lambda d, t: d["records"][0].update(classes=-3))
    assert "names that differ" in message(lambda d, t: d["records"][1].update(name="task 0"))
    assert "records[0].stream is 5; expected str" in message(lambda d, t: d["records"][0].update(stream=5))
    assert "depth=2.5: expected a whole number" in message(lambda d, t: d["settings"].update(depth=2.5))
    assert "not what Replay keeps of 3 tasks" in message(lambda d, t: t.pop("memory/1/y"))
