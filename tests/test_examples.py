"""The examples run, and do what they say."""

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

import piaget
from examples import months, own_adaptation, own_component, own_stream, own_structure
from tests import test_avalanche, test_huggingface
from tests.notebooks import python_blocks as blocks
from tests.small import mixed_tasks


@pytest.mark.parametrize("example", [own_component, own_structure, own_adaptation, own_stream])
def test_example(example, capsys):
    learner = example.main(epochs=4)
    assert len(learner.tasks) == 6
    assert len(capsys.readouterr().out.splitlines()) >= 6


def test_pull_back_pulls():
    def drift(strength):
        learner = piaget.Learner(
            adaptation=own_adaptation.PullBack(strength), algorithm="joint", epochs=6, initial_epochs=1
        )
        tasks = piaget.stream("objects", seed=0)[:5]
        for task in tasks[:4]:
            learner.learn(task)
        before = learner.state.components["weight"].clone()
        learner.learn(tasks[4])
        return float((learner.state.components["weight"] - before).norm())

    assert drift(1e3) < 0.8 * drift(0.0)


def test_mixing_is_independent_per_component():
    learner = own_structure.main(epochs=2)
    weights = learner.structures()["objects-05"]
    assert not torch.allclose(weights.sum(0), torch.ones(4))


@pytest.fixture
def names(monkeypatch, tmp_path, small_data):
    """What the texts' Python blocks take for granted; with short streams and few epochs."""
    whole = piaget.stream

    def short(name: str, seed: int, **options: Any) -> Any:
        made = whole(name, seed, small_data, **options)
        return made if options else made[:6]

    monkeypatch.setattr(piaget, "stream", short)

    class Quick(piaget.Learner):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            if not isinstance(kwargs.get("algorithm"), piaget.Algorithm):
                kwargs["epochs"] = 2
            super().__init__(*args, **kwargs)

    monkeypatch.setattr(piaget, "Learner", Quick)
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"age": rng.normal(size=400), "score": rng.normal(size=400)})
    schools = table.assign(school=[f"school {i % 10}" for i in range(400)])
    schools.to_csv("scores.csv", index=False)
    for name in ("next_year", "january", "february"):
        schools.to_csv(f"{name}.csv", index=False)
    for site, label, i in itertools.product(("a", "b"), ("cat", "dog"), range(16)):
        picture = Image.fromarray(rng.integers(0, 256, (8, 8), dtype=np.uint8))
        for folder in (tmp_path / "sites" / site / label, tmp_path / "animals" / f"{site} {label} {i % 2}"):
            folder.mkdir(parents=True, exist_ok=True)
            picture.save(folder / f"{i}.png")
    sets = ("dataset_1", "dataset_2", "train_0", "train_1", "test_1", "train_2", "validation_2", "test_2")
    data = TensorDataset(torch.from_numpy(rng.normal(size=(30, 4))), torch.arange(30) % 2)
    return {
        "x": rng.normal(size=(30, 4)),
        "y": ["no", "yes", "maybe"] * 10,
        "new_x": rng.normal(size=(5, 4)),
        "groups": [1] * 15 + [2] * 15,
        "new_rows": table[:3],
        **dict.fromkeys(sets, data),
    }


@pytest.mark.filterwarnings("ignore::piaget.errors.DataNote")
def test_the_readme(names, tmp_path):
    """Every Python block of the README runs, in order."""
    assert len(blocks("README.md")) == 2
    x = names["x"]
    for block in blocks("README.md"):
        exec(block, names)
        if "x = stream[5].test.x" in block:
            assert names["learner"].tasks == [f"objects-{i:02d}" for i in range(6)]
            names["x"] = x
    assert (tmp_path / "my-learner" / "learner.json").is_file()


def test_the_page_on_streams(names):
    benchmark = test_avalanche.Benchmark(test_avalanche.stream_of([[0, 1], [4, 2]], 9))
    names |= {"piaget": piaget, "learner": piaget.Learner(), "benchmark": benchmark}
    test_huggingface.dataset().save_to_disk("saved")
    for block in blocks("docs/streams.md"):
        exec(block, names)
        if "from_huggingface" in block:
            assert [task.name for task in names["stream"]] == ["north", "south", "east"]
    assert len(names["later"]) == 10
    assert len(names["stream"]) == 2


def test_the_page_on_tables(monkeypatch, tmp_path):
    """The tables that it is about are those of an example."""
    monkeypatch.chdir(tmp_path)
    months.write(rows=20)
    assert set(pandas.read_csv("clinics.csv")["outcome"]) == {"none", "mild", "severe"}
    names: dict[str, Any] = {"piaget": piaget, "new_rows": pandas.read_csv("march.csv").drop(columns="site")}
    (block,) = blocks("docs/tables.md")
    with pytest.warns(piaget.DataNote, match="2 of 6 rows are of groups never seen, 'site 35'"):
        exec(block, names)
    assert len(names["learner"].tasks) == 33
    assert isinstance(names["learner"], piaget.PriorLearner)


def test_the_page_on_extending(names):
    """Every Python block runs, in order, and so do the examples that it names."""
    pieces = blocks("docs/extending.md")
    assert len(pieces) == 6
    for piece in pieces:
        exec(piece, names)
    assert names["learner"].settings.encoder.words == 50
    learner = piaget.Learner(acceptance=names["NobodyLoses"](), width=6, epochs=2, initial_tasks=2)
    rows = [row for task in mixed_tasks(4, n=15) for row in learner.learn(task)]
    assert {row["value"] for row in rows if row["metric"] == "adapted share"} <= {0.0, 0.25, 0.5, 1.0}
    text = (Path(__file__).parent.parent / "docs" / "extending.md").read_text()
    for example in re.findall(r"\.\./examples/(\w+\.py)", text):
        assert (Path(__file__).parent.parent / "examples" / example).is_file()


def test_the_pages_on_inference_and_on_libraries(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for page, count in (("docs/inference.md", 1), ("docs/components-library.md", 2)):
        stream = piaget.stream("digits", seed=0, train_size=40)
        names: dict[str, Any] = {"piaget": piaget, "stream": list(stream)}
        pieces = blocks(page)
        assert len(pieces) == count
        for piece in pieces:
            exec(piece, names)
    assert names["both"].components >= 8
