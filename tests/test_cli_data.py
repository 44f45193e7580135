"""The commands on data, as a user runs them."""

import sys

import pytest

import piaget
from piaget.cli import main
from tests.data_files import write_everything


def test_data_list(small_data, capsys):
    assert main(["data", "list", "--data-dir", str(small_data)]) == 0
    text = capsys.readouterr().out
    for name in piaget.streams.STREAMS:
        assert f" {name} " in text
    assert "built in" in text
    assert "present" in text
    assert "CC BY-SA 3.0" in text
    assert "168.5 MB" in text
    assert str(small_data) in text


def test_data_list_without_files(tmp_path, capsys):
    assert main(["data", "list", "--data-dir", str(tmp_path)]) == 0
    assert "0 of 4" in capsys.readouterr().out


def test_data_verify(tmp_path, capsys):
    root = tmp_path / "data"
    write_everything(root)
    assert main(["data", "verify", "--data-dir", str(root)]) == 0
    text = capsys.readouterr().out
    assert "mnist: sound, but not the public files, by their hashes" in text
    assert "omniglot: sound" in text
    (root / "mnist" / "t10k-labels-idx1-ubyte.gz").write_bytes(b"gone wrong")
    (root / "cub" / "test_resnet18.mat").unlink()
    assert main(["data", "verify", "--data-dir", str(root)]) == 1
    text = capsys.readouterr().out
    assert "mnist: DAMAGED" in text
    assert "cub: MISSING cub/test_resnet18.mat (piaget data fetch cub)" in text
    assert main(["data", "verify", "landmine", "--data-dir", str(root)]) == 0


def test_data_fetch_of_what_is_there(small_data, capsys):
    assert main(["data", "fetch", "mnist", "objects", "--data-dir", str(small_data)]) == 0
    text = capsys.readouterr().out
    assert "train-images-idx3-ubyte.gz" in text
    assert "objects: comes with the package, nothing to fetch" in text


@pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")
@pytest.mark.parametrize(
    "name", ["objects", "digits", "landmine", "schools", "cub", "combined", "omniglot", "pixel-mnist"]
)
def test_data_draw(name, small_data, tmp_path):
    from PIL import Image

    assert (
        main(["data", "draw", name, "--data-dir", str(small_data), "--out", str(tmp_path), "--tasks", "2"])
        == 0
    )
    with Image.open(tmp_path / f"{name}.png") as picture:
        assert picture.width == 900
        assert len(set(picture.convert("L").tobytes())) > 10  # something is drawn


def test_a_package_that_is_not_installed(small_data, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    assert main(["data", "verify", "omniglot", "--data-dir", str(small_data)]) == 2
    said = capsys.readouterr()
    assert "pictures need the package pillow, which is not installed: pip install 'piaget[data]'" in said.err
    assert "DAMAGED" not in said.out


def test_verify_names_what_it_cannot_check(small_data, capsys):
    assert main(["data", "verify", "digits", "cub", "--data-dir", str(small_data)]) == 0
    said = capsys.readouterr().out
    assert "digits: comes with the package" in said
    assert "cub: sound" in said
