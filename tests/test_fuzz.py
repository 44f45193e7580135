"""Wrong input of every kind: an answer or a PiagetError, never anything else (tests/fuzzing.py says how)."""

import contextlib
import functools
import gzip
import io
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import scipy.io
import torch
from hypothesis import given, strategies as st

import piaget
from piaget.cli import main
from piaget.errors import DataError, PiagetError
from piaget.lab import runs
from piaget.lab.executors import InProcess
from piaget.method.choices import ADAPTATIONS, ALGORITHMS, SETTINGS, STRUCTURES
from piaget.method.description import to_json
from piaget.streams import STREAMS, from_arrays, from_datasets, from_folder, from_table, stream_options
from tests.data_files import idx, png
from tests.fuzzing import expect, fuzz, tried
from tests.mutations import Changed, mutated_bytes, mutated_ends, mutated_json_file, odd, odd_text
from tests.small import make_task, mixed_tasks
from tests.tables import frame

pytestmark = pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")  # examples are large
TINY: dict[str, Any] = {"epochs": 2, "width": 4, "depth": 1, "initial_components": 1, "initial_tasks": 1}
COMMON = "--epochs 2 --set width=4 --set depth=1 --set initial_components=2 --quiet"


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A place for one example."""
    with tempfile.TemporaryDirectory(prefix="piaget-fuzz-") as name:
        yield Path(name)


def failed(answer: Any) -> bool:
    return isinstance(answer, Exception | SystemExit)


def mostly(right: Any, wrong: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What is right, three times of four: what comes behind a check is to be tried, too."""
    return st.one_of(right, right, right, wrong)


@st.composite
def few(draw: st.DrawFn, options: dict[str, st.SearchStrategy[Any]]) -> dict[str, Any]:
    """At most two of some options."""
    names = draw(st.lists(st.sampled_from(sorted(options)), max_size=2, unique=True))
    return {name: draw(options[name]) for name in names}


# --- the API ----------------------------------------------------------------------------------------------

VALUES = {
    name: setting.about.values.shown.replace("N", "3").replace("X", "0.5").split("|")
    for name, setting in SETTINGS.items()
}


@st.composite
def learner_settings(draw: st.DrawFn) -> dict[str, Any]:
    """Right and wrong settings of a learner."""
    choices: dict[str, Any] = {
        "structure": STRUCTURES,
        "adaptation": ADAPTATIONS,
        "algorithm": ALGORITHMS,
        **VALUES,
    }
    names = draw(st.lists(st.sampled_from([*choices, "widht", "_x", ""]), max_size=4, unique=True))
    right = {name: st.sampled_from(choices[name]) if name in choices else odd() for name in names}
    return {name: draw(mostly(right[name], odd())) for name in names}


@fuzz(250)
@given(learner_settings())
def test_settings(settings):
    learner = tried(settings, lambda: piaget.Learner(**settings))
    if not failed(learner):
        tried(settings, lambda: json.dumps(to_json(learner.settings)))


@st.composite
def arrays(draw: st.DrawFn) -> Any:
    """Something like inputs, labels or groups."""
    length = draw(st.sampled_from([0, 1, 2, 7, 12]))
    shape = (length, *draw(st.sampled_from([(), (1,), (3,), (2, 2), (0,), (3, 4, 4)])))
    kind = draw(st.sampled_from(["float", "dtype", "labels", "list", "torch", "frame", "masked", "odd"]))
    rng = np.random.default_rng(draw(st.integers(0, 3)))
    values = rng.normal(size=shape)
    if kind == "float":
        values = values.astype(draw(st.sampled_from([np.float16, np.float32, np.float64, np.longdouble])))
        if values.size and draw(st.booleans()):
            with np.errstate(all="ignore"):
                values.flat[0] = draw(st.sampled_from([np.nan, np.inf, 1e30, 0]))
        return values
    if kind == "dtype":
        codes = ["u1", "i1", "i8", "u8", "?", "c8", "S3", "U3", "O", "M8[D]", "m8[s]"]
        return (abs(values) * 2).astype(int).astype(draw(st.sampled_from(codes)))
    if kind == "labels":
        leaf: Any = draw(
            st.sampled_from([["a", "b"], [0, 1], [1, None], ["a", 1], [True, False], [0.0, float("nan")]])
        )
        return [leaf[i % len(leaf)] for i in range(length)]
    if kind == "list":
        return draw(
            st.sampled_from([values.tolist(), [[1, 2], [3]], [[]], ["x"] * length, {"a": 1}, (1, "a")])
        )
    if kind == "torch":
        dtype = draw(
            st.sampled_from([torch.float32, torch.int8, torch.bool, torch.bfloat16, torch.complex64])
        )
        tensor = torch.from_numpy(values).to(dtype)
        return draw(st.sampled_from([tensor, tensor.to_sparse(), tensor.to("meta")]))
    if kind == "frame":
        return pandas.DataFrame(values.reshape(length, -1) if length else [])
    if kind == "masked":
        return np.ma.masked_less(values, 0)
    return draw(odd())


