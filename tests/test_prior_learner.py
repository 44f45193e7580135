"""PriorLearner: the learner for tables, from learning to forgetting, and its files."""

import dataclasses
import json
import warnings

import numpy as np
import pandas
import polars
import pytest
import torch

import piaget
from piaget import prior
from piaget.errors import DataNote, LoadError, SettingError, TaskError, UnknownTaskError
from piaget.files import write_json
from piaget.streams import from_arrays, from_table
from tests.small import binary_tasks, image_tasks
from tests.tables import frame, only


def stream_of(target="cost", groups=6, seed=0, **options):
    return from_table(only(frame(groups, seed=seed), target), group="site", target=target, **options)


def suited(stream, **settings):
    learner = piaget.Learner.for_stream(stream, **settings)
    assert isinstance(learner, piaget.PriorLearner)
    return learner


def deep(stream, **settings):
    learner = piaget.Learner.for_stream(stream, **settings)
    assert isinstance(learner, piaget.Learner)
    return learner


def learned(target="cost", **settings):
    stream = stream_of(target)
    learner = suited(stream, **settings)
    learner.learn_all(stream)
    return stream, learner


@pytest.fixture(scope="module")
def values():
    return learned("cost")


@pytest.fixture(scope="module")
def classes():
    return learned("ill")


def score(rows, metric, task):
    return [row["value"] for row in rows if row["metric"] == metric and row["evaluated"] == task][-1]


def test_scores_are_of_the_answers(values, classes):
    stream, learner = values
    rows = learner.evaluate(stream)
    for task in stream:
        off = learner.predict(task.test.x, task.name) - task.test.y
        assert score(rows, "rmse", task.name) == pytest.approx(float(off.square().mean().sqrt()))
        assert score(rows, "r2", task.name) > 0.99
        assert score(rows, "rmse", task.name) < 3  # the outcome itself varies by hundreds, noise is 1
    stream, learner = classes
    rows = learner.evaluate(stream, "validation")
    for task in stream:
        p = learner.predict_proba(task.validation.x, task)
        right = p[torch.arange(len(p)), task.validation.y]
        assert score(rows, "loss", task.name) == pytest.approx(float(-right.log().mean()))
        said = learner.predict(task.validation.x, task)
        labels = [task.labels[i] for i in task.validation.y]
        assert score(rows, "accuracy", task.name) == pytest.approx(np.mean(said == labels))
    assert {row["method"] for row in rows} == {"prior/evidence/dynamic"}


def test_tasks_one_by_one_or_at_once_are_nearly_the_same(values):
    stream, at_once = values
    one_by_one = piaget.PriorLearner()
    for i, task in enumerate(stream):
        rows = one_by_one.learn(task, evaluate_on=stream[: i + 1])
        assert {row["evaluated"] for row in rows} == {"", *(t.name for t in stream[: i + 1])}
    assert one_by_one.tasks == at_once.tasks
    for task in stream:
        a, b = (learner.predict(task.test.x, task) for learner in (one_by_one, at_once))
        assert float((a - b).abs().max()) < 0.5


def test_asking_changes_nothing_that_is_learned_later():
    stream = stream_of("ill")
    quiet, asked = piaget.PriorLearner(), piaget.PriorLearner()
    for task in stream[:4]:
        quiet.learn(task)
        asked.learn(task)
        asked.predict(task.test.x, task)
    assert torch.equal(*(one.predict_proba(stream[2].test.x, stream[2]) for one in (quiet, asked)))


def as_enums(table):
    levels = {name: polars.Enum(sorted(set(table[name]))[::-1]) for name in ("site", "sex", "ill")}
    return polars.from_pandas(table).with_columns(polars.col(name).cast(to) for name, to in levels.items())


@pytest.mark.parametrize(
    "form",
    [
        lambda table: table.convert_dtypes(),
        lambda table: table.convert_dtypes(dtype_backend="pyarrow"),
        lambda table: table.astype(dict.fromkeys(("site", "sex", "ill"), "category")),
        as_enums,
    ],
)
def test_types_of_columns_make_no_difference(form):
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"site": np.repeat(["a", "b"], 30), "sex": rng.choice(["f", "m"], 60)})
    table["age"] = rng.integers(20, 90, 60)
    table["ill"] = np.where(table["age"] + rng.normal(0, 9, 60) > 55, "yes", "no")

    def answered(rows):
        learner = piaget.PriorLearner(trees=False)
        learner.learn_all(from_table(rows, group="site", target="ill"))
        return np.asarray(learner.predict_table(rows, proba=True)["probability of yes"], float)

    assert np.array_equal(answered(form(table)), answered(table))


