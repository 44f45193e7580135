"""The component explorer in a browser: sliders, scores and pictures."""

from __future__ import annotations

import base64
import math
import re

import pytest
import torch

from piaget.method.structures import SoftOrdering
from piaget.scoring import probing
from tests.sample_report import odd_report, sample_report, written


@pytest.fixture(scope="module")
def addresses(tmp_path_factory):
    return written(tmp_path_factory.mktemp("pages"), {"sample": sample_report(), "odd": odd_report()})


def test_the_rest_is_shared_among_the_components_that_a_task_may_use(browser):
    """Where all others have nothing: by the page as by Python, also for components that came later."""
    explorer = odd_report()["explorers"][0]
    task = explorer["tasks"][0]
    assert task["usable"] < explorer["components"]
    browser.open("odd")
    browser.draw("#explorer")
    browser.slide(0, 1, 0.4)
    browser.wait("return document.querySelector('.result svg').ariaLabel.includes('0.40')")
    label = browser.run("return document.querySelector('.result svg').ariaLabel")
    change = probing.at_intensity(SoftOrdering(), 0, 0.4, 0, task["usable"])
    expected = change(0, torch.tensor(task["weights"][0])).tolist()
    assert re.findall(r"\d\.\d\d", label) == [f"{weight:.2f}" for weight in expected]


def test_a_slider_changes_the_score(browser):
    report = sample_report()
    task = report["explorers"][0]["tasks"][0]
    browser.open()
    browser.draw("#explorer")
    learned = browser.wait("return document.querySelector('.score').textContent")
    assert learned == f"{task['score']:.1f}"
    browser.slide(1, 1, 0.85)
    assert task["scores"] is not None
    expected = sum(score or 0.0 for score in task["scores"][0][1][8:10]) / 2  # half way between 0.8 and 0.9
    browser.wait("return document.querySelector('.score').textContent !== arguments[0]", learned)
    assert float(browser.texts(".score")[0]) == pytest.approx(expected, abs=0.051)
    others = [weight for c, weight in enumerate(task["weights"][0]) if c != 1]
    weights = browser.run("return document.querySelector('.result svg').ariaLabel")
    shares = [float(number) for number in re.findall(r"0\.\d\d", weights)]
    assert shares[1] == 0.85
    assert shares[0] == pytest.approx(0.15 * others[0] / sum(others), abs=0.006)
    browser.slide(0, 3, 0.5)  # the first slider goes back
    slider = browser.one("input[aria-label='component 1 at depth 1']")
    assert float(slider.get_property("value")) == pytest.approx(task["weights"][0][1], abs=0.006)


def _ink(explorer, weights):
    """The picture, computed plainly."""
    import torch

    numbers = torch.frombuffer(
        bytearray(base64.b64decode(explorer["network"]["numbers"])), dtype=torch.float32
    )
    network = explorer["network"]
    width, k, pixels = network["width"], explorer["components"], math.prod(network["side"])
    shapes = [(pixels, 2), (2, width), (width,), (k, width, width), (k, width), (width, 1), (1,)]
    parts = torch.split(numbers, [math.prod(shape) for shape in shapes])
    x, encoder, bias, w, b, decoder, offset = (
        part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)
    )
    h = x @ encoder + bias
    for mix in weights:
        h = sum(mix[c] * torch.relu(h @ w[c].T + b[c]) for c in range(k))
    return torch.sigmoid(h @ decoder + offset)[:, 0].double()


def test_a_slider_changes_the_picture(browser):
    explorer = sample_report()["explorers"][1]
    task = explorer["tasks"][1]
    browser.open(view="explorer-of=1&explorer-task=1")
    browser.draw("#explorer")
    pixels = (
        "const c = document.querySelectorAll('.picture canvas')[arguments[0]];"
        "if (c.width !== 12) return null;"
        "return [...c.getContext('2d').getImageData(0, 0, 12, 12).data].filter((_, i) => i % 4 === 0)"
    )
    learned = browser.wait(pixels, 0)
    assert learned == browser.run(pixels, 1)
    expected = 255 * (1 - _ink(explorer, task["weights"]))
    assert max(abs(a - b) for a, b in zip(learned, expected.tolist(), strict=True)) <= 1

    browser.slide(0, 2, 0.9)
    browser.slide(2, 4, 0.0)
    weights = [list(mix) for mix in task["weights"]]
    for d, c, a in ((1, 0, 0.9), (3, 2, 0.0)):
        rest = sum(weights[d]) - weights[d][c]
        weights[d] = [a if o == c else (1 - a) * w / rest for o, w in enumerate(weights[d])]
    expected = 255 * (1 - _ink(explorer, weights))
    browser.wait("return document.querySelector('.picture output').textContent")
    browser.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    moved = browser.run(pixels, 0)
    assert moved != learned
    assert max(abs(a - b) for a, b in zip(moved, expected.tolist(), strict=True)) <= 1
    other = browser.one("input[aria-label='component 1 at depth 2']").get_property("value")
    assert float(other) == pytest.approx(weights[1][1], abs=0.006)

    browser.click(".explorer div > button")
    browser.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert browser.run(pixels, 0) == learned
    browser.run("document.querySelector('.strips').scrollIntoView()")
    assert len(browser.all(".strip canvas")) == 2 * 4 * 8
    browser.wait("return [...document.querySelectorAll('.strip canvas')].every((c) => c.width === 12)")
