"""A task's network as a plain module: it answers as the learner does, and can be exported."""

import io

import numpy as np
import pandas
import pytest
import torch

import piaget
from piaget import prior
from piaget.errors import DataNote
from piaget.method.structures import STRUCTURES
from piaget.streams import from_table
from tests.tables import frame, only
from tests.test_conformance import KINDS, NONLINEAR
from tests.test_prior import KINDS as PRIOR_KINDS, learned, made

PAIRS = [
    (structure, kind)
    for structure in STRUCTURES
    for kind in {"linear": ["linear"], "monolithic": list(KINDS)}.get(structure, NONLINEAR)
]


def small_learner(structure, kind, **settings):
    components, tasks = KINDS[kind]
    algorithm = {"monolithic": "no-components", "alone": "alone"}.get(structure, "dynamic")
    adaptation = "nft" if structure == "alone" else "er"
    settings = {"initial_components": 3, "initial_tasks": 3, "epochs": 2, "dtype": "float64", **settings}
    learner = piaget.Learner(structure, adaptation, algorithm, components=components, **settings)
    for task in tasks():
        learner.learn(task)
    return learner, tasks()


def answer(learner, x, task):
    """What the module is to answer."""
    regression = learner.record(task).kind == "regression"
    return learner.predict(x, task) if regression else learner.predict_proba(x, task)


def exported(module, x):
    """As it is after a save and a load, for any number of rows."""
    batch = torch.export.Dim("batch", min=2)
    file = io.BytesIO()
    torch.export.save(torch.export.export(module, (x,), dynamic_shapes=({0: batch},)), file)
    file.seek(0)
    return torch.export.load(file).module()


@pytest.mark.parametrize(("structure", "kind"), PAIRS)
def test_answers_are_the_learners(structure, kind):
    learner, tasks = small_learner(structure, kind)
    for task in tasks:
        x, module = task.test.x, learner.module(task)
        torch.testing.assert_close(module(x), answer(learner, x, task))
        assert not module.training
        torch.testing.assert_close(module.train()(x), answer(learner, x, task))  # there is no dropout
    out = exported(module.eval(), x)(x[:3])
    torch.testing.assert_close(out, answer(learner, x[:3], task))


def test_it_is_a_copy():
    learner, tasks = small_learner("soft-ordering", "dense")
    x, before = tasks[0].test.x, answer(learner, tasks[0].test.x, tasks[0])
    module = learner.module(tasks[0])
    module(x).sum().backward()  # it can be trained
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1)
    torch.testing.assert_close(answer(learner, x, tasks[0]), before)
    with pytest.raises(piaget.UnknownTaskError, match="'none' is not known"):
        learner.module("none")


def test_scaling_is_inside():
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 200, (40, 3, 4, 4), dtype=np.uint8)
    learner = piaget.Learner(initial_tasks=1, epochs=2, width=8)
    learner.learn(piaget.Task.from_arrays("pictures", pictures, np.arange(40) % 2))
    learner.learn(piaget.Task.from_arrays("values", pictures, rng.normal(1e4, 1e3, 40)))
    x = torch.from_numpy(pictures)
    for task in ("pictures", "values"):
        torch.testing.assert_close(learner.module(task)(x), answer(learner, x, task))
        torch.testing.assert_close(exported(learner.module(task), x)(x[:5]), answer(learner, x[:5], task))


def test_a_task_of_a_table():
    rng = np.random.default_rng(0)
    table = pandas.DataFrame(
        {"site": np.repeat(["a", "b"], 30), "x": rng.normal(1e6, 9, 60), "c": rng.choice(["u", "v"], 60)}
    )
    stream = piaget.streams.from_table(table.assign(y=table.x > 1e6), group="site", target="y")
    learner = piaget.Learner(initial_tasks=2, epochs=2, width=8)
    for task in stream:
        learner.learn(task)
    encoding = learner.encoding("a")
    assert encoding is not None
    rows = table[table.site == "a"]
    found = learner.module("a")(torch.from_numpy(encoding.encode(rows)))
    np.testing.assert_allclose(found.detach().numpy(), learner.predict_proba(rows, "a"), atol=1e-6)