@pytest.mark.parametrize("form", [pandas.DataFrame, polars.DataFrame, lambda t: t.to_dict("records")])
def test_rows_of_other_groups_are_noted(values, form, recwarn):
    _, learner = values
    new = only(frame(seed=9), "cost")
    own, there = new[new["site"] == "site 2"], int((new["site"] != "site 2").sum())
    learner.predict(form(own), "site 2")
    learner.predict(form(new.drop(columns="site")), "site 2")
    assert not recwarn
    for ask in (learner.predict, learner.interval):
        with pytest.warns(DataNote, match=rf"{there} of {len(new)} rows are of site .* predict_table"):
            ask(form(new), "site 2")


def test_rows_of_tables_and_intervals(values):
    stream, learner = values
    new = only(frame(seed=9), "cost")
    rows = new[new["site"] == "site 2"]
    assert np.array_equal(
        learner.predict(rows, "site 2"), learner.predict(stream.encoding.encode(rows), "site 2")
    )
    low, high = learner.interval(rows, "site 2", 0.9)
    inside = ((low < rows["cost"]) & (rows["cost"] < high)).mean()
    assert inside > 0.75
    wider = learner.interval(rows, "site 2", 0.99)
    assert (wider[0] < low).all()
    assert (wider[1] > high).all()
    with pytest.raises(SettingError, match=r"level=1.5; expected a number between 0 and 1"):
        learner.interval(rows, "site 2", 1.5)
    with pytest.raises(SettingError, match="they have values, no probabilities"):
        learner.predict_proba(rows, "site 2")


def test_a_task_that_was_never_seen_is_answered_less_surely(values, classes):
    _, learner = values
    rows = only(frame(seed=9), "cost").iloc[:10]
    with pytest.warns(DataNote, match="'site 77' was never seen: it is predicted from what the others share"):
        low, high = learner.interval(rows, "site 77")
    known = learner.interval(rows, "site 0")
    assert ((high - low) > 5 * (known[1] - known[0])).all()
    _, learner = classes
    with pytest.warns(DataNote, match="never seen"):
        p = learner.predict_proba(rows, "site 77")
    assert p.shape == (10, 2)
    with pytest.raises(SettingError, match="they have probabilities, no values and no intervals"):
        learner.interval(rows, "site 0")


def test_updates_of_a_regression_are_exact():
    """Rows in two parts, and all at once: the same sums, and so the same answers."""
    table = only(frame(), "cost")
    whole = from_table(table, group="site", target="cost", fractions=(0.8, 0, 0.2))
    half = table[table.groupby("site").cumcount() < 20]
    first = from_table(half, encoding=whole.encoding, fractions=(1, 0, 0))
    rest = from_table(table.drop(half.index), encoding=whole.encoding, fractions=(1, 0, 0))
    at_once = from_table(table, encoding=whole.encoding, fractions=(1, 0, 0))
    one, two = piaget.PriorLearner(trees=False), piaget.PriorLearner(trees=False)
    one.learn_all(at_once)
    two.learn_all(first)
    for task in rest:
        two.update(task)
    assert {name: lesson.rows for name, lesson in two.lessons.items()} == dict.fromkeys(two.tasks, 40)
    a, b = (prior.anew(learner.known) for learner in (one, two))
    for name in one.tasks:
        for x, y in zip(a.records[name].moments, b.records[name].moments, strict=True):
            assert torch.allclose(x, y, rtol=1e-8, atol=1e-8)
    x = at_once[3].train.x.double()
    assert torch.allclose(prior.values(a, x, "site 3").mean, prior.values(b, x, "site 3").mean, atol=1e-3)
    with pytest.raises(TaskError, match="these 20 rows were learned before; expected new ones"):
        two.update(rest[0])
    two.update(rest[0], again=True)
    assert two.lessons["site 0"].rows == 60
    with pytest.raises(TaskError, match="task 'site 0' is known; update it"):
        two.learn(rest[0])
    with pytest.raises(UnknownTaskError, match="task 'site 9' is not known; known tasks: 'site 0', "):
        two.update(stream_of(groups=10)[9])


@pytest.mark.parametrize("target", ["cost", "ill"])
def test_forgotten_as_if_it_had_never_been(target, tmp_path):
    stream, learner = learned(target, trees=False)
    learner.forget("site 2")
    others = piaget.PriorLearner(stream.labels, trees=False)
    others.learn_all([task for task in stream if task.name != "site 2"])
    assert learner.tasks == others.tasks
    x = stream[2].test.x
    for task in ("site 3", "site 2"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataNote)
            a, b = (one.answers(x, task) for one in (learner, others))
        found, expected = (one.values if target == "cost" else one.probabilities for one in (a, b))
        assert found is not None
        assert expected is not None
        assert torch.allclose(found, expected, rtol=1e-3, atol=1e-3)
    with pytest.raises(UnknownTaskError, match="'site 2' is not known"):
        learner.forget("site 2")
    for task in list(learner.tasks):
        learner.forget(task)
    assert learner.tasks == []
    with pytest.raises(UnknownTaskError, match="nothing is known yet"):
        learner.predict(x, "site 0")
    learner.save(tmp_path)
    learner = piaget.PriorLearner.load(tmp_path)
    learner.learn(stream[0])
    assert learner.tasks == ["site 0"]


