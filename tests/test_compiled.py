"""Steps as machine code: the same results, kept on disk, and never in the way."""

import os
import subprocess
import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any, cast

import pytest
import torch

import piaget
from piaget.engine import compiled
from piaget.errors import CompileNote, SettingError
from tests.small import binary_tasks, make_task

SMALL: dict[str, Any] = {
    "components": piaget.Dense(8),
    "initial_components": 2,
    "epochs": 4,
    "initial_tasks": 2,
    "batch_size": 8,
}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    """A cache folder of each test's own."""
    monkeypatch.setattr(compiled, "READY", {})
    monkeypatch.setattr(compiled, "cache_folder", lambda: tmp_path / "compiled")


def learned(tasks, seeds=(0,), compile="auto", **settings):
    """With "always", all but initialization is compiled, which has a test of its own."""
    first: Any = "never" if compile == "always" else compile
    learners = [
        piaget.Learner(**(SMALL | settings), seed=seed, dtype="float64", compile=first) for seed in seeds
    ]
    cohort = piaget.Cohort(learners)
    for number, task in enumerate(tasks):
        if number == SMALL["initial_tasks"]:
            for learner in learners:
                learner.settings = replace(learner.settings, compile=compile)
        cohort.learn([task] * len(seeds))
    return [learner.state.components for learner in learners]


def same(ones, others):
    for one, other in zip(ones, others, strict=True):
        for name, tensor in one.items():
            torch.testing.assert_close(tensor, other[name], rtol=1e-9, atol=1e-12)


CASES: dict[str, dict[str, Any]] = {
    "gating ewc": {"structure": "soft-gating", "adaptation": "ewc", "algorithm": "compositional"},
    "linear": {"structure": "linear", "algorithm": "compositional", "components": None, "batch_size": None},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_same_results(name):
    tasks = binary_tasks(3)
    expected = learned(tasks, compile="never", **CASES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompileNote)
        same(learned(tasks, compile="always", **CASES[name]), expected)


@pytest.mark.slow
def test_initialization_of_a_cohort():
    """Each run and task has components of its own at each depth: it is one step for all."""
    found = []
    for compile in ("never", "always"):
        learners = [piaget.Learner(**SMALL, seed=seed, dtype="float64", compile=compile) for seed in (0, 1)]
        cohort = piaget.Cohort(learners)
        with warnings.catch_warnings():
            warnings.simplefilter("error", CompileNote)
            for task in binary_tasks(2):
                cohort.learn([task, task])
        found.append([learner.state.components for learner in learners])
    same(*found)
    assert len(compiled.READY) == 1


@pytest.mark.slow
def test_a_cohort(tmp_path):
    """With replay and a candidate; the second time, from files alone."""
    tasks = binary_tasks(3)
    expected = learned(tasks, (0, 1, 2), compile="never")
    with warnings.catch_warnings():
        warnings.simplefilter("error", CompileNote)
        same(learned(tasks, (0, 1, 2), compile="always"), expected)
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "compiled").glob("*.pt2")}
    assert len(files) == 2  # assimilation and adaptation, each in both passes
    compiled.READY.clear()  # as in a new process
    same(learned(tasks, (0, 1, 2), compile="always"), expected)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "compiled").glob("*.pt2")} == files


@dataclass(frozen=True)
class SmallErrors(piaget.StopRule):
    """Ends a stage after two epochs, if errors are small."""

    def stops(self, gains):
        return len(gains) == 2 and gains[-1] > -10


@pytest.mark.slow
@pytest.mark.parametrize("share", [None, 0.5])
def test_batches_are_narrower_when_a_run_has_stopped(share):
    """All samples are one batch; the run with the most of them stops. The others need other machine code."""

    def tasks(n, level):
        made = [make_task(f"task {i}", "regression", n=n, seed=i) for i in range(3)]
        for task in made:
            for split in (task.train, task.validation):
                split.y.add_(level)
        return made

    settings: dict[str, Any] = {
        "structure": "linear",
        "algorithm": "compositional",
        "initial_components": 2,
        "initial_tasks": 1,
        "epochs": 6,
        "batch_size": None,
        "stop": SmallErrors(),
        "replay_share": share,
        "dtype": "float64",
    }
    found = []
    for compile in ("never", "always"):
        learners = [piaget.Learner(**settings, seed=seed, compile=compile) for seed in (0, 1)]
        cohort = piaget.Cohort(learners)
        with warnings.catch_warnings():
            warnings.simplefilter("error", CompileNote)
            for long, short in zip(tasks(300, 0), tasks(20, 100), strict=True):
                cohort.learn([long, short])
        found.append([learner.state.components for learner in learners])
    same(*found)


