"""Data that is damaged, hostile, or not what it seems: the right result, or an error that says why not."""

from __future__ import annotations

import argparse
import datetime
import decimal
import gzip
import io
import os
import struct
import subprocess
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import PIL.EpsImagePlugin
import PIL.Image
import pytest
import scipy.io
import scipy.sparse
import torch

import piaget
from piaget.cli import main
from piaget.cli.common import seeds_text
from piaget.cli.words import positive, seed_list
from piaget.data import unpacking
from piaget.data.encoding import Scaling
from piaget.errors import DataError, PiagetError, SettingError, TaskError
from piaget.streams import formats, from_arrays, from_folder, from_table, mat_file, picture_files
from piaget.streams.objects import Drawing
from piaget.streams.table_stream import TableStream
from tests.small import make_task

N = 20
X, Y = np.arange(2.0 * N).reshape(N, 2), np.array([0, 1] * 10)
MASKED = np.ma.masked_array(X, X == 7)


class Broken:
    """An array that cannot be had."""

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        raise RuntimeError("broken")


def alternating(a: Any, b: Any) -> list[Any]:
    return [a, b] * 10


def task(y: Any, **options: Any) -> piaget.Task:
    return piaget.Task.from_arrays("t", X, y, **options)


# --- labels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "kind", "labels"),
    [
        (np.array(alternating(1e30, 0.0)), "regression", None),
        (np.array(alternating(1e19, -1e19)), "regression", None),
        (np.array(alternating(2.0**60, 2.0**60 + 256)), "regression", None),
        (np.array(alternating(2**63 + 5, 2**63 + 6), np.uint64), "binary", (2**63 + 5, 2**63 + 6)),
        (alternating(-(2**63), 2**63 - 1), "binary", (-(2**63), 2**63 - 1)),
        (np.ma.masked_array(Y), "binary", None),
        (pandas.array([0, 1] * 10, dtype="Int64"), "binary", None),
        (pandas.Series(["a", "b"] * 10), "binary", ("a", "b")),
        (pandas.Categorical(["a", "b"] * 10), "binary", ("a", "b")),
        (np.array(["a", "b"] * 10, object), "binary", ("a", "b")),
        (np.array([3, 4] * 10, object), "binary", (3, 4)),
        (alternating(decimal.Decimal("1.5"), decimal.Decimal(2)), "regression", None),
        (torch.tensor(Y).bfloat16(), "binary", None),
        (np.array(Y, ">i4"), "binary", None),
    ],
)
def test_labels_stay_what_they_are(y, kind, labels):
    made = task(y)
    assert (made.kind, made.labels) == (kind, labels)
    found = torch.cat([split.y for _, split in made.splits()])
    assert len(found.unique()) == 2


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ma.masked_array(Y, Y == 1), "10 of targets are masked .the first in row 1"),
        (pandas.array([0, None] * 10, dtype="Int64"), "NaN or infinite|mixed types or missing"),
        (pandas.array(["a", None] * 10, dtype="string"), "mixed types or missing"),
        (alternating("1", 1), "mixed types"),
        (alternating(True, 1), "mixed types"),
        (alternating("a", "a\0"), "ends in NUL"),
        (alternating(10**30, 10**30 + 1), "the same as floating-point numbers"),
        (alternating(2**53 + 1, 2.0**53), "the same as floating-point numbers"),
        (alternating(10**400, 1), "beyond all floating-point numbers"),
        (np.array(alternating(1j, 2)), "dtype complex128"),
        (np.array(alternating("2020-01-01", "2020-01-02"), "M8[D]"), "dates can be classes"),
        (alternating(datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)), "row 0 holds a date"),
        (np.array(alternating(b"a", b"b")), "dtype .S1; expected numbers or texts"),
        (alternating({}, {1: 2}), "row 0 holds a dict"),
        (np.array(alternating(1, 2), np.longdouble) * np.longdouble("1e4000"), "NaN or infinite"),
        (scipy.sparse.csr_matrix(Y), "sparse"),
        (torch.tensor(Y).to_sparse(), "sparse"),
        (torch.tensor(Y).to("meta"), "no array"),
        (Broken(), "no array of numbers: broken"),
        (iter(Y), "targets are an iterator"),
        (None, "targets are None"),
        (alternating("\ud800", "b"), "no text that can be written"),
    ],
)
def test_labels_that_are_refused(y, message):
    with pytest.raises(TaskError, match=message):
        task(y)