def test_try_task_tells_what_fits(values):
    _, learner = values
    later = stream_of(groups=8)
    fits = from_table(only(frame(groups=8), "cost"), encoding=learner.encoding())[7]
    before = learner.tasks
    rows = learner.try_task(fits)
    assert score(rows, "rmse", "site 7") < 10
    odd = from_table(
        only(frame(groups=8), "cost").assign(cost=lambda t: 1000 - 30 * t["age"]), encoding=learner.encoding()
    )[7]
    worse = learner.try_task(odd)
    assert score(worse, "explained", "site 7") < score(rows, "explained", "site 7")
    assert score(worse, "explained", "site 7") < score(worse, "usually explained", "site 7")
    assert learner.tasks == before
    with pytest.raises(TaskError, match="encoded or scaled otherwise"):
        learner.try_task(later[7])
    with pytest.raises(TaskError, match="is known already"):
        learner.try_task(stream_of()[0])


def test_classes_of_all_groups():
    """A group may have some of the classes; answers are about all of them."""
    table = only(frame(groups=4), "ill").assign(ill=lambda t: t["ward"].where(t["site"] != "site 0", "red"))
    table.loc[table.index[:10], "ill"] = "blue"
    stream = from_table(table, group="site", target="ill")
    assert stream.labels == ["blue", "green", "red"]
    assert stream[0].labels == ("blue", "red")
    learner = suited(stream)
    learner.learn_all(stream)
    assert learner.labels == ("blue", "green", "red")
    x = stream[0].train.x
    assert learner.predict_proba(x, "site 0").shape == (len(x), 3)
    assert set(learner.predict(x.numpy(), "site 1")) <= {"blue", "green", "red"}
    rows = learner.evaluate(stream)
    assert score(rows, "accuracy", "site 1") > 0.8
    first = piaget.PriorLearner()
    first.learn(stream[0])
    with pytest.raises(TaskError, match="class 'green' is new; expected 'blue', 'red'"):
        first.learn(stream[1])
    with pytest.raises(SettingError, match="expected a list of two or more different"):
        piaget.PriorLearner(["a"])


def test_arrays_with_groups():
    rng = np.random.default_rng(0)
    x, groups = rng.normal(size=(300, 3)), np.repeat(["a", "b", "c"], 100)
    y = (x[:, 0] + 0.1 * rng.normal(size=300) > 0).astype(int)
    stream = from_arrays(x, y, groups)
    learner = suited(stream, seed=3)
    assert learner.seed == 3
    for task in stream:
        learner.learn(task)
    assert score(learner.evaluate(stream), "auc", "b") > 0.95
    assert learner.predict(torch.as_tensor(x[:5]), "a").dtype == torch.int64
    assert learner.predict(x[:5].tolist(), "a").tolist() == learner.predict(x[:5], "a").tolist()
    with pytest.raises(TaskError, match=r"inputs have shape \(5, 2\); expected \(samples, 3\)"):
        learner.predict(x[:5, :2], "a")
    with pytest.raises(TaskError, match="NaN or infinite"):
        learner.predict(x[:5] * np.nan, "a")


def test_a_learner_that_suits_the_stream():
    digits = piaget.stream("digits", seed=0, tasks=3)
    paper = deep(digits, epochs=2)
    assert paper.settings.initial_tasks == 3
    assert not paper.settings.encoder.learns  # the paper's for such pictures
    own = deep(stream_of(), structure="soft-ordering").settings
    assert own.stop == piaget.Patience(40)
    assert own.optimizer == piaget.Adam(weight_decay=0.01)
    chosen = deep(stream_of(), structure="soft-ordering", epochs=9, weight_decay=0.0).settings
    assert (chosen.stop, chosen.optimizer) == (piaget.NeverStop(), piaget.Adam())
    plain = deep(stream_of(), structure="linear", stop="never", weight_decay=0.0, epochs=3)
    assert plain.settings.method == "linear/er/compositional"
    assert isinstance(plain.settings.stop, piaget.NeverStop)
    assert deep(image_tasks(2)).settings.initial_tasks == 2
    with pytest.raises(SettingError, match=r"trees: a setting of the prior .* structure is given, too"):
        piaget.Learner.for_stream(stream_of(), structure="linear", trees=False)
    with pytest.raises(SettingError, match="setting 'tree' is not known"):
        piaget.Learner.for_stream(stream_of(), tree=False)