X = st.sampled_from(
    [np.random.default_rng(0).normal(size=(12, 3)), np.arange(36, dtype=np.uint8).reshape(12, 3)]
)
Y = st.sampled_from([list("ab") * 6, np.arange(12) % 3, np.linspace(0, 1, 12), [True, False] * 6])
GROUPS = st.sampled_from([["s", "t"] * 6, np.arange(12) // 6])
KIND = st.sampled_from(["binary", "multiclass", "regression"])
OPTIONS = {
    "kind": mostly(KIND, odd()),
    "fractions": mostly(st.sampled_from([(1, 0, 0), (0.5, 0.5, 0), (0.6, 0.2, 0.2)]), odd()),
    "seed": odd(),
    "divisor": odd(),
}
MORE = OPTIONS | {
    "validation": st.one_of(st.tuples(X, Y), st.tuples(arrays(), arrays()), odd()),
    "test": st.one_of(st.tuples(X, Y), st.tuples(arrays(), arrays()), odd()),
    "classes": odd(),
    "standardize": odd(),
    "stream": odd(),
}


@fuzz(300)
@given(mostly(st.text(max_size=4), odd()), mostly(X, arrays()), mostly(Y, arrays()), few(MORE))
def test_tasks_from_arrays(name, x, y, options):
    given = (name, x, y, options)
    task = tried(given, lambda: piaget.Task.from_arrays(name, x, y, **options))
    if not failed(task):
        tried(given, lambda: piaget.Learner(**TINY, algorithm="compositional").learn(task))


@fuzz(150)
@given(
    mostly(X, arrays()),
    mostly(Y, arrays()),
    mostly(GROUPS, arrays()),
    few(OPTIONS),
    st.booleans(),
    st.one_of(st.text(max_size=3), st.sampled_from([None, 1, (), b""])),
)
def test_streams_from_arrays(x, y, groups, options, paired, name):
    if paired:
        tried((x, y, name, options), lambda: from_arrays({name: (x, y), "b": (y, x)}, **options))
    else:
        tried((x, y, groups, options), lambda: from_arrays(x, y, groups, **options))


@fuzz(100)
@given(
    mostly(X, arrays()),
    mostly(Y, arrays()),
    few(OPTIONS),
    mostly(st.just([([0.0], 0), ([1.0], 1)] * 5), odd()),
)
def test_streams_from_datasets(x, y, options, other):
    def samples(x: Any, y: Any) -> list[Any]:
        with contextlib.suppress(Exception):
            return list(zip(x, y, strict=False))
        return [x, y]

    tried(
        (x, y, options, other),
        lambda: [task.kind for task in from_datasets([samples(x, y), other], **options)],
    )


@pytest.fixture(scope="module")
def learned() -> tuple[piaget.Learner, list[Any]]:
    """A learner that knows tasks of every kind, and one from a table."""
    tasks: list[Any] = mixed_tasks(3, n=9)
    tasks.append(from_table(frame(2, 20), group="site", target="ill", ignore="cost")[0])
    learner = piaget.Learner(**TINY)
    for task in tasks:
        learner.learn(task)
    return learner, tasks


@fuzz(150)
@given(st.data())
def test_asking_a_learner(learned, data):
    learner, tasks = learned
    x = data.draw(mostly(st.sampled_from([task.test.x for task in tasks]), arrays()), "x")
    task = data.draw(mostly(st.sampled_from([*tasks, *learner.tasks]), odd()), "task")
    for ask in (learner.predict, learner.predict_proba):
        tried((x, task), functools.partial(ask, x, task))
    tried(task, lambda: (learner.record(task), learner.encoding(task)))
    some = data.draw(st.one_of(st.just(task), st.lists(st.sampled_from(tasks), max_size=2), odd()), "tasks")
    split = data.draw(st.one_of(st.sampled_from(["train", "validation"]), odd()), "split")
    tried((some, split), lambda: learner.evaluate(some, split))


@fuzz(60)
@given(st.data())
def test_teaching_a_learner(data):
    tasks: list[Any] = [make_task(f"task {i}", kind, n=6) for i, kind in enumerate(["binary", "regression"])]
    learner = piaget.Learner(**TINY)
    learner.learn(tasks[0])
    task = data.draw(mostly(st.sampled_from(tasks), odd()), "task")
    no_function = odd().filter(lambda value: not callable(value))  # what that raises is the user's own
    some = st.one_of(st.lists(mostly(st.sampled_from(tasks), odd()), max_size=2), odd())
    named = data.draw(few({"evaluate_on": some, "every": odd(), "on_epoch": no_function}), "named")
    tried((task, named), lambda: learner.learn(task, **named))
    tried(
        (task, named), lambda: learner.try_task(task, **{k: v for k, v in named.items() if k == "on_epoch"})
    )
    members = data.draw(st.one_of(st.just([learner]), st.lists(odd(), max_size=2), odd()), "learners")
    tried((members, task, named), lambda: piaget.Cohort(members).learn([task], **named))
    tried(learner.tasks, lambda: learner.evaluate(tasks))  # it goes on, whatever was asked of it


# --- streams ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def no_downloads() -> Iterator[None]:
    """Files that are not there stay away."""

    def refuse(*arguments: Any) -> None:
        raise DataError("no downloads here")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("piaget.streams.fetch.fetch", refuse)
        patch.setattr("piaget.streams.fetch.download", refuse)
        yield


@fuzz(200)
@given(data=st.data())
def test_streams_by_name(small_data, no_downloads, data):
    name = data.draw(mostly(st.sampled_from([n for n in STREAMS if n != "omniglot"]), odd()), "name")
    known = stream_options(name) if isinstance(name, str) and name in STREAMS else []
    options = data.draw(st.dictionaries(st.sampled_from([*known, "widht"]), odd(), max_size=2), "options")
    seed = data.draw(mostly(st.just(0), odd()), "seed")
    given = (name, seed, options)
    stream = tried(given, lambda: piaget.stream(name, seed, small_data, **options))
    if not failed(stream):
        tried(given, lambda: stream[0])
        at = data.draw(st.one_of(st.sampled_from([-1, slice(1, 2)]), odd()), "at")
        tried((given, at), lambda: stream[at], also=(IndexError, TypeError))  # as of any sequence


@st.composite
def frames(draw: st.DrawFn) -> pandas.DataFrame:
    """A table with cells, columns and rows that are not what they were."""
    table = frame(3, 12)
    columns = [(name, table[name].tolist()) for name in table.columns]
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(columns) - 1))
        name, values = columns[at]
        kind = draw(
            st.sampled_from(["cell", "cell", "column", "drop", "rename", "double", "rows", "constant"])
        )
        if kind == "cell":
            values[draw(st.integers(0, len(values) - 1))] = draw(odd())
        elif kind == "column":
            cells = draw(st.lists(odd(), min_size=1, max_size=3))
            columns[at] = (name, [cells[i % len(cells)] for i in range(len(values))])
        elif kind == "constant":
            value = draw(st.sampled_from([0, "a", None, 1e300, pandas.Timestamp("2020-01-01")]))
            columns[at] = (name, [value] * len(values))
        elif kind == "drop" and len(columns) > 1:
            del columns[at]
        elif kind == "rename":
            columns[at] = (draw(st.sampled_from(["", "age", 1, None, ("a", "b")])), values)
        elif kind == "double":
            columns.insert(at, (name, list(values)))
        elif kind == "rows":
            few_rows = draw(st.integers(1, 5))
            columns = [(name, values[:few_rows]) for name, values in columns]
    series = [pandas.Series(values, dtype=object) for _, values in columns]
    made = pandas.concat(series, axis=1) if series else pandas.DataFrame()
    made.columns = pandas.Index([name for name, _ in columns], tupleize_cols=False)
    return made.infer_objects() if draw(st.booleans()) else made


