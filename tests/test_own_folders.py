"""Streams from folders of pictures of one's own."""

import io

import numpy as np
import pytest
import torch
from PIL import Image

from piaget.errors import DataError, DataNote, SettingError
from piaget.streams import from_folder
from tests.small import labels_of

rng = np.random.default_rng(0)


def picture(path, size=(6, 5), mode="L", value=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (size[0], size[1], 3) if mode == "RGB" else size
    pixels = rng.integers(0, 256, shape, dtype=np.uint8) if value is None else np.full(shape, value, np.uint8)
    Image.fromarray(pixels).save(path)


def test_tasks_of_classes_of_pictures(tmp_path):
    for t in range(3):
        for c in ("cat", "dog"):
            for i in range(10):
                picture(tmp_path / f"site {t}" / c / f"{i}.png", value=80 * t + 40 * (c == "dog") + i)
    (tmp_path / "site 0" / "cat" / "notes.txt").write_text("no picture")
    (tmp_path / ".hidden").mkdir()
    stream = from_folder(tmp_path, name="sites")
    assert [t.name for t in stream] == ["site 0", "site 1", "site 2"]
    task = stream[1]
    assert (task.kind, task.labels, task.input_shape, task.stream) == (
        "binary",
        ("cat", "dog"),
        (1, 6, 5),
        "sites",
    )
    assert task.scaling.divisor == 255
    values = torch.cat([s.x for _, s in task.splits()])[:, 0, 0, 0].tolist()
    assert sorted(values) == sorted([80 + i for i in range(10)] + [120 + i for i in range(10)])
    for _, split in task.splits():
        assert ((split.x[:, 0, 0, 0] >= 120) == (split.y == 1)).all()
    assert {len(t.train) for t in from_folder(tmp_path, train_size=4)} == {4}
    with pytest.raises(SettingError, match="its tasks are given"):
        from_folder(tmp_path, classes_per_task=2)


def test_classes_cut_into_tasks(tmp_path):
    for c in range(7):
        for i in range(10):
            picture(tmp_path / f"class {c}" / f"{i}.png", mode="RGB" if c == 6 else "L", value=c)
    stream = from_folder(tmp_path, classes_per_task=2, seed=1)
    assert len(stream) == 3
    used = [label for task in stream for label in labels_of(task)]
    assert len(set(used)) == 6
    for task in stream:
        assert task.input_shape == (3, 6, 5)  # one class is in colour
        for _, split in task.splits():
            assert [f"class {v}" for v in split.x[:, 0, 0, 0].tolist()] == [
                labels_of(task)[c] for c in split.y.tolist()
            ]
    with pytest.raises(SettingError, match="7 classes: classes_per_task must say"):
        from_folder(tmp_path)


def test_a_reused_class_is_divided_once(tmp_path):
    for c in range(5):
        for i in range(10):
            picture(tmp_path / f"class {c}" / f"{i}.png")
    stream = from_folder(tmp_path, classes_per_task=3, tasks=9, reuse=True)
    assert len(stream) == 9
    samples: dict[str, set[bytes]] = {"train": set(), "validation": set(), "test": set()}
    for task in stream:
        for part, split in task.splits():
            samples[part] |= {x.numpy().tobytes() for x in split.x}
            assert torch.bincount(split.y).tolist() == [{"train": 6}.get(part, 2)] * 3  # every class alike
    assert {part: len(found) for part, found in samples.items()} == {
        "train": 30,
        "validation": 10,
        "test": 10,
    }


def test_classes_are_cut_alike_by_the_same_seed(tmp_path):
    for c in range(7):
        for i in range(10):
            picture(tmp_path / f"class {c}" / f"{i}.png")
    stream = from_folder(tmp_path, classes_per_task=2, seed=1)
    assert [t.fingerprint() for t in stream] == [
        t.fingerprint() for t in from_folder(tmp_path, classes_per_task=2, seed=1)
    ]
    other = from_folder(tmp_path, classes_per_task=2, seed=2)
    assert [t.fingerprint() for t in stream] != [t.fingerprint() for t in other]


def test_pictures_of_many_bits_are_refused(tmp_path):
    for c in ("a", "b"):
        for i in range(10):
            (tmp_path / "t" / c).mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.full((4, 4), 3000 + i, np.uint16)).save(tmp_path / "t" / c / f"{i}.png")
    with pytest.raises(DataError, match="more than 8 bits a pixel"):
        from_folder(tmp_path)


def test_pictures_of_different_sizes(tmp_path):
    for c in ("a", "b"):
        for i in range(10):
            picture(tmp_path / "t" / c / f"{i}.png", size=(6, 5 + (i == 3)))
    with pytest.raises(
        DataError, match=r"6 x 6 pixels, but .* has 6 x 5; expected one size: give size=\(6, 5\)"
    ):
        from_folder(tmp_path)
    assert from_folder(tmp_path, size=(8, 4))[0].input_shape == (1, 8, 4)


def test_folders_that_cannot_be_used(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        from_folder(tmp_path / "nowhere")
    with pytest.raises(DataError, match="holds no pictures"):
        from_folder(tmp_path)
    for i in range(10):
        picture(tmp_path / "t" / "only" / f"{i}.png")
    with pytest.raises(SettingError, match=r"size=\(0, 4\); expected \(height, width\)"):
        from_folder(tmp_path, size=(0, 4))
    picture(tmp_path / "t" / "a loose one.png")
    with pytest.raises(DataError, match="holds a single class"):
        from_folder(tmp_path)
    for i in range(10):
        picture(tmp_path / "t" / "other" / f"{i}.png")
    for c in ("only", "other"):
        picture(tmp_path / "small" / c / "0.png")
    with pytest.warns(DataNote, match="'small' is skipped: its 2 samples are too few"):
        assert len(from_folder(tmp_path)) == 1
    bad = tmp_path / "t" / "only" / "bad.png"
    bad.write_bytes(b"no picture")
    with pytest.raises(DataError, match="damaged, or no picture"):
        from_folder(tmp_path / "t", classes_per_task=2)
    whole = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (6, 5), dtype=np.uint8)).save(whole, "PNG")
    bad.write_bytes(whole.getvalue()[:60])
    with pytest.raises(DataError, match=r"bad\.png is damaged"):
        from_folder(tmp_path / "t", classes_per_task=2)[0]