def test_labels_beyond_exact_floats_are_no_classes():
    with pytest.raises(TaskError, match=r"not a whole number below 2\^53"):
        task(np.array(alternating(1e30, 0.0)), kind="binary")
    large = np.array(alternating(2**60, 2**60 + 1))
    made = task(large, validation=(X, large.astype(np.uint64)))
    assert made.labels == (2**60, 2**60 + 1)
    with pytest.raises(TaskError, match="one split are texts"):
        task(["a", "b"] * 10, validation=(X, Y))
    with pytest.raises(TaskError, match="same as floating-point"):
        task(large, kind="regression")


def test_labels_of_several_types_are_answered_as_they_are():
    learner = piaget.Learner("soft-ordering", "nft", "compositional", epochs=2, width=4, initial_tasks=1)
    split = piaget.Split(torch.tensor(X), torch.tensor(Y))
    learner.learn(piaget.Task("t", "binary", split, classes=2, labels=(1, "a")))
    assert set(learner.predict(X, "t")) <= {1, "a"}


# --- inputs ---------------------------------------------------------------------------------------------

WRONG_INPUTS = [
    (MASKED, "1 of inputs are masked .the first in row 3"),
    (X + 0j, "dtype complex128; expected real numbers"),
    (torch.tensor(X) + 0j, "dtype complex128"),
    (scipy.sparse.csr_matrix(X), "sparse; expected a full array, such as x.toarray"),
    (torch.tensor(X).to_sparse(), "sparse"),
    (torch.tensor(X).to("meta"), "no array"),
    (np.where(X == 7, np.array(None), X), "row 3 holds None"),
    (pandas.DataFrame(X.astype(int)).astype("Int64").replace(7, pandas.NA), "row 3 holds a NAType"),
    (Broken(), "no array of numbers: broken"),
    ([[10**400, 1]] * N, "beyond all floating-point numbers"),
    (np.zeros((N, 2), "M8[s]"), "dtype datetime64"),
]


@pytest.mark.parametrize(("x", "message"), WRONG_INPUTS)
def test_inputs_that_are_refused(x, message):
    for make in (lambda: piaget.Task.from_arrays("t", x, Y), lambda: from_arrays(x, Y, ["a", "a"] * 10)):
        with pytest.raises(TaskError, match=message):
            make()


def test_inputs_that_are_refused_for_predictions():
    learner = piaget.Learner("soft-ordering", "nft", "compositional", epochs=2, width=4, initial_tasks=1)
    learner.learn(task(Y))
    for x, message in [*WRONG_INPUTS, (X * 1e300, "too large for float32")]:
        with pytest.raises(TaskError, match=message):
            learner.predict(x, "t")
    right = learner.predict(X, "t").tolist()
    for x in (X.astype(">f8"), X.astype(object), np.ma.masked_array(X), X.astype(np.longdouble)):
        assert learner.predict(x, "t").tolist() == right


def test_values_too_large_for_the_learner():
    learner = piaget.Learner("soft-ordering", "nft", "compositional", epochs=2, width=4, initial_tasks=1)
    with pytest.raises(TaskError, match="inputs are too large for float32"):
        learner.learn(piaget.Task.from_arrays("t", X * 1e300, Y))
    with pytest.raises(TaskError, match="targets are too large for float32"):
        learner.learn(task(np.linspace(0, 1e60, N)))


def test_the_task_keeps_its_own_copy():
    x = X.copy()
    made = piaget.Task.from_arrays("t", x, Y, test=(x, Y))
    x[:] = 0
    assert made.train.x.abs().max() > 0


def test_other_byte_orders_and_objects_are_numbers():
    for x in (X.astype(">f8"), X.astype(object), pandas.DataFrame(X)):
        made = piaget.Task.from_arrays("t", x, Y, test=(X, Y))
        assert torch.equal(made.train.x, torch.tensor(X))


# --- tasks, numbers and options ---------------------------------------------------------------------------