COLUMN = st.one_of(st.sampled_from(["site", "age", "ward", "visits", "cost", "ill"]), odd())
TABLE_OPTIONS = {
    "group": COLUMN,
    "target": COLUMN,
    "kind": mostly(KIND, odd()),
    "split": COLUMN,
    "fractions": st.one_of(st.just((0.5, 0.25, 0.25)), odd()),
    "train_size": odd(),
    "categorical": st.one_of(COLUMN, st.lists(COLUMN, max_size=2)),
    "ignore": st.one_of(COLUMN, st.lists(COLUMN, max_size=2)),
    "on_unusable": st.one_of(st.sampled_from(["skip", "error"]), odd()),
    "shuffle": odd(),
    "encoding": odd(),
    "seed": odd(),
    "name": odd(),
}


@fuzz(200)
@given(mostly(frames(), odd()), st.sampled_from(["cost", "ill"]), few(TABLE_OPTIONS))
def test_tables(table, target, changes):
    options = {"group": "site", "target": target} | changes
    stream = tried((table, options), lambda: from_table(table, **options))
    if not failed(stream):
        tried((table, options), lambda: piaget.Learner(**TINY, algorithm="compositional").learn(stream[0]))


CSV = frame(3, 12).to_csv(index=False).encode()


@fuzz(150)
@given(mutated_bytes(CSV), st.sampled_from([".csv", ".tsv", ".parquet", ".txt", ""]))
def test_table_files(changed, suffix):
    with folder() as place:
        path, content = place / f"table{suffix}", changed.how
        path.write_bytes(changed.content)
        stream = tried((suffix, content), lambda: from_table(path, group="site", target="ill"))
        if not failed(stream):
            tried(
                (suffix, content), lambda: piaget.Learner(**TINY, algorithm="compositional").learn(stream[0])
            )


