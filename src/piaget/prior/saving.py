"""Knowledge as plain data and tensors, and back: what a save keeps. Nothing in it can run code."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from piaget.data.typed_data import read
from piaget.prior.boosting import BINS, DEPTHS, Correction, Forest
from piaget.prior.evidence import Scales
from piaget.prior.features import Bumps, Frame, Moments, Standard
from piaget.prior.gaussian import Quadratic
from piaget.prior.knowledge import Adapted, Bent, Form, Knowledge, Structure
from piaget.prior.likelihoods import Noise
from piaget.prior.records import Labels, Record, Values
from piaget.prior.sites import Sites, touching

Tree = dict[str, Any]  # of tensors, with texts as keys
MOST_NOISE = 100.0  # the logarithm of a variance, in units of the target's own: far more than there can be


def describe(known: Knowledge) -> tuple[dict[str, Any], Tree]:
    """For JSON, and tensors. Tasks are numbered in their order.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> plain, tensors = prior.describe(known)
    >>> prior.restore(plain, tensors).tasks
    ['a']
    """
    plain = {
        "form": dataclasses.asdict(known.form),
        "tasks": [
            {"name": name, "n": record.n, "log_noise": known.structures[name].log_noise}
            for name, record in known.records.items()
        ],
        "noise": list(known.noise),
        "adapted": dict(known.adapted._asdict()),
        "corrected": known.corrected,
        "ratio": known.ratio,
        "looked": known.looked,
    }
    tree: Tree = {"tasks": {}}
    if known.bent is not None:
        plain["bent"], own_tree = describe(known.bent.known)
        tree["bent"] = {"bumps": dict(known.bent.bumps._asdict()), "known": own_tree}
    for part in ("frame", "standard", "scales"):
        value = getattr(known, part)
        if value is not None:
            tree[part] = dict(value._asdict())
    for number, (name, record) in enumerate(known.records.items()):
        own, sites = known.structures[name], known.structures[name].sites
        tree["tasks"][str(number)] = {"w": own.w, **_record_tree(record)}
        if sites is not None:
            tree["tasks"][str(number)]["sites"] = dict(sites._asdict())
    if known.correction is not None:
        forests = {
            str(i): {part: torch.from_numpy(array) for part, array in forest._asdict().items()}
            for i, forest in enumerate(known.correction.forests)
        }
        tree["correction"] = {"edges": torch.from_numpy(known.correction.edges), "forests": forests}
    return plain, tree


def _record_tree(record: Record) -> Tree:
    fields = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    settled = fields.pop("settled", None)
    moments = dict(fields.pop("moments")._asdict())
    tensors: Tree = {name: value for name, value in fields.items() if isinstance(value, Tensor)}
    tensors["moments"] = moments
    return tensors if settled is None else {**tensors, "settled": dict(settled._asdict())}


_PLAIN = {
    "form": Form,
    "tasks": list[dict[str, Any]],
    "noise": list[float],
    "adapted": dict[str, int | bool],
    "corrected": int,
    "ratio": float,
}


def restore(plain: dict[str, Any], tree: Tree, seen: int | None = None) -> Knowledge:
    """What `describe` gave. ValueError: it is something else. seen: how many of the inputs trees see, if not
    all.

    Raises `LoadError` if they do not fit together.

    >>> from piaget import prior
    >>> x, y = torch.eye(6).double(), torch.arange(6).double()
    >>> known = prior.learn(prior.begin("regression", trees=False), "a", x, y)
    >>> prior.restore(*prior.describe(known)).rows
    6
    """
    data = {name: read(hint, plain.get(name), name) for name, hint in _PLAIN.items()}
    form: Form = data["form"]
    if not data["tasks"]:
        return Knowledge(form)
    try:
        frame = Frame(**{name: tree["frame"][name] for name in Frame._fields})
        standard = Standard(**{name: tree["standard"][name] for name in Standard._fields})
        scales = Scales(**{name: tree["scales"][name] for name in Scales._fields})
        records, structures = {}, {}
        for number, one in enumerate(data["tasks"]):
            name, own = read(str, one.get("name"), "name"), tree["tasks"][str(number)]
            records[name] = _record(form, read(int, one.get("n"), "n"), own)
            log_noise = read(float, one.get("log_noise"), "log_noise")
            structures[name] = Structure(own["w"], log_noise, _sites(own, frame, records[name]))
        correction = _correction(tree["correction"]) if "correction" in tree else None
        bent = _bent(plain["bent"], tree["bent"]) if "bent" in plain else None
    except (KeyError, TypeError) as error:
        raise ValueError(f"knowledge lacks {error}") from error
    known = Knowledge(
        form,
        frame,
        records,
        structures,
        standard,
        scales,
        Noise(*data["noise"]),
        Adapted(**data["adapted"]),
        correction,
        data["corrected"],
        data["ratio"],
        read(int, plain.get("looked", data["corrected"]), "looked"),  # an older version did not look
        bent,
    )
    check(known, seen)
    return known


def _bent(plain: Any, tree: Tree) -> Bent:
    """An older version had none."""
    if "bent" in plain:
        raise ValueError("what is known with bends is bent once more; expected bends of inputs alone")
    bumps = Bumps(**{name: tree["bumps"][name] for name in Bumps._fields})
    inputs = len(tree["known"]["frame"]["center"]) - len(bumps.column)
    return Bent(bumps, restore(read(dict[str, Any], plain, "bent"), tree["known"], inputs))


def _sites(own: Tree, frame: Frame, record: Record) -> Sites | None:
    """Of an older version, which had none, rows that touch at the weights."""
    if "sites" in own:
        return Sites(**own["sites"])
    if not isinstance(record, Labels):
        return None
    return touching(frame.features(record.x) @ own["w"].mT, record.y)


def _record(form: Form, n: int, own: Tree) -> Record:
    common = own["x"], own["y"], Moments(**own["moments"])
    if form.kind == "regression":
        return Values(n, *common, own["gram"], own["cross"])
    settled = own.get("settled")
    counts = own.get("counts", torch.bincount(own["y"]))  # an older version had none: of rows that are kept
    return Labels(n, *common, counts, None if settled is None else Quadratic(**settled))


def _correction(tree: Tree) -> Correction:
    forests = [tree["forests"][str(i)] for i in range(len(tree["forests"]))]
    made = tuple(Forest(*(one[part].numpy() for part in Forest._fields)) for one in forests)
    return Correction(tree["edges"].numpy(), made)


def check(known: Knowledge, seen: int | None = None) -> None:
    """Raises ValueError if sizes do not fit together, or numbers are not finite."""
    frame, standard, scales = known.begun
    inputs, d, outputs = len(frame.center), frame.width, known.form.outputs
    expected: list[tuple[str, Tensor, tuple[int, ...]]] = [
        ("scale", frame.scale, (inputs,)),
        ("origin", frame.origin, ()),
        ("unit", frame.unit, ()),
        ("mean", standard.mean, (d,)),
        ("spread", standard.spread, (d,)),
        ("own", scales.own, (d,)),
        ("directions", scales.directions, (d, scales.directions.shape[-1])),
    ]
    for name, record in known.records.items():
        rows = (len(record.y),)
        expected += [(name, record.x, (*rows, inputs)), (name, record.y, rows)]
        expected += [
            (name, part, shape) for part, shape in zip(record.moments, ((), (d,), (d,), (2,)), strict=True)
        ]
        expected.append((name, known.structures[name].w, (outputs, d)))
        sites = known.structures[name].sites
        if sites is not None:
            # Of the first rows: what came after was not in it yet.
            told = min(len(sites.constant), len(record.y))
            expected += [(name, part, (told, outputs)) for part in (sites.precision, sites.linear)]
            expected.append((name, sites.constant, (told,)))
            if bool((sites.precision < 0).any()):
                raise ValueError(f"{name!r} has rows of negative precision")
        if isinstance(record, Values):
            expected += [(name, record.gram, (d, d)), (name, record.cross, (d,))]
        elif isinstance(record, Labels):
            _check_counts(name, record.counts, known.form.classes)
        if isinstance(record, Labels) and record.settled is not None:
            shapes = ((outputs, d, d), (outputs, d), (outputs,))
            expected += [(name, part, shape) for part, shape in zip(record.settled, shapes, strict=True)]
    for what, tensor, shape in expected:
        if tuple(tensor.shape) != tuple(shape) or not bool(torch.isfinite(tensor.double()).all()):
            raise ValueError(f"{what!r} has a tensor {tuple(tensor.shape)}; expected {shape}, finite")
    levels = [known.noise.level, *(structure.log_noise for structure in known.structures.values())]
    if not all(abs(level) <= MOST_NOISE for level in levels):
        raise ValueError(f"logarithms of noise {levels[:5]}; expected {-MOST_NOISE} to {MOST_NOISE}")
    if known.correction is not None:
        columns = known.form.columns
        _check_correction(known.correction, (inputs if seen is None else seen) + 2 * columns, columns)
    if known.bent is not None:
        _check_bent(known.bent, known)


def _check_bent(bent: Bent, known: Knowledge) -> None:
    """The same tasks, by the same inputs and bumps that are some."""
    bumps, inputs = bent.bumps, len(known.begun[0].center)
    left, middle, right = bumps.left, bumps.middle, bumps.right
    shapes = {tuple(part.shape) for part in bumps}
    if shapes != {(len(bent.known.begun[0].center) - inputs,)} or {bumps.column.dtype, bumps.other.dtype} != {
        torch.int64
    }:
        raise ValueError(f"bumps of shapes {sorted(shapes)} do not fit the inputs")
    which = torch.cat([bumps.column, bumps.other])
    if not bool(((which >= 0) & (which < inputs)).all() & ((left < middle) & (middle < right)).all()):
        raise ValueError("bumps are not over inputs that exist, from left to right")
    if not bool(torch.isfinite(torch.stack([left, right, bumps.slope, bumps.start])).all()):
        raise ValueError("bumps are not finite")
    if bent.known.form != known.form or bent.known.tasks != known.tasks or bent.known.bent is not None:
        raise ValueError("what is known with bends is of other tasks than what is known without")


def _check_counts(name: str, counts: Tensor, classes: int) -> None:
    whole = counts.dtype == torch.int64 and counts.ndim == 1 and len(counts) <= classes
    if not whole or bool((counts < 0).any()):
        raise ValueError(f"{name!r} has counts of classes {counts.tolist()[:5]}; expected {classes} or fewer")


def _check_correction(correction: Correction, inputs: int, outputs: int) -> None:
    nodes = correction.forests[0].feature.shape[-1]
    if nodes not in (2**depth - 1 for depth in DEPTHS):
        raise ValueError(f"the correction's trees have {nodes} nodes")
    for forest in correction.forests:
        trees = len(forest.feature)
        shapes = ((trees, nodes), (trees, nodes), (trees, nodes + 1, outputs))
        fits = all(part.shape == shape for part, shape in zip(forest, shapes, strict=True))
        if not fits or correction.edges.shape != (inputs, BINS - 1):
            raise ValueError("the correction's trees have other sizes than its inputs and outputs")
        if trees and not (forest.feature.min() >= 0 and forest.feature.max() < inputs):
            raise ValueError("the correction's trees ask for inputs that do not exist")