SPLIT = piaget.Split(torch.tensor(X), torch.tensor(Y))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": (X, Y)}, "train is a tuple; expected a Split"),
        ({"validation": (X, Y)}, "validation is a tuple; expected a Split, or None"),
        ({"classes": "2"}, "classes='2'"),
        ({"classes": 2.0}, "classes=2.0"),
        ({"kind": "multiclass", "classes": 10**12}, "20 training samples for 1000000000000 classes"),
        ({"labels": "ab"}, "labels is a str"),
        ({"labels": {"a": 1, "b": 2}}, "labels is a dict"),
        ({"labels": ("a", "a")}, "label 'a' occurs twice"),
        ({"labels": (1, True)}, "occurs twice"),
        ({"labels": (float("nan"), 1)}, "label nan"),
        ({"labels": (10**30, 1)}, "beyond 64 bits"),
        ({"stream": 3}, "stream is an int"),
        ({"scaling": None}, "scaling is None"),
        ({"encoding": "x"}, "encoding is a str"),
        ({"name": "\udcff"}, "a task's name is a non-empty text"),
        ({"train": piaget.Split(torch.tensor(X).to_sparse(), SPLIT.y)}, "inputs are a sparse"),
        ({"train": piaget.Split(torch.tensor(X).to("meta"), SPLIT.y)}, "meta tensor"),
        ({"train": piaget.Split(torch.tensor(X).to(torch.float8_e4m3fn), SPLIT.y)}, "dtype torch.float8"),
        ({"train": piaget.Split(SPLIT.x, SPLIT.y[:3])}, "targets have shape"),
    ],
)
def test_tasks_of_wrong_types(changes, message):
    right: dict[str, Any] = {"name": "t", "kind": "binary", "train": SPLIT, "classes": 2}
    with pytest.raises(TaskError, match=message):
        piaget.Task(**right | changes)


def test_labels_are_pythons_own():
    made = piaget.Task("t", "binary", SPLIT, classes=2, labels=tuple(np.array([1.5, 2.5])))
    assert [type(label) for label in made.labels or ()] == [float, float]


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "a", 1e-320, 10**400])
def test_scalings(value):
    with pytest.raises(SettingError, match="divisor="):
        Scaling(value)


def test_numbers_of_numpy_are_numbers():
    for kind in (np.int64, np.uint8, np.array):
        options: dict[str, Any] = {"classes": kind(2), "seed": kind(3)}
        assert task(Y, **options).fingerprint() == task(Y, classes=2, seed=3).fingerprint()
    assert len(task(Y, fractions=np.array([0.5, 0.25, 0.25])).train) == 10
    number: Any = np.int64(1)
    stream = piaget.stream("digits", number, tasks=np.int64(2), train_size=np.array(4))
    assert (len(stream), len(stream[0].train)) == (2, 4)
    settings: dict[str, Any] = {"width": np.array(4), "dropout": np.float32(0.25), "seed": torch.tensor(3)}
    learner = piaget.Learner(**settings)
    assert learner.settings.seed == 3


@pytest.mark.parametrize(
    "options",
    [
        {"seed": -1},
        {"seed": 2**63},
        {"seed": 1.5},
        {"seed": None},
        {"seed": True},
        {"seed": np.ma.masked},
        {"fractions": (np.nan, 0.5, 0.5)},
        {"fractions": ("a", "b", "c")},
        {"fractions": (1j, 0, 0)},
        {"fractions": (0.5, 0.5)},
        {"classes": 10**12},
        {"divisor": "a"},
        {"divisor": 10**400},
        {"validation": 3},
        {"validation": X},
        {"kind": [1]},
    ],
)
def test_options_out_of_range(options):
    with pytest.raises(PiagetError):
        task(Y, **options)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("digits", {"tasks": 10**12}),
        ("digits", {"tasks": "²"}),
        ("digits", {"train_size": 1}),
        ("objects", {"setting": []}),
        ("objects", {"drawing": 3}),
        ("pixel-mnist", {"digit": 10}),
        ("landmine", {"fractions": (1, 2)}),
    ],
)
def test_options_of_streams_out_of_range(name, options, monkeypatch):
    """Told before anything is downloaded, or learned."""
    monkeypatch.setattr("piaget.streams.fetch.download", None)
    with pytest.raises(SettingError):
        piaget.stream(name, 0, **options)