class Birds(list[piaget.Task]):
    seed = 0

    def __init__(self, name: str) -> None:
        super().__init__(binary_tasks(4))
        self.name = name


def test_names_of_streams_with_an_option():
    """Birds by other features are the paper's birds; data of one's own may be called like them."""
    paper = deep(Birds("cub/resnet18_approx")).settings
    assert (paper.components, paper.stop) == (piaget.Dense(256), piaget.NeverStop())
    suited(Birds("cub-of-mine"))


# --- files -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["cost", "ill"])
def test_saved_and_loaded_it_carries_on_exactly(target, tmp_path):
    stream = stream_of(target)
    learner = suited(stream)
    learner.learn_all(stream[:5])
    learner.save(tmp_path / "learner")
    loaded = piaget.load(tmp_path / "learner")
    assert isinstance(loaded, piaget.PriorLearner)
    assert repr(loaded) == repr(learner)
    for one in (learner, loaded):
        one.learn(stream[5])
    for task in stream:
        assert np.array_equal(learner.predict(task.test.x, task), loaded.predict(task.test.x, task))
    assert loaded.encoding("site 0") == stream.encoding
    with pytest.raises(LoadError, match=r"holds a prior learner: load it by piaget.PriorLearner.load"):
        piaget.Learner.load(tmp_path / "learner")
    empty = piaget.PriorLearner(["no", "yes"], rows=9)
    empty.save(tmp_path / "empty")
    assert repr(piaget.PriorLearner.load(tmp_path / "empty")) == "<PriorLearner: no task yet>"


def test_what_is_not_as_it_was_saved_is_refused(classes, tmp_path):
    _, learner = classes
    learner.save(tmp_path)
    path = tmp_path / "learner.json"
    text = path.read_text()
    path.write_text(text.replace('"site 1"', '"site 9"'))
    with pytest.raises(LoadError, match="damaged, or was edited"):
        piaget.PriorLearner.load(tmp_path)
    plain = json.loads(text)
    del plain["sha256"]
    changes = {
        "tasks that are known": lambda d: d["lessons"].pop(),
        "numbers of rows differ|marks": lambda d: d["lessons"][0].update(batches=[3]),
        "expected": lambda d: d["common"].update(labels=["a", "b", "c"]),
        "common": lambda d: d.update(common=7),
        "settings": lambda d: d.update(settings=None),
        "lacks|form": lambda d: d["knowledge"].update(form={"kind": "regression"}),
        "without": lambda d: d.update(knowledge=None),
        "rows is": lambda d: d["settings"].update(rows="many"),
    }
    for message, change in changes.items():
        data = json.loads(json.dumps(plain))
        change(data)
        write_json(path, data)  # with a right seal
        with pytest.raises(LoadError, match=message):
            piaget.PriorLearner.load(tmp_path)
    path.write_text(text)
    (tensors,) = tmp_path.glob("*.safetensors")
    tensors.write_bytes(tensors.read_bytes()[:-3])
    with pytest.raises(LoadError, match="not the file that was saved"):
        piaget.PriorLearner.load(tmp_path)
    with pytest.raises(LoadError, match="holds no learner"):
        piaget.load(tmp_path / "nothing")


def test_wrong_calls_leave_the_learner_as_it_was(values):
    stream, learner = values
    before = repr(learner)
    with pytest.raises(TaskError, match="a DataFrame is no task"):
        learner.learn(pandas.DataFrame({"a": [1]}))
    with pytest.raises(TaskError, match="is known, or given twice"):
        learner.learn_all(stream)
    with pytest.raises(TaskError, match="is binary; expected regression"):
        learner.learn(stream_of("ill", groups=7)[6])
    with pytest.raises(SettingError, match="split='all'; expected train, validation or test"):
        learner.evaluate(stream, "all")
    assert repr(learner) == before


def test_what_cannot_be_evaluated_is_said_before_a_task_is_learned(values):
    stream, _ = values
    learner = suited(stream)
    learner.learn(stream[0])
    other = from_arrays(np.zeros((20, 3)), np.arange(20) / 7, groups=[stream[0].name] * 20)[0]
    with pytest.raises(TaskError, match="inputs have shape"):
        learner.learn(stream[1], evaluate_on=[other])
    assert learner.tasks == [stream[0].name]


def test_rows_that_were_all_learned_before_are_no_update(values):
    stream, _ = values
    learner, task = suited(stream), stream[0]
    learner.learn(task)
    some = piaget.Split(task.train.x[:9], task.train.y[:9])
    part = dataclasses.replace(task, train=some, validation=None)
    with pytest.raises(TaskError, match="these 9 rows were learned before"):
        learner.update(part)
    learner.update(part, again=True)


def test_what_is_no_task_cannot_be_tried(values):
    with pytest.raises(TaskError, match="a str is no task"):
        values[1].try_task("site 0")
