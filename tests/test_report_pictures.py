"""piaget report: pictures from coordinates, as the learner draws them."""

import base64

import numpy as np
import pytest
import torch

from piaget.cli import main
from piaget.learner import Learner
from piaget.report import explorer
from piaget.report.reading import read
from tests import page_schema
from tests.sample_report import data_of


@pytest.fixture(scope="module")
def pictures(tmp_path_factory, small_data):
    out = tmp_path_factory.mktemp("pixels")
    arguments = ["sweep", "pixel-mnist", "--quick", "--quiet", "--data-dir", str(small_data)]
    assert main([*arguments, "--out", str(out)]) == 0
    assert main(["report", str(out), "--quiet", "--data-dir", str(small_data)]) == 0
    return out


def test_the_pages_picture_is_the_learners(pictures, small_data):
    """What the page is told to compute, computed here from the numbers that it gets."""
    data = data_of((pictures / "report" / "report.html").read_text())
    page_schema.check(data)
    with_pictures = [explorer for explorer in data["explorers"] if explorer["network"]]
    assert len(with_pictures) == 2  # compositional and joint
    for one in with_pictures:
        run, network = data["runs"][one["run"]], one["network"]
        learner = Learner.load(next(p for p in pictures.rglob("learner") if run["folder"] in str(p)))
        flat = np.frombuffer(base64.b64decode(network["numbers"]), "<f4")
        k, width, pixels = one["components"], network["width"], int(np.prod(network["side"]))
        shapes = [(pixels, 2), (2, width), (width,), (k, width, width), (k, width), (width, 1), (1,)]
        parts, start = [], 0
        for shape in shapes:
            parts.append(flat[start : start + np.prod(shape)].reshape(shape))
            start += int(np.prod(shape))
        assert start == len(flat)
        x, encoder, bias, weight, biases, decoder, last = parts
        for task in one["tasks"]:
            h = x @ encoder + bias
            for weights in task["weights"]:
                outputs = np.maximum(np.einsum("koi,pi->pko", weight, h) + biases, 0)
                h = np.einsum("k,pko->po", weights, outputs)
            ink = 1 / (1 + np.exp(-(h @ decoder + last)))
            expected = learner.predict_proba(torch.from_numpy(x.copy()), task["name"])[:, 1]
            np.testing.assert_allclose(ink[:, 0], expected, atol=2e-4)
            assert len(base64.b64decode(task["truth"])) == pixels


def test_pictures_of_components(pictures):
    drawn = {path.name for path in (pictures / "report" / "figures").glob("component-*")}
    assert drawn == {f"component-{c}.{ending}" for c in range(4) for ending in ("svg", "pdf")}


def test_the_picture_at_the_learned_intensity_is_the_learners(pictures, small_data):
    run = next(run for run in read([pictures]).runs if run.parts[2] == "compositional")
    opened = explorer.open_run(run, str(small_data))
    task = opened.tasks[-1]
    learned = float(opened.learner.structures()[task.name][1, 2])
    result = explorer.pictures(opened, task, 1, [0.0, learned])
    expected = opened.learner.predict_proba(task.train.x, task)[:, 1].reshape(28, 28)
    np.testing.assert_allclose(result[2, 1], expected, atol=1e-5)
    assert not np.allclose(result[2, 0], expected)