@pytest.mark.parametrize("wrong", [{"palette": "x"}, {"background": 256}, {"extent": float("nan")}])
def test_drawings_out_of_range(wrong):
    with pytest.raises(SettingError, match="expected"):
        Drawing(**wrong)


def test_groups():
    names = [2**53 + 1, 2.0**53] * 10  # as an array they would be one group
    made = from_arrays(X, np.repeat([[0, 1]], 10, 1).ravel(), [str(int(n)) for n in names])
    assert [t.name for t in made] == [
        t.name for t in from_arrays(X, np.repeat([[0, 1]], 10, 1).ravel(), names)
    ]
    for groups in (
        [None, *"a" * 19],
        [b"a"] * N,
        [pandas.NA] * N,
        np.ma.masked_array(Y, Y == 1),
        [np.inf] * N,
        3,
    ):
        with pytest.raises(TaskError, match="group"):
            from_arrays(X, Y, groups)
    with pytest.raises(SettingError, match="same name"):
        from_arrays({1: (X, Y), "1": (X, Y)})


# --- packed files -----------------------------------------------------------------------------------------


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """One MB when unpacked, instead of 512."""
    for module in (unpacking, formats, mat_file):
        monkeypatch.setattr(module, "LARGEST", 1 << 20)


def idx(count: int, content: bytes) -> bytes:
    return struct.pack(">4I", 0x803, count, 28, 28) + content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx(1, bytes(50 << 20)), "cut short or too long: more than 784 bytes"),
        (idx(2**31, bytes(50 << 20)), "its head tells of 2147483648 x 28 x 28 bytes"),
        (idx(1300, bytes(50 << 20)), "cut short or too long: more than"),
        (b"", "it begins with nothing"),
    ],
)
def test_packed_idx(content, message, small_limit, tmp_path):
    """Of 50 MB that follow, only what the head tells of is read."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(content, 1))
    read: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        unpack = gzip.GzipFile.read

        def counted(*arguments: Any) -> bytes:
            data = unpack(*arguments)
            read.append(len(data))
            return data

        patch.setattr(gzip.GzipFile, "read", counted)
        with pytest.raises(DataError, match=message):
            formats.read_idx(tmp_path / "a.gz", 3)
    assert sum(read) < 2 << 20


def test_packed_tables(small_limit, tmp_path):
    rows = b"g,x,y\n" + b"".join(b"%s,%d,%d\n" % (b"ab"[i % 4 > 1 :][:1], i, i % 2) for i in range(40))
    for name, content in (("t.csv.gz", rows), ("t.csv", gzip.compress(rows))):  # by content, not by name
        (tmp_path / name).write_bytes(content)
        assert len(from_table(tmp_path / name, group="g", target="y")) == 2
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(rows + b"a,1,1\n" * (1 << 20)))
    with pytest.raises(DataError, match="holds more than 1 MB when it is unpacked"):
        from_table(tmp_path / "t.csv.gz", group="g", target="y")


def test_packed_matrices(small_limit, tmp_path):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"X": np.zeros((1 << 20, 3)), "y": np.arange(3)}, do_compression=True)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(DataError, match="holds more than 1 MB"):
        mat_file.read_mat(path, ("X", "y"))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones((3, 2)), [0, 1, 1e18], "expected class numbers from 0"),
        (np.full((3, 2), 1e300), [0, 1, 2], "infinite"),
        (scipy.sparse.csc_matrix(np.ones((3, 2))), [0, 1, 2], "expected a full matrix"),
        (np.ones((3, 2)) * 1j, [0, 1, 2], "matrix of real numbers"),
    ],
)
def test_matrices(x, y, message, tmp_path):
    scipy.io.savemat(tmp_path / "a.mat", {"X": x, "y": y})
    with pytest.raises(DataError, match=message):
        formats.mat_features(tmp_path / "a.mat", tmp_path / "a.mat")


def test_packed_archives(small_limit, tmp_path):
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("other", "train.bin"):
            member = tarfile.TarInfo(name)
            member.size = 2 << 20
            archive.addfile(member, io.BytesIO(bytes(2 << 20)))
    with pytest.raises(DataError, match="holds more than 1 MB"):
        formats.cifar100(path)


def test_a_zip_directory_that_lies(tmp_path):
    path = tmp_path / "a.zip"
    name = "images_background/A/character01/0.png"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, bytes(50 << 20))
    size = struct.pack("<I", 50 << 20)
    path.write_bytes(path.read_bytes().replace(size, struct.pack("<I", 1000)))
    with pytest.raises(DataError, match="is damaged"):
        formats.Omniglot(path).images("A")
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", 1000), size))
    with pytest.raises(DataError, match="too large for a picture"):
        formats.Omniglot(path).images("A")


# --- pictures ---------------------------------------------------------------------------------------------


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Two classes of four pictures."""
    for name in "ab":
        (tmp_path / name).mkdir()
        for i in range(4):
            PIL.Image.new("L", (8, 8), 9 * i).save(tmp_path / name / f"{i}.png")
    return tmp_path