@fuzz(100)
@given(mostly(frames(), odd()), st.one_of(st.none(), mutated_bytes(CSV)))
def test_new_rows_of_a_table(learned, table, content):
    learner, tasks = learned
    name = tasks[-1].name
    tried(table, lambda: learner.predict(table, name))
    if content is not None:
        with folder() as place:
            (place / "new.csv").write_bytes(content.content)
            tried(content.how, lambda: learner.predict(str(place / "new.csv"), name))


# --- files of data ----------------------------------------------------------------------------------------


def _files(root: Path) -> dict[str, list[Path]]:
    """The files of each source, as a small data folder has them."""
    return {
        "mnist": sorted((root / "mnist").iterdir()),
        "landmine": [root / "ella" / "landminedata_withgroups.mat"],
        "cub": sorted((root / "cub").iterdir()),
        "cifar100": [root / "cifar100" / "cifar-100-binary.tar.gz"],
        "omniglot": sorted((root / "omniglot").iterdir()),
    }


@fuzz(60)
@given(data=st.data())
def test_files_of_streams(small_data, no_downloads, data):
    """Also such as are compressed: what is in them is changed, and they are packed again."""
    files = _files(small_data)
    name = data.draw(st.sampled_from(sorted(files)), "stream")
    source = data.draw(st.sampled_from(files[name]), "file")
    content = source.read_bytes()
    if source.suffix == ".gz" and data.draw(st.booleans(), "inside"):
        inside = data.draw(mutated_ends(gzip.decompress(content)), "faults")
        changed = Changed(gzip.compress(inside.content, 1), f"inside: {inside.how}")
    else:
        changed = data.draw(mutated_ends(content), "faults")
    with folder() as place:
        for path in files[name]:
            (place / path.parent.name).mkdir(exist_ok=True)
            (place / path.parent.name / path.name).write_bytes(
                changed.content if path == source else path.read_bytes()
            )
        given = (name, source.name, changed.how)
        stream = tried(given, lambda: piaget.stream(name, 0, place))
        if not failed(stream):
            tried(given, lambda: stream[0])