# --- of a prior over structures ---------------------------------------------------------------------------


def prior_answer(known, x, task):
    if known.form.kind == "regression":
        return prior.values(known, x, task).mean
    return prior.probabilities(known, x, task)


@pytest.mark.parametrize(("kind", "classes"), PRIOR_KINDS)
@pytest.mark.parametrize("trees", [False, True])
def test_answers_are_the_priors(kind, classes, trees):
    data = made(kind, rows=150, bent=6.0 * trees)
    known = prior.settled(learned(data, kind, classes, trees=trees))
    assert (known.correction is not None) == trees
    for task in ("t0", "t2", "never seen", None):
        x, module = data["t0"][0], prior.module(known, task)
        torch.testing.assert_close(module(x), prior_answer(known, x, task))
        torch.testing.assert_close(module(x.float()), prior_answer(known, x.float(), task))
    torch.testing.assert_close(exported(module, x)(x[:3]), prior_answer(known, x[:3], task))


# --- ONNX ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["cost", "ill"])
def test_answers_are_the_prior_learners(target):
    stream = from_table(only(frame(), target), group="site", target=target)
    learner = piaget.Learner.for_stream(stream)
    assert isinstance(learner, piaget.PriorLearner)
    learner.learn_all(stream)
    x = torch.from_numpy(stream.encoding.encode(only(frame(), target)))
    ask = learner.predict if target == "cost" else learner.predict_proba
    for task in ("site 0", "site 5"):
        torch.testing.assert_close(learner.module(task)(x), ask(x, task))
    with pytest.warns(DataNote, match="never seen"):
        module = learner.module("none")
    said = learner.answers(x, None)
    torch.testing.assert_close(module(x), said.values if target == "cost" else said.probabilities)


def test_bytes_are_divided_in_a_prior_learners_module():
    x = torch.randint(0, 256, (60, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    y = (x[:, 0] > 120).long()
    learner = piaget.PriorLearner()
    learner.learn(piaget.Task.from_arrays("a", x, y))
    assert learner.common.divisor > 200
    torch.testing.assert_close(learner.module("a")(x), learner.predict_proba(x, "a"))
    torch.testing.assert_close(exported(learner.module("a"), x)(x[:3]), learner.predict_proba(x[:3], "a"))


def run_onnx(module, x, folder):
    """What ONNX Runtime answers for one row less."""
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    path, batch = folder / "module.onnx", torch.export.Dim("batch", min=2)
    torch.onnx.export(module, (x,), path, dynamo=True, dynamic_shapes=({0: batch},), verbose=False)
    session = runtime.InferenceSession(path)
    return session.run(None, {session.get_inputs()[0].name: x[1:].numpy()})[0]


@pytest.mark.filterwarnings("ignore")  # of other packages
@pytest.mark.parametrize(("structure", "kind"), PAIRS)
def test_onnx(structure, kind, tmp_path):
    # Its convolutions know no numbers of 64 bits.
    learner, tasks = small_learner(structure, kind, dtype="float32")
    task, x = tasks[-1], tasks[-1].test.x
    found = run_onnx(learner.module(task), x, tmp_path)
    np.testing.assert_allclose(found, answer(learner, x[1:], task), atol=1e-5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "classes"), PRIOR_KINDS)
def test_onnx_of_a_prior(kind, classes, tmp_path):
    data = made(kind, rows=120, bent=3.0)
    known = prior.settled(learned(data, kind, classes))
    x = data["t1"][0]
    found = run_onnx(prior.module(known, "t1"), x, tmp_path)
    np.testing.assert_allclose(found, prior_answer(known, x[1:], "t1"), atol=1e-6, rtol=1e-6)
