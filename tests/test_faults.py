"""Runs that are killed at random moments, many times, end with the same rows and learners."""

import itertools
import json
import multiprocessing
import os
import random
import signal
import time
from typing import Any

import pytest
from safetensors.numpy import load_file

from piaget.errors import SettingError
from piaget.lab import checkpoint, folder, keeping, runs as lab
from piaget.lab.configuration import configure
from piaget.lab.folder import read_description
from piaget.lab.making import make
from piaget.scoring import component_rows, probing

FORK = multiprocessing.get_context("fork")  # a spawned process would spend its life importing


def configuration(**changes):
    options = {"tasks": 6, "train_size": 40}
    settings: dict[str, Any] = {"stream": "digits", "epochs": 5, "every": 2, "options": options}
    return configure(**(settings | changes))


def go(out, config, seeds):
    return lab.run(*make(config, seeds, None), out, config)


def contents(out, seeds):
    """All that a finished run leaves, but for times."""
    found = {}
    for seed in seeds:
        folder = out / f"seed-{seed}"
        found[seed, "rows"] = (folder / "rows.csv").read_bytes()
        (tensors,) = (folder / "learner").glob("*.safetensors")
        found[seed, "tensors"] = {name: t.tobytes() for name, t in load_file(tensors).items()}
        assert read_description(folder)["status"] == "done"
    return found


def tear(out, rng):
    """What a crash or a power loss may leave behind, as long as a run is not finished."""
    (place,) = [path.parent for path in out.rglob("checkpoint.json")] or [None]
    if place is None:
        return
    for rows in out.glob("seed-*/rows.csv"):
        if rng.random() < 0.5 and not folder.is_done(rows.parent):  # one of a cohort may be
            with open(rows, "ab") as handle:
                handle.write(b"digits,soft-ordering/er/dyn")
    if rng.random() < 0.5:
        (place / ".checkpoint.json.1.tmp").write_bytes(b'{"format": "piag')
        (place / "checkpoint-0123456789abcdef.safetensors").write_bytes(b"\x10\0\0")


