"""Damaged, wrong and hostile files: refused with what was wrong and what is expected."""

import gzip
import re
import tarfile
import warnings
import zipfile

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import piaget
from piaget.errors import DataError
from piaget.streams import formats
from piaget.streams.mat_file import read_mat
from piaget.streams.sources import SOURCES
from tests.data_files import idx, png, write_cifar, write_features, write_groups, write_idx, write_omniglot

X, Y = np.zeros((6, 28, 28)), np.arange(6)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(idx(X), mtime=0)[:-20], "damaged or cut short"),
        (idx(X)[:-3], "cut short or too long: 4,701 bytes of content; expected 4,704"),
        (idx(X) + b"more", "cut short or too long"),
        (idx(Y), "begins with 00000801; expected 00000803"),
        (b"<html>not found</html>", "no idx file"),
        (b"", "begins with nothing"),
        (b"\x1f\x8b" + b"not gzip at all", "damaged"),
        (bytes([0, 0, 8, 3]) + b"\xff" * 12, "cut short"),  # claims to be enormous
    ],
)
def test_bad_idx(tmp_path, content, message):
    path = tmp_path / "images"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        formats.read_idx(path, 3)
    assert str(path) in str(error.value)


def test_idx_packed_or_not(tmp_path):
    for content in (idx(X), gzip.compress(idx(X))):
        (tmp_path / "images").write_bytes(content)
        assert formats.read_idx(tmp_path / "images", 3).shape == (6, 28, 28)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train-labels-idx1": idx(np.arange(5))}, "has 200 images, but train-labels-idx1-ubyte.gz 5 labels"),
        ({"train-labels-idx1": idx(np.full(200, 11))}, "training label 11; expected 0 to 9"),
        (
            {"train-images-idx3": idx(np.zeros((200, 27, 28)))},
            r"images of \(27, 28\) pixels; expected \(28, 28\)",
        ),
    ],
)
def test_mnist_that_does_not_fit_together(tmp_path, change, message):
    write_idx(tmp_path / "mnist")
    for name, content in change.items():
        (tmp_path / "mnist" / f"{name}-ubyte.gz").write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        piaget.stream("mnist", 0, tmp_path)
    assert "piaget data fetch mnist" in str(error.value)


def test_bad_mat_files(tmp_path):
    path = tmp_path / "file.mat"
    read = SOURCES["landmine"].read
    for content in (b"", b"no mat file", b"MATLAB 5.0 MAT-file" + b"\0" * 200):
        path.write_bytes(content)
        with pytest.raises(DataError, match="damaged or no MATLAB file"):
            read(path)
    write_groups(path, 3, 9)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=re.escape(str(path))):
        read(path)
    path.write_bytes(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
    with pytest.raises(DataError, match=r"version 7\.3; expected version 7"):
        read(path)


@pytest.mark.parametrize("packed", [True, False])
def test_mat_files_as_scipy_reads_them(tmp_path, packed):
    rng = np.random.default_rng(0)
    content = {
        "a": rng.normal(size=(5, 3)),
        "b": rng.integers(0, 99, (2, 3, 4)).astype(np.uint8),
        "c": cells(rng.normal(size=(2, 2)), np.zeros((0, 3)), np.arange(3, dtype=np.int16)),
        "d": np.float32(2.5),
        "text": "of no interest",
    }
    path = tmp_path / "file.mat"
    scipy.io.savemat(path, content, do_compression=packed)
    keys = ("a", "b", "c", "d")
    ours, theirs = read_mat(path, keys), scipy.io.loadmat(path)
    for key in keys:
        assert ours[key].shape == theirs[key].shape
        assert ours[key].dtype == theirs[key].dtype
        for one, other in zip(ours[key].ravel(), theirs[key].ravel(), strict=True):
            assert np.array_equal(one, other)
            assert np.shape(one) == np.shape(other)


def cells(*arrays):
    out = np.empty((1, len(arrays)), object)
    for i, array in enumerate(arrays):
        out[0, i] = array
    return out


def groups(feature, label):
    return {"feature": cells(*[feature] * 29), "label": cells(*[label] * 29)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"feature": cells(np.ones((3, 9)))}, "has no 'label'; expected feature and label"),
        ({"X": 1, "y": 2}, "has no 'feature' and no 'label'"),
        ({"feature": np.ones((3, 9)), "label": np.ones((3, 1))}, "expected 29 of each, one a task"),
        ({"feature": cells(*[X] * 3), "label": cells(*[Y] * 3)}, "3 cells of features"),
        (groups(np.ones((3, 8)), np.ones((3, 1))), r"expected \(samples, 9\)"),
        (groups(np.ones((3, 9)), np.ones((4, 1))), "and 4 labels"),
        (groups(np.full((3, 9), np.nan), np.ones((3, 1))), "NaN"),
    ],
)
def test_mat_files_of_another_layout(tmp_path, content, message):
    scipy.io.savemat(tmp_path / "file.mat", content)
    with pytest.raises(DataError, match=message):
        SOURCES["landmine"].read(tmp_path / "file.mat")


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ({"X": np.ones((3, 4))}, "has no 'y'; expected X and y"),
        ({"X": np.ones((3, 4)), "y": np.arange(2)}, "as many rows as labels"),
        ({"X": np.ones((3, 5)), "y": np.arange(3)}, "has 4 features, but test_mine.mat 5"),
        ({"X": np.ones((3, 4)), "y": np.array([0, 1, 0.5])}, "class numbers from 0"),
        ({"X": np.ones((3, 4)), "y": np.array([0, 1, 99])}, "class 20 has no training sample"),
        ({"X": np.ones((3, 4)), "y": np.array([0, 1, 2])}, "class 3 has no test sample"),
        ({"X": scipy.sparse.csc_matrix(np.ones((3, 4))), "y": np.arange(3)}, "expected a full matrix"),
    ],
)
def test_features_that_do_not_fit_together(tmp_path, test, message):
    write_features(tmp_path / "cub", "mine", classes=20, features=4)
    scipy.io.savemat(tmp_path / "cub" / "test_mine.mat", test)
    with pytest.raises(DataError, match=message):
        piaget.stream("cub", 0, tmp_path, features="mine", tasks=2)