def saved(mode: str, form: str, size: tuple[int, int] = (8, 8), **options: Any) -> bytes:
    out = io.BytesIO()
    PIL.Image.new(mode, size).save(out, form, **options)
    return out.getvalue()


def large_png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")


def made(folder: Path, **options: Any) -> piaget.Task:
    return from_folder(folder, classes_per_task=2, fractions=(0.5, 0.25, 0.25), **options)[0]


EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n%%EOF\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (EPS, "no picture of PNG, JPEG"),
        (b"%PDF-1.4\n", "no picture of"),
        (saved("L", "ICO", (16, 16)), "no picture of"),
        (b"", "no picture of"),
        (saved("L", "PNG")[:45], "is damaged"),
        (saved("I;16", "PNG"), "more than 8 bits"),
        (saved("F", "TIFF"), "more than 8 bits"),
        (saved("L", "GIF", save_all=True, append_images=[PIL.Image.new("L", (8, 8), 9)]), "holds 2 pictures"),
        (large_png(12_000, 12_000), "12000 x 12000 pixels; expected at most 67,108,864"),
        (large_png(60_000, 60_000), "too large; expected at most 67,108,864 pixels"),
    ],
)
def test_files_that_are_no_pictures(content, message, pictures, monkeypatch):
    """Nothing that is called .png starts another program."""
    started: list[Any] = []
    monkeypatch.setattr(PIL.EpsImagePlugin, "gs_binary", "true")
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: started.append(a))
    (pictures / "a" / "0.png").write_bytes(content)
    with pytest.raises(DataError, match=message):
        made(pictures, size=(8, 8))
    assert started == []


@pytest.mark.parametrize(
    ("content", "channels"),
    [
        (saved("L", "JPEG"), 1),
        (saved("1", "TIFF"), 1),
        (saved("P", "PNG"), 3),
        (saved("CMYK", "JPEG"), 3),
        (saved("RGBA", "WEBP"), 3),
        (saved("RGB", "BMP"), 3),
        (saved("RGB", "PPM"), 3),
    ],
)
def test_pictures_are_known_by_their_content(content, channels, pictures):
    (pictures / "a" / "0.png").write_bytes(content)
    assert made(pictures).input_shape == (channels, 8, 8)


def test_pictures_that_change_after_they_were_listed(pictures):
    stream = from_folder(pictures, classes_per_task=2, fractions=(0.5, 0.25, 0.25))
    (pictures / "a" / "0.png").write_bytes(saved("L", "PNG", (9, 9)))
    with pytest.raises(DataError, match=r"0\.png has changed: it has 9 x 9 pixels now"):
        stream[0]


def test_odd_folders(pictures):
    (pictures / "a" / "x.png").mkdir()
    (pictures / "a" / "y.png").symlink_to("y.png")
    os.mkfifo(pictures / "a" / "z.png")
    assert made(pictures).classes == 2
    (pictures / "up").symlink_to(pictures)
    with pytest.raises(DataError, match="up is a link to a folder that it is in"):
        made(pictures)
    (pictures / "up").unlink()
    os.rename(os.fsencode(pictures / "a"), os.fsencode(pictures) + b"/\xff")
    with pytest.raises(TaskError, match="no text that can be written"):
        made(pictures)