MAT_VALUES = [
    np.zeros((3, 2)),
    np.array([["text"]]),
    np.zeros((0, 0)),
    3,
    {"a": 1},
    np.array([[1j]]),
    np.array([None]),
]


@fuzz(40)
@given(
    st.lists(st.sampled_from(MAT_VALUES), min_size=1, max_size=3),
    st.sampled_from(["feature", "label", "X", "y"]),
)
def test_other_things_in_mat_files(no_downloads, values, name):
    """Right files of MATLAB's with something else in them."""
    cells = np.empty((1, len(values)), object)
    for i, value in enumerate(values):
        cells[0, i] = value
    with folder() as place:
        for content in (cells, values[0]):
            names = {"feature": cells, "label": cells, "X": values[0], "y": values[0]} | {name: content}
            for path in (
                place / "ella" / "landminedata_withgroups.mat",
                place / "cub" / "train_resnet18.mat",
                place / "cub" / "test_resnet18.mat",
            ):
                path.parent.mkdir(exist_ok=True)
                with contextlib.suppress(TypeError, ValueError):  # scipy cannot write everything
                    scipy.io.savemat(path, names)
            for stream in ("landmine", "cub"):
                tried((name, values), functools.partial(_first_task, stream, place))


def _first_task(name: str, data_dir: Path) -> piaget.Task:
    return piaget.stream(name, 0, data_dir)[0]


PICTURES = [png(8, i, "RGB" if i % 2 else "L") for i in range(4)]
FOLDER_OPTIONS = {
    "classes_per_task": odd(),
    "tasks": odd(),
    "reuse": odd(),
    "fractions": odd(),
    "train_size": odd(),
    "size": mostly(st.sampled_from([(4, 4), (8, 8)]), odd()),
    "seed": odd(),
    "name": odd(),
}


@fuzz(80)
@given(st.data(), few(FOLDER_OPTIONS))
def test_folders_of_pictures(data, options):
    with folder() as place:
        deep = data.draw(st.booleans(), "task/class")
        for i in range(12):
            inside = place / (f"t{i % 2}" if deep else "") / f"c{i % 3}"
            inside.mkdir(parents=True, exist_ok=True)
            (inside / f"{i}.png").write_bytes(PICTURES[i % 4])
        hurt = data.draw(st.one_of(st.none(), mutated_bytes(PICTURES[0])), "picture")
        if hurt is not None:
            name = data.draw(st.sampled_from(["0.png", "x.png", "x.jpg", "x.gif", "x.pgm"]), "name")
            (place / ("t0/c0" if deep else "c0") / name).write_bytes(hurt.content)
        if not deep and data.draw(st.booleans(), "cut in two"):
            options = {"classes_per_task": 3} | options
        where = data.draw(mostly(st.just(place), odd()), "folder")
        given = (where, deep, options, hurt and hurt.how)
        stream = tried(given, lambda: from_folder(where, **options))
        if not failed(stream):
            tried(given, lambda: stream[0])


@fuzz(40)
@given(mutated_bytes(gzip.compress(idx(np.zeros((3, 2, 2))))), st.sampled_from([1, 3]))
def test_idx_files(content, dimensions):
    from piaget.streams.formats import read_idx

    with folder() as place:
        (place / "file").write_bytes(content.content)
        tried((dimensions, content.how), lambda: read_idx(place / "file", dimensions))