def test_without_a_compiler(monkeypatch):
    """The same results, and a note."""
    tasks = binary_tasks(3)
    expected = learned(tasks, compile="never")

    def missing(*arguments, **options):
        raise FileNotFoundError("no C++ compiler\nsecond line")

    monkeypatch.setattr("torch._inductor.aoti_compile_and_package", missing)
    with pytest.warns(CompileNote, match="could not be compiled, and runs slower: no C\\+\\+ compiler$"):
        found = learned(tasks, compile="always")
    same(found, expected)
    for one, other in zip(found, expected, strict=True):
        assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())  # to the bit


@pytest.mark.slow
def test_with_a_compiler_that_is_not_there(tmp_path):
    """In a process of its own: what is looked for is remembered."""
    code = (
        "import piaget, warnings; warnings.simplefilter('ignore'); from tests.small import binary_tasks\n"
        "l = piaget.Learner(components=piaget.Dense(8), initial_components=2, epochs=4, initial_tasks=2,"
        " batch_size=8, compile='always', algorithm='joint')\n"
        "for t in binary_tasks(3): l.learn(t)\n"
        "print(len(l.tasks))"
    )
    environment = os.environ | {
        "CXX": "/nonexistent/c++",
        "PATH": "/nonexistent",
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"),
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout.strip() == "3", done.stderr


def grow(a, b):
    a.add_(b)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def test_damaged_files_are_never_run_but_made_again(tmp_path, monkeypatch):
    """Whatever became of the file, or of the hash beside it. The compiler itself is asked once."""
    path, seal = tmp_path / "grow.pt2", tmp_path / "grow.sha256"
    arguments = (torch.zeros(3), torch.ones(3))

    def works(code):
        a, b = torch.zeros(3), torch.ones(3)
        code([a, b])
        return a.tolist() == [1, 1, 1]

    path.write_bytes(b"not a package")
    assert works(compiled.machine_code(grow, arguments, path))
    good, digest = path.read_bytes(), seal.read_bytes()
    made = []

    def make(step, arguments, path):
        made.append(path)
        seal.write_bytes(digest)
        path.write_bytes(good)

    monkeypatch.setattr(compiled, "_compile", make)
    assert works(compiled.machine_code(grow, arguments, path))
    assert made == []
    places = range(0, len(good), len(good) // 50)
    damaged = [flipped(good, at) for at in places] + [
        b"",
        bytes(len(good)),
        good[:-1],
        good[: len(good) // 2],
    ]
    for data in damaged:
        path.write_bytes(data)
        assert compiled._load(path) is None
    assert works(compiled.machine_code(grow, arguments, path))
    for text in (b"", flipped(digest, 5), b"\xff" * 64, None):
        if text is None:
            seal.unlink()
        else:
            seal.write_bytes(text)
        assert compiled._load(path) is None
        assert works(compiled.machine_code(grow, arguments, path))
    assert len(made) == 5


@pytest.mark.parametrize("step", [1, 2])
def test_a_crash_while_it_is_written_leaves_nothing_that_is_trusted(tmp_path, monkeypatch, step):
    """With the remains of another file in its place, too."""
    path, replace, calls = tmp_path / "grow.pt2", os.replace, iter(range(1, 10))
    path.write_bytes(b"of another time")

    def package(program, package_path, inductor_configs):
        (tmp_path / os.path.basename(package_path)).write_bytes(b"machine code")

    def crash(*arguments):
        if next(calls) == step:
            raise OSError("no space left on device")
        replace(*arguments)

    monkeypatch.setattr("torch._inductor.aoti_compile_and_package", package)
    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(OSError, match="no space"):
        compiled._compile(grow, (torch.zeros(3), torch.ones(3)), path)
    assert compiled._load(path) is None


def test_what_is_not_contiguous_is_not_compiled(tmp_path):
    """Machine code would silently read other numbers."""
    arguments = (torch.zeros(3, 2).T, torch.ones(2, 3))
    with pytest.raises(ValueError, match="not contiguous"):
        compiled.machine_code(grow, arguments, tmp_path / "grow.pt2")


@dataclass(frozen=True)
class Foreign:
    number: float

    def __call__(self, a):
        a.add_(self.number)


def test_parts_of_ones_own_are_not_kept(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(compiled, "machine_code", lambda step, arguments, path: made.append((step, path)))
    for step in (Foreign(1.0), Foreign(2.0), Foreign(1.0)):
        compiled.compiled(step, (torch.zeros(3),))
    assert [step for step, _ in made] == [Foreign(1.0), Foreign(2.0)]
    assert not any(path.is_relative_to(tmp_path) for _, path in made)
    assert made[0][1] != made[1][1]
    assert compiled.is_library_part(piaget.Dense(8))
    assert not compiled.is_library_part(piaget.Module(lambda: torch.nn.Linear(8, 8), shape=(8,)))


def test_auto_compiles_where_it_pays(monkeypatch):
    asked = []
    monkeypatch.setattr("piaget.engine.part_step.compiled", lambda step, arguments: asked.append(step))
    learned(binary_tasks(3))
    assert asked == []
    monkeypatch.setattr(compiled, "FEW_STEPS", 1)
    monkeypatch.setattr(compiled, "MANY_STEPS", 10)
    learned(binary_tasks(3))
    assert asked


@pytest.mark.parametrize(
    ("tasks", "few", "many", "pays"),
    [
        # Initialization: 2 tasks x 4 epochs. Then 3 epochs of assimilation and one of adaptation a task. An
        # epoch has 4 steps; those of one run count six times.
        (3, 72, 288, {"initialization", "assimilation"}),  # 6 x 4 x (8 + 4)
        (3, 72, 289, set()),
        (3, 73, 288, {"initialization"}),
        (1, 72, 288, {"initialization", "assimilation"}),  # at least the one that is learned
        (4, 73, 288, {"initialization", "assimilation"}),
        (4, 72, 385, set()),  # 6 x 4 x (8 + 8)
        (4, 48, 384, {"initialization", "assimilation", "adaptation"}),
    ],
)
def test_auto_counts_the_steps_of_all_tasks_that_will_come(monkeypatch, tasks, few, many, pays):
    chosen = set()

    def spy(stages):
        if compiled.pays(stages):
            chosen.add(stages[0].kind.name)
        return False

    monkeypatch.setattr("piaget.engine.training.pays", spy)
    monkeypatch.setattr(compiled, "FEW_STEPS", few)
    monkeypatch.setattr(compiled, "MANY_STEPS", many)
    learner = piaget.Learner(**SMALL)
    learner.tasks_in_all = tasks
    for task in binary_tasks(3):
        learner.learn(task)
    assert chosen == pays


def test_the_choice_does_not_depend_on_where_a_run_goes_on(monkeypatch):
    """Else a resumed run would round otherwise."""
    choices = []

    def spy(stages):
        choices.append((stages[0].kind.name, stages[0].epochs - stages[0].done, compiled.pays(stages)))
        return choices[-1][2]

    monkeypatch.setattr("piaget.engine.training.pays", spy)
    monkeypatch.setattr("piaget.engine.part_step.compiled", lambda step, arguments: None)
    for few in (72, 73):  # three epochs of four steps, of one run
        choices.clear()
        monkeypatch.setattr(compiled, "FEW_STEPS", few)
        monkeypatch.setattr(compiled, "MANY_STEPS", 1)
        learner = piaget.Learner(**SMALL)
        *initial, third = binary_tasks(3)
        for task in initial:
            learner.learn(task)

        def stop(report):
            if report.epoch == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            learner.learn(third, every=1, on_epoch=stop)
        learner.learn(third)
        found = [(epochs, chosen) for name, epochs, chosen in choices if name == "assimilation"]
        assert {epochs for epochs, _ in found} == {3, 1}
        assert {chosen for _, chosen in found} == {few == 72}


def test_keys_tell_everything_apart():
    tree = {"a": torch.zeros(2, 3), "b": {"c": torch.zeros(3)}}
    step: Any = piaget.Dense(8)  # anything with a description
    key = compiled.key_of(step, (tree,))
    assert key == compiled.key_of(step, ({"a": torch.ones(2, 3), "b": {"c": torch.ones(3)}},))
    others: list[tuple[Any, dict[str, Any]]] = [
        (piaget.Dense(9), tree),
        (step, {"a": torch.zeros(2, 4), "b": {"c": torch.zeros(3)}}),
        (step, {"a": torch.zeros(3, 2).T, "b": {"c": torch.zeros(3)}}),
        (step, {"a": torch.zeros(2, 3), "b": {"d": torch.zeros(3)}}),
        (step, {"a": torch.zeros(2, 3).double(), "b": {"c": torch.zeros(3)}}),
    ]
    keys = {compiled.key_of(one, (tree,)) for one, tree in others}
    assert len(keys | {key}) == 6


def test_a_loaded_learner_goes_on_with_the_code_that_is_there(tmp_path, monkeypatch):
    """Else what goes on in another process would compile every step again."""
    asked: list[str] = []

    def remember(step, arguments):
        asked.append(compiled.key_of(step, arguments))

    monkeypatch.setattr("piaget.engine.part_step.compiled", remember)
    learner = piaget.Learner(**SMALL, compile="always", algorithm="joint")
    *initial, third = binary_tasks(3)
    for task in initial:
        learner.learn(task)
    learner.save(tmp_path)
    found = []
    for one in (learner, piaget.Learner.load(tmp_path)):
        asked.clear()
        one.learn(third)
        found.append(set(asked))
    assert found[0] == found[1]


def test_wrong_words():
    with pytest.raises(SettingError, match="compile='yes': expected auto, always or never"):
        piaget.Learner(compile=cast(Any, "yes"))