# Compiling takes long: joint training of one task after the initial ones has a single step of its own, and a
# single run is never left alone by another that had finished, for which the step would be compiled again.
COMPILED = {
    "structure": "linear",
    "algorithm": "joint",
    "epochs": 60,
    "every": 20,
    "options": {"tasks": 5, "train_size": 40},
    "settings": {"compile": "always"},
}
CASES: dict[str, tuple[dict[str, Any], list[int]]] = {
    "single": ({}, [0]),
    "cohort": ({}, [3, 4, 5]),
    "joint ewc": ({"adaptation": "ewc", "algorithm": "joint"}, [0, 1]),
    "linear": ({"structure": "linear", "epochs": 60, "every": 20}, [0, 1]),
    "compiled": (COMPILED, [0]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_killed_at_random_moments(name, tmp_path, monkeypatch):
    monkeypatch.setattr(keeping.Keeper, "SHARE", 1e9)  # keep every epoch
    changes, seeds = CASES[name]
    config = configuration(**changes)
    go(tmp_path / "first", config, seeds)  # compiles
    start = time.monotonic()
    go(tmp_path / "undisturbed", config, seeds)
    whole = time.monotonic() - start
    rng, kills = random.Random(7), 0
    out = tmp_path / "disturbed"
    for _ in range(200):
        process = FORK.Process(target=go, args=(out, config, seeds))
        process.start()
        process.join(rng.uniform(0.02, 0.3 * whole) if kills < 12 else None)
        if process.exitcode is not None:
            break
        process.kill()
        process.join()
        kills += 1
        tear(out, rng)
    assert process.exitcode == 0
    assert kills >= 3  # a fast machine may finish before more
    assert contents(out, seeds) == contents(tmp_path / "undisturbed", seeds)
    assert not list(out.rglob("checkpoint"))


def test_killed_after_the_end(tmp_path, monkeypatch):
    """What the process did not come to remove is removed by the next one; not while another run needs it."""
    config, seeds = configuration(), [3, 4]
    with monkeypatch.context() as patched:
        patched.setattr("piaget.lab.runs.kept.remove", lambda place: None)
        go(tmp_path, config, seeds)
    left = tmp_path / "seed-3" / "checkpoint"
    assert left.is_dir()
    rows = contents(tmp_path, seeds)
    folder.note(tmp_path / "seed-4", status="interrupted")
    go(tmp_path, config, [3])
    assert left.is_dir()
    folder.note(tmp_path / "seed-4", status="done")
    go(tmp_path, config, [3])
    assert not left.exists()
    assert contents(tmp_path, seeds) == rows


def _killed_while_keeping(out, config, seeds, phase):
    """The second time something is kept, the process dies: before, in the middle, or after."""
    count, keep, patch = iter(range(1, 1000)), keeping.Keeper.keep, pytest.MonkeyPatch()

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def kept(self):
        second = next(count) == 2
        if second and phase == "before":
            die()
        if second and phase == "rows":  # some rows are written, others are not
            self.files[0].append(self.rows[seeds[0]])
            die()
        if second and phase == "checkpoint":  # all rows are written; the checkpoint is not
            patch.setattr(checkpoint, "save", lambda *arguments: die())
        keep(self)
        if second:
            die()

    patch.setattr(keeping.Keeper, "keep", kept)
    go(out, config, seeds)


@pytest.mark.slow
def test_killed_at_every_keep(tmp_path, monkeypatch):
    """One step forward at a time, through every stage of the whole run."""
    monkeypatch.setattr(keeping.Keeper, "SHARE", 1e9)
    config, seeds, out = configuration(epochs=7), [0, 1], tmp_path / "out"
    go(tmp_path / "undisturbed", config, seeds)
    phases = itertools.cycle(("before", "rows", "checkpoint", "after"))
    stages = set()
    for kills in range(200):  # noqa: B007
        arguments = (out, config, seeds, next(phases))
        process = FORK.Process(target=_killed_while_keeping, args=arguments)
        process.start()
        process.join()
        if process.exitcode == 0:
            break
        described = json.loads((out / "seed-0" / "checkpoint" / "checkpoint.json").read_text())
        for progress in (member["progress"] for member in described["members"]):
            epochs = progress and (progress["epoch"], len(progress["tasks"]))
            stages.add(epochs)
    assert kills >= 20
    # Between tasks; within initialization and a task's assimilation; and before the last, which adapts.
    assert {None, (2, 4), (5, 4), (2, 1), (5, 1)} <= stages
    assert contents(out, seeds) == contents(tmp_path / "undisturbed", seeds)


def test_ctrl_c_at_any_epoch(tmp_path, monkeypatch):
    """An exception inside a run: what was kept is valid, and the run goes on."""
    monkeypatch.setattr(keeping.Keeper, "SHARE", 1e9)
    config, seeds = configuration(), [0, 1]
    go(tmp_path / "undisturbed", config, seeds)
    out, keep = tmp_path / "out", keeping.Keeper.keep
    for stop_at in (1, 2, 3, 5, 4, 3):
        calls = iter(range(1, 1000))

        def interrupted(self, stop_at=stop_at, calls=calls):
            if next(calls) == stop_at:
                raise KeyboardInterrupt
            keep(self)

        monkeypatch.setattr(keeping.Keeper, "keep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            go(out, config, seeds)
        assert read_description(out / "seed-0")["status"] == "interrupted"
    monkeypatch.setattr(keeping.Keeper, "keep", keep)
    go(out, config, seeds)
    assert contents(out, seeds) == contents(tmp_path / "undisturbed", seeds)


def test_a_finished_run_is_not_run_again(tmp_path, monkeypatch):
    config = configuration(epochs=2)
    go(tmp_path, config, [0])
    before = contents(tmp_path, [0])
    monkeypatch.setattr(lab, "_learn", lambda *a: pytest.fail("trained again"))
    go(tmp_path, config, [0])
    assert contents(tmp_path, [0]) == before


def test_more_seeds_are_added(tmp_path):
    config = configuration(epochs=2)
    go(tmp_path, config, [0, 1])
    before = contents(tmp_path, [0, 1])
    go(tmp_path, config, [0, 1, 2])
    assert contents(tmp_path, [0, 1]) == before
    assert len(contents(tmp_path, [0, 1, 2])) == 6


def test_another_configuration_is_refused(tmp_path):
    go(tmp_path, configuration(epochs=2), [0])
    with pytest.raises(SettingError, match=r"another configuration .epochs: 2 there, 3 now"):
        go(tmp_path, configuration(epochs=3), [0])


def test_an_interrupted_seed_must_be_among_them(tmp_path, monkeypatch):
    config = configuration(epochs=2)
    monkeypatch.setattr(keeping.Keeper, "due", lambda self: pytest.fail("stop here"))
    with pytest.raises(pytest.fail.Exception):
        go(tmp_path, config, [0, 1])
    monkeypatch.undo()
    with pytest.raises(SettingError, match=r"seeds \[0, 1\] were interrupted"):
        go(tmp_path, config, [0])


def _hold(out, ready, config):
    def wait(self):
        ready.set()
        time.sleep(60)

    pytest.MonkeyPatch().setattr(keeping.Keeper, "due", wait)  # for good: in a process of its own
    go(out, config, [0])


def test_two_processes_in_one_folder(tmp_path):
    config, ready = configuration(epochs=2), FORK.Event()
    first = FORK.Process(target=_hold, args=(tmp_path, ready, config))
    first.start()
    assert ready.wait(60)
    with pytest.raises(SettingError, match="another process is working there"):
        go(tmp_path, config, [0])
    first.kill()
    first.join()
    go(tmp_path, config, [0])  # its lock died with it
    contents(tmp_path, [0])


def test_a_full_disk(tmp_path, monkeypatch):
    """The run stops with the system's message; what was there stays valid."""
    config = configuration()
    go(tmp_path / "undisturbed", config, [0])
    monkeypatch.setattr(keeping.Keeper, "SHARE", 1e9)
    real, left = os.fsync, iter(range(25))

    def full(handle):
        if next(left, None) is None:
            raise OSError(28, "No space left on device")
        real(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        go(tmp_path / "out", config, [0])
    monkeypatch.setattr(os, "fsync", real)
    go(tmp_path / "out", config, [0])
    assert contents(tmp_path / "out", [0]) == contents(tmp_path / "undisturbed", [0])


def test_killed_at_every_keep_while_it_probes(tmp_path, monkeypatch):
    """It goes on where it was: nothing is measured twice, and the same rows come out."""
    monkeypatch.setattr(keeping.Keeper, "SHARE", 1e9)
    config, seeds, out = configuration(epochs=2, every=None), [0, 1], tmp_path / "out"
    go(tmp_path / "undisturbed", config, seeds)
    keep, effects, probed = keeping.Keeper.keep, probing.effects, []

    def counted(learner, task, *samples):
        probed.append((learner.settings.seed, task.name))
        return effects(learner, task, *samples)

    def interrupted(self):
        keep(self)
        if any(row["stage"] == "structure" for row in self.files[0].rows()):
            raise KeyboardInterrupt

    monkeypatch.setattr(component_rows, "effects", counted)
    monkeypatch.setattr(keeping.Keeper, "keep", interrupted)
    for kills in range(100):  # noqa: B007
        try:
            go(out, config, seeds)
            break
        except KeyboardInterrupt:
            continue
    assert kills == 2 * (1 + 6 + 1)  # of each run: structures, six tasks, consistency
    assert len(probed) == len(set(probed)) == 12
    assert contents(out, seeds) == contents(tmp_path / "undisturbed", seeds)