# --- learners on disk -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(learned, tmp_path_factory) -> list[Path]:
    """Learners that know something, that wait, and that were interrupted."""
    root = tmp_path_factory.mktemp("saved")
    learned[0].save(root / "table")
    tasks: list[Any] = mixed_tasks(5, n=6)
    for adaptation in ("er", "ewc"):
        learner = piaget.Learner(adaptation=adaptation, **(TINY | {"initial_tasks": 2, "epochs": 3}))
        learner.learn(tasks[0])
        learner.save(root / f"{adaptation} waits")
        learner.learn(tasks[1])

        def stop(report: Any) -> None:
            raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            learner.learn(tasks[2], on_epoch=stop)
        learner.save(root / f"{adaptation} stopped")
    return sorted(root.iterdir())


@fuzz(250)
@given(data=st.data())
def test_learners_on_disk(saved, learned, data):
    source = data.draw(st.sampled_from(saved), "learner")
    with folder() as place:
        shutil.copytree(source, place / "learner")
        (tensors,) = (place / "learner").glob("*.safetensors")
        hurt = data.draw(st.sampled_from([place / "learner" / "learner.json"] * 4 + [tensors]), "file")
        content = hurt.read_bytes()
        changed = data.draw(
            mutated_ends(content) if hurt == tensors else mutated_json_file(content), "faults"
        )
        hurt.write_bytes(changed.content)
        given = (source.name, hurt.name, changed.how)
        learner = tried(given, lambda: piaget.Learner.load(place / "learner"))
        if failed(learner):
            named = str(place) in str(learner) or not isinstance(learner, PiagetError)
            expect(given, named, "an error that does not say which learner", str(learner))
            return
        # What is loaded answers, or says why not.
        tasks = learned[1] if source.name == "table" else mixed_tasks(5, n=6)
        tried(given, lambda: learner.predict(tasks[0].test.x, tasks[0].name))
        tried(given, lambda: learner.evaluate(tasks))
        tried(given, lambda: learner.learn(tasks[2], on_epoch=lambda report: True))
        tried(given, lambda: learner.save(place / "again"))


@pytest.fixture(scope="module")
def saved_priors(tmp_path_factory) -> list[Path]:
    """Learners of tables, of values and of classes."""
    root = tmp_path_factory.mktemp("priors")
    for target, other in (("ill", "cost"), ("cost", "ill")):
        learner = piaget.PriorLearner()
        learner.learn_all(from_table(frame(3, 20), group="site", target=target, ignore=other))
        learner.save(root / target)
    return sorted(root.iterdir())


@fuzz(100)
@given(data=st.data())
def test_prior_learners_on_disk(saved_priors, data):
    source = data.draw(st.sampled_from(saved_priors), "learner")
    rows = frame(4, 3)
    with folder() as place:
        shutil.copytree(source, place / "learner")
        (tensors,) = (place / "learner").glob("*.safetensors")
        hurt = data.draw(st.sampled_from([place / "learner" / "learner.json"] * 4 + [tensors]), "file")
        content = hurt.read_bytes()
        changed = data.draw(
            mutated_ends(content) if hurt == tensors else mutated_json_file(content), "faults"
        )
        hurt.write_bytes(changed.content)
        given = (source.name, hurt.name, changed.how)
        learner = tried(given, lambda: piaget.PriorLearner.load(place / "learner"))
        if failed(learner):
            named = str(place) in str(learner) or not isinstance(learner, PiagetError)
            expect(given, named, "an error that does not say which learner", str(learner))
            return
        tried(given, lambda: learner.predict(rows, "site 1"))
        tried(given, lambda: learner.learn_table(rows, skip_known=True))
        tried(given, lambda: learner.learn_table(rows))
        tried(given, lambda: learner.forget("site 0"))
        tried(given, lambda: learner.save(place / "again"))


# --- run folders ------------------------------------------------------------------------------------------