@pytest.mark.parametrize(
    "options",
    [
        {"size": (10**9, 10**9)},
        {"size": ("a", "b")},
        {"size": (8.5, 8)},
        {"size": 8},
        {"tasks": 10**12, "reuse": True},
        {"train_size": 1},
        {"train_size": "x"},
    ],
)
def test_wrong_wishes_about_pictures(options, pictures):
    with pytest.raises(SettingError, match=next(iter(options))):
        from_folder(pictures, classes_per_task=2, fractions=(0.5, 0.25, 0.25), **options)
    with pytest.raises(DataError, match="3 is no path"):
        from_folder(3)  # type: ignore[arg-type]
    assert picture_files.MOST_PIXELS == 8192 * 8192  # as docs/streams.md says


# --- tables -----------------------------------------------------------------------------------------------


def table(**columns: Any) -> TableStream:
    right = {"g": list("aabb") * 10, "x": [1.5 * i for i in range(40)], "y": [0, 1] * 20}
    return from_table(pandas.DataFrame(right | columns), group="g", target="y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty; expected a row of names"),
        (b"\n \n", "is empty"),
        (b"g,x,y\n", "no rows"),
        (b"g,x,y\n\xe4,1,2\n", "is not in UTF-8: it holds the byte 0xe4"),
        ("g,x,y\na,1,2\n".encode("utf-16"), "is not in UTF-8"),
        (b"g,x,y\na,1\x00,2\n", "holds NUL bytes"),
        (b"g,x,y\na,1,2\na,1\n", "row 2 has 2 values"),
        (b"g,x,y\na,1,2,3\na,1,2,3\n", "row 1 has 4 values .*; expected 3"),
        (b"g,x,x\na,1,2\n", "column 'x' occurs twice"),
        (b'g,x,y\n"a,1,2\n', "row 1 has 1 values"),
        (b"g,x,y\na,1," + b"9" * 200_000 + b"\n", "field larger than"),
    ],
)
def test_files_that_are_no_tables(text, message, tmp_path):
    (tmp_path / "t.csv").write_bytes(text)
    with pytest.raises(DataError, match=message):
        from_table(tmp_path / "t.csv", group="g", target="y")


@pytest.mark.parametrize("content", [b"PAR1xxxx", b"PAR1" + bytes(100) + b"PAR1", b""])
def test_files_that_are_no_parquet(content, tmp_path):
    (tmp_path / "t.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"t\.parquet cannot be read"):
        from_table(tmp_path / "t.parquet", group="g", target="y")


def test_a_parquet_file_of_very_many_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("piaget.data.columns.LARGEST", 400)
    pandas.DataFrame({"g": ["a"] * 40, "x": 1, "y": 2}).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(DataError, match="holds 120 values; expected at most 100"):
        from_table(tmp_path / "t.parquet", group="g", target="y")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": [[1]] * 40}, "'x' holds a list in row 0"),
        ({"x": [{"a": 1}] * 40}, "'x' holds a dict"),
        ({"y": [b"a", b"b"] * 20}, "'y' holds a bytes"),
        ({"g": [(1,), (2,)] * 20}, "'g' holds a tuple"),
        ({"x": [1j * i for i in range(40)]}, "complex"),
        ({"x": pandas.to_timedelta(range(40), unit="s")}, "durations"),
        ({"x": [(1.7e308 - 1e305 * i) * (-1) ** i for i in range(40)]}, "too large to compute with"),
        ({"x": [1e300 if i == 3 else i for i in range(40)]}, "'x' holds (a value|values up to)"),
        ({"x": [10**400 + i for i in range(40)]}, "beyond all floating-point numbers"),
        ({"y": [10**30, 10**30 + 1] * 20}, "same as floating-point numbers"),
        ({"y": [float("inf"), 1.0] * 20}, "'y' holds inf"),
        ({"x": [f"1,{i % 5:03d}" for i in range(40)]}, "separate thousands"),
        ({"x": [f"1'234'{i:03d}" for i in range(40)]}, "separate thousands"),
        ({"x": ["2020-13-45", *["2020-01-01", "2020-01-02", "2020-01-03"] * 13]}, "'2020-13-45' in row 0"),
    ],
)
def test_columns_that_are_refused(columns, message):
    with pytest.raises(DataError, match=message):
        table(**columns)