def test_bad_cifar(tmp_path):
    path = tmp_path / "cifar100" / "cifar-100-binary.tar.gz"
    write_cifar(path, train=1, test=1)
    whole = path.read_bytes()
    assert formats.cifar100(path).train_x.shape == (100, 3, 32, 32)
    for content, message in ((whole[:-5000], "damaged or cut short"), (b"nonsense", "damaged or cut short")):
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            formats.cifar100(path)
    write_cifar(path, train=1, test=1, skip=("test.bin",))
    with pytest.raises(DataError, match="expected the binary edition"):
        formats.cifar100(path)
    write_cifar(path, train=1, test=1, names=50)
    with pytest.raises(DataError, match="training label 99; expected 0 to 49"):
        formats.cifar100(path)
    write_cifar(path, train=1, test=1, names=120)
    with pytest.raises(DataError, match="class class_100 has no training sample"):
        formats.cifar100(path)


def test_links_in_an_archive_are_refused(tmp_path):
    path = tmp_path / "links.tar.gz"
    for target in ("nowhere", "train.bin", "/etc/passwd"):
        with tarfile.open(path, "w:gz") as archive:
            link = tarfile.TarInfo("cifar-100-binary/train.bin")
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
        with pytest.raises(DataError, match="is no plain file"):
            formats.cifar100(path)


def test_hostile_zip_paths_are_refused(tmp_path):
    for name in (
        "../../evil.png",
        "/etc/evil.png",
        "images_background/../../evil.png",
        "..\\evil.png",
        "c:/evil",
    ):
        write_omniglot(tmp_path / "omniglot")
        path = tmp_path / "omniglot" / "images_background.zip"
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(name, b"evil")
        with pytest.raises(DataError, match="leads out of the folder: refused"):
            piaget.stream("omniglot", 0, tmp_path)
        for file in (tmp_path / "omniglot").iterdir():
            file.unlink()
        (tmp_path / "omniglot").rmdir()


def test_bad_omniglot(tmp_path):
    write_omniglot(tmp_path / "omniglot")
    path = tmp_path / "omniglot" / "images_background.zip"
    whole = path.read_bytes()
    path.write_bytes(whole[:-400])
    with pytest.raises(DataError, match="damaged, cut short, or no zip file"):
        piaget.stream("omniglot", 0, tmp_path)
    inner = "images_background/Greek/character01/0001_01.png"
    for content, message in (
        (png(side=50), r"has \(50, 50\) pixels; expected 105 x 105"),
        (b"no picture", "is damaged: UnidentifiedImageError"),
        (b"\0" * (2 << 20), "too large"),
    ):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(inner, content)
            archive.writestr("__MACOSX/._whatever", b"")
        archive_ = formats.Omniglot(path)
        assert archive_.alphabets == ["Greek"]
        with pytest.raises(DataError, match=message):
            archive_.images("Greek")
        with pytest.raises(DataError, match=message):
            archive_.check()
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w") as archive:
        warnings.simplefilter("ignore")  # zipfile warns of what is tested here
        for _ in range(2):
            archive.writestr(inner, png())
    with pytest.raises(DataError, match="holds a picture twice, such as images_background/Greek"):
        formats.Omniglot(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", b"nothing here")
    with pytest.raises(DataError, match="holds no characters"):
        formats.Omniglot(path)


@pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")
def test_packed_again_in_another_order_it_is_the_same_stream(tmp_path):
    write_omniglot(tmp_path / "omniglot")
    before = [task.fingerprint() for task in piaget.stream("omniglot", 0, tmp_path)]
    for path in (tmp_path / "omniglot").iterdir():
        with zipfile.ZipFile(path) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in reversed(members):
                archive.writestr(name, data)
    assert [task.fingerprint() for task in piaget.stream("omniglot", 0, tmp_path)] == before