def _stop(*arguments: Any) -> Any:
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def lab(tmp_path_factory) -> Path:
    """A finished run of a table, an interrupted one, and a sweep; two runs each."""
    root = tmp_path_factory.mktemp("lab")
    frame(6, 12).to_csv(root / "table.csv", index=False)
    table = f"run --table {root}/table.csv --group site --target ill --ignore cost --seeds 0-1 {COMMON}"
    assert main([*table.split(), "--out", str(root / "done")]) == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("piaget.lab.executors.Processes", InProcess)
        learn, calls = piaget.Cohort.learn, iter(range(100))

        def two(self, *arguments: Any, **named: Any) -> Any:
            return _stop() if next(calls) == 5 else learn(self, *arguments, **named)

        patch.setattr(piaget.Cohort, "learn", two)
        digits = f"run digits --seeds 0-1 --option tasks=6 --option train_size=12 {COMMON}"
        assert main([*digits.split(), "--out", str(root / "stopped")]) == 130
        patch.setattr(piaget.Cohort, "learn", learn)
        sweep = f"sweep digits --seeds 2 --algorithms joint --option tasks=4 --option train_size=12 {COMMON}"
        assert main([*sweep.split(), "--out", str(root / "sweep")]) == 0
    return root


KEPT = ("run.json", "rows.csv", "checkpoint*.json", "*.safetensors", "sweep.json", "learner.json")


@st.composite
def hurt_lab(draw: st.DrawFn, root: Path) -> tuple[Path, Path, str]:
    """A copy of a folder of runs in which one file is not what it was; which, and how."""
    place = Path(tempfile.mkdtemp(prefix="piaget-fuzz-"))
    shutil.copytree(root, place / "lab")
    kept = [path for pattern in KEPT for path in sorted((place / "lab").rglob(pattern))]
    path = draw(st.sampled_from(kept))
    content = path.read_bytes()
    changed = draw(mutated_json_file(content) if path.suffix == ".json" else mutated_ends(content))
    path.write_bytes(changed.content)
    return place / "lab", path, f"{path.relative_to(place / 'lab')}: {changed.how}"


def command(given: Any, *words: Any) -> tuple[int, str, str]:
    """What a command says, in this process: never a traceback."""
    out, err = io.StringIO(), io.StringIO()

    def call() -> int:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            return main([str(word) for word in words])

    answer = tried((words, given), call)
    code = answer if isinstance(answer, int) else 2
    shown = err.getvalue()
    # 1: something was left out or failed, and the rest was done.
    expect((words, given), code in (0, 1, 2, 130), f"exit code {code}", shown)
    expect((words, given), "Traceback" not in shown, "a traceback", shown)
    if isinstance(answer, int) and code in (1, 2):
        told = "piaget: " in shown or "FAILED" in shown
        expect((words, given), told, f"exit code {code} without a word", shown)
    return code, out.getvalue(), shown


@pytest.fixture
def no_training(monkeypatch) -> None:
    """Everything but the learning itself, which would take its time."""
    monkeypatch.setattr(runs, "_learn", _stop)
    monkeypatch.setattr("piaget.lab.executors.Processes", InProcess)


@pytest.fixture
def no_figures(monkeypatch) -> None:
    """They are made, but not written: that takes seconds."""
    monkeypatch.setattr("piaget.report.write._save", lambda *given: None)


@fuzz(60)
@given(data=st.data())
def test_looking_at_runs(lab, no_training, data):
    """One bad run does not hide the others."""
    root, hurt, given = data.draw(hurt_lab(lab), "hurt")
    try:
        code, out, err = command(given, "status", root, "--json")
        expect(given, code == 0, "status fails", err)
        if code == 0:
            shown = out.replace("\\\\", "\\")
            others = [path.parent for path in root.rglob("run.json") if path.parent not in hurt.parents]
            expect(given, all(str(path) in shown for path in others), "status does not show all runs")
            json.loads(out)
        for part in ("done", "stopped", "sweep"):
            command(given, "resume", root / part, "--quiet")
        command(given, "predict", root / "done" / "seed-0", root / "table.csv", "--out", root / "p.csv")
    finally:
        shutil.rmtree(root.parent)


@fuzz(3)
@given(data=st.data())
def test_reports_and_exports_of_runs(lab, no_figures, data):
    """One bad run does not keep the others from being shown."""
    root, _, given = data.draw(hurt_lab(lab), "hurt")
    try:
        for words in (
            ("report", root, "--out", root / "report", "--quiet"),
            ("export", "tensorboard", root, "--out", root / "board"),
        ):
            code, _, err = command(given, *words)
            expect((words, given), code in (0, 1), f"{words[0]} fails for all runs", err)
    finally:
        shutil.rmtree(root.parent)