@pytest.mark.parametrize("odd", ["9999-12-31", "0001-01-01"])
def test_dates_beyond_nanoseconds(odd):
    texts = [odd, *[f"2020-{i // 28 + 1:02d}-{i % 28 + 1:02d}" for i in range(39)]]
    for dates in (texts, [datetime.date.fromisoformat(text) for text in texts]):
        with pytest.warns(piaget.DataNote, match=f"column 'x' holds {odd}.*1 of 24 training rows are far"):
            made = table(x=dates)
        assert made.encoding.inputs == ["x"]
        assert torch.isfinite(torch.cat([s.x for t in made for _, s in t.splits()])).all()


def test_dates_of_several_time_zones():
    zones = ["2020-01-01T00:00:00Z", "2020-01-01T02:00:00+02:00"]  # the same moment
    texts = [*zones, *[f"2020-{i // 28 + 1:02d}-{i % 28 + 1:02d}T00:00:00Z" for i in range(38)]]
    made = table(x=texts)
    first, second = made.encoding.encode(pandas.DataFrame({"x": zones}))
    assert first == second


def test_large_labels_of_tables():
    assert table(y=np.array([2**63 + 1, 2**63 + 2] * 20, np.uint64))[0].labels == (2**63 + 1, 2**63 + 2)
    assert table(y=[1e17, 2e17] * 20)[0].kind == "regression"


@pytest.mark.parametrize("options", [{"categorical": 3}, {"encoding": "x"}, {"seed": -1}, {"fractions": 1}])
def test_wrong_wishes_about_tables(options):
    with pytest.raises(SettingError, match=next(iter(options))):
        from_table(pandas.DataFrame({"g": [1], "y": [1]}), group="g", target="y", **options)


def test_fingerprints_of_numpys_settings():
    """A task made with numpy's numbers is saved as one made with Python's."""
    one = make_task("t", n=8)
    other = piaget.Task("t", one.kind, one.train, one.validation, one.test, np.int64(3))  # type: ignore[arg-type]
    assert other.fingerprint() == one.fingerprint()


# --- the command line -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["0-999999999999", f"0-{10**20}", str(2**63), "²", "1-²", "٣", "9" * 5000, "3-1"]
)
def test_seeds_that_are_refused(text):
    with pytest.raises(argparse.ArgumentTypeError, match="seeds"):
        seed_list(text)


def test_seeds():
    assert seed_list("0-2,5,1,0007") == [0, 1, 2, 5, 7]
    assert len(seed_list("0-9999")) == 10_000
    assert seeds_text([0, 2**62]) == f"seeds 0,{2**62}"
    for text in ("²", "0", "-1", "1.5", "9" * 30, "9" * 5000):
        with pytest.raises(argparse.ArgumentTypeError, match="not a whole number, 1 or more"):
            positive(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a = " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
        (b"a = " + b"{a=" * 5000 + b"1" + b"}" * 5000, "nested too deeply"),
        (bytes(range(256)), "no TOML file"),
        (b"epochs = " + b"9" * 5000, "no TOML file"),
        (b"# \n" * (1 << 19), "more than 1,024 KB"),
        (b'seeds = "0-99999999999"', "too many seeds"),
        (b"categorical = 3", "expected names of columns"),
        (None, "cannot be read: Is a directory"),
    ],
)
def test_files_of_settings_that_are_refused(content, message, tmp_path, capsys):
    path = tmp_path / "a.toml"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    assert main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", ["²", "9" * 5000, "{[]: 1}", "(" * 5000, "[" * 150 + "]" * 150, "nan"])
def test_options_that_are_no_numbers(value, tmp_path, capsys):
    assert main(["data", "draw", "digits", "--option", f"tasks={value}", "--out", str(tmp_path)]) == 2
    assert "expected a whole number, 1 or more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("without_tasks", "it made a list without tasks"),
        ("nothing", "it made None"),
        ("dictionary", "it made a dict"),
        ("letters", "a str is in it"),
    ],
)
def test_streams_of_ones_own_that_are_none(name, message, tmp_path, capsys):
    assert main(["run", f"{__name__}:{name}", "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err


def without_tasks(seed: int) -> Any:
    return []


def nothing(seed: int) -> Any:
    return None


def dictionary(seed: int) -> Any:
    return {0: SPLIT}


def letters(seed: int) -> Any:
    return "abc"


def test_names_that_no_folder_can_have():
    for name in ("a" * 5000, "a\0b"):
        with pytest.raises(DataError, match="does not exist, or is no folder"):
            from_folder(name)