# --- the command line -------------------------------------------------------------------------------------

COMMANDS = ("run", "sweep", "resume", "report", "predict", "list", "status", "export", "data")
LEFT_OUT = {"--follow", "--executor", "--address", "--help"}  # they would wait, or start a cluster


@pytest.fixture(scope="module")
def vocabulary() -> dict[str, list[str]]:
    """The flags of each command, by its help."""
    flags = {}
    for name in COMMANDS:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), pytest.raises(SystemExit):
            main([name, "--help"])
        flags[name] = sorted(set(re.findall(r"--[a-z][a-z-]*", out.getvalue())) - LEFT_OUT)
    return flags


WORDS = [
    *STREAMS,
    *STRUCTURES,
    *ADAPTATIONS,
    *ALGORITHMS,
    *(value for values in VALUES.values() for value in values),
    *(
        "tensorboard",
        "mlflow",
        "draw",
        "verify",
        "all",
        "schedule",
        "linear",
        "components",
        "no:thing",
        "os:getcwd",
    ),
    *(
        "0-2",
        "2-0",
        "0,1",
        "0-²",
        "1-",
        "1,,2",
        "width=8",
        "=",
        "width=",
        "options.tasks=5",
        "adaptation.size=5",
    ),
    *(
        "tasks=5",
        "train_size=-1",
        "tasks=1e9",
        "x=[",
        "file.toml",
        "table.csv",
        "missing.toml",
        "seed-0",
        ".",
        "/nowhere",
    ),
]


@fuzz(400)
@given(data=st.data())
def test_command_line(vocabulary, no_training, no_downloads, data):
    with folder() as place, contextlib.chdir(place):
        (place / "table.csv").write_bytes(CSV)
        (place / "file.toml").write_text('stream = "digits"\nepochs = 1\n')
        name = data.draw(st.sampled_from(COMMANDS), "command")
        flags = st.sampled_from(vocabulary[name] or ["--json"])
        # Nothing outside of its folder is to be searched, or written to.
        value = st.one_of(
            st.sampled_from(WORDS), odd_text().filter(lambda text: not re.search(r"[/~]|\.\.", text))
        )
        pairs = st.tuples(flags, value).map(list)
        rest = st.lists(st.one_of(pairs, pairs, value.map(lambda word: [word])), max_size=4)
        words = [word for few in data.draw(rest, "words") for word in few]
        first = data.draw(
            st.one_of(st.just(["digits"]), st.just([]), value.map(lambda word: [word])), "first"
        )
        command(None, name, *first, *words)


TOML_KEYS = [
    "stream",
    "seeds",
    "every",
    "out",
    "table",
    "group",
    "structure",
    "adaptation",
    "algorithm",
    *SETTINGS,
]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(k))} = {_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, float):
        return str(value)
    return json.dumps(str(value) if not isinstance(value, bool | int | str) else value)


@fuzz(150)
@given(st.data())
def test_toml_files(no_training, no_downloads, data):
    plain = st.one_of(
        st.sampled_from(
            [True, -1, 0, 3, 10**25, 0.5, float("nan"), "", "er", "²", [], ["a"], {}, {"name": "er"}]
        ),
        st.sampled_from([{"name": 3}, {"size": 5}, {"name": "er", "size": "x"}, {"": 1}, [[1]], "no:thing"]),
    )
    content = data.draw(
        st.dictionaries(st.sampled_from([*TOML_KEYS, "options", "a.b"]), plain, max_size=3), "content"
    )
    text = "".join(
        f"{json.dumps(key)} = {_toml(value)}\n" for key, value in ({"stream": "digits"} | content).items()
    )
    raw = data.draw(st.one_of(st.none(), mutated_bytes(text.encode())), "bytes")
    with folder() as place:
        (place / "file.toml").write_bytes(text.encode() if raw is None else raw.content)
        given = text if raw is None else (text, raw.how)
        command(given, "run", place / "file.toml", "--epochs", 2, "--out", place / "out")
