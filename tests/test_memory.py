"""What is in memory while runs learn: nothing twice, and nothing of a stage that is over."""

import gc
import subprocess
import sys
import weakref
from typing import Any

import pytest
import torch

import piaget
from piaget.engine.training import Training
from piaget.method.trees import leaves
from tests.small import make_task


def byte_task(name: str, seed: int) -> piaget.Task:
    """Pictures of bytes."""
    x = torch.randint(256, (40, 5), generator=torch.Generator().manual_seed(seed)).to(torch.uint8)
    return piaget.Task.from_arrays(name, x, torch.arange(40) % 2)


def learn(monkeypatch: pytest.MonkeyPatch, look, streams, **own: Any) -> None:
    """A small cohort learns; `look` is shown the stages before and after they are laid out."""
    lay_out = Training.__init__

    def watched(training, stages):
        look(None, stages)
        lay_out(training, stages)
        look(training, stages)

    monkeypatch.setattr(Training, "__init__", watched)
    settings: dict[str, Any] = {
        "epochs": 4,
        "initial_tasks": 2,
        "initial_components": 2,
        "components": piaget.Dense(5),
    } | own
    cohort = piaget.Cohort([piaget.Learner(seed=seed, **settings) for seed in range(len(streams))])
    reports: list[object] = []
    for tasks in zip(*streams, strict=True):
        cohort.learn(list(tasks), on_epoch=reports.append)


def test_a_stage_that_is_over_is_let_go(monkeypatch):
    """Not only when the garbage is collected; and not if somebody keeps the reports of its epochs."""
    trainings: list[weakref.ref[Training]] = []

    def look(training, stages):
        if training is None:
            assert [one for one in trainings if one() is not None] == []
        else:
            trainings.append(weakref.ref(training))

    streams = [[make_task(f"task {i}", seed=i + s) for i in range(3)] for s in range(2)]
    gc.disable()
    try:
        learn(monkeypatch, look, streams, algorithm="dynamic")
    finally:
        gc.enable()
    assert len(trainings) == 3  # initialization, assimilation, adaptation


def test_rows_of_a_cohort_are_each_runs_own(monkeypatch):
    found: list[bool] = []

    def look(training, stages):
        if training is not None:
            for own, work in enumerate(training.works):
                for part, together in zip(work.parts, training.work.parts, strict=True):
                    pairs = zip(leaves(part.banks), leaves(together.banks[own]), strict=True)
                    found.extend(one.data_ptr() == other.data_ptr() for one, other in pairs)

    streams = [[make_task(f"task {i}", seed=i + s, n=20 + s) for i in range(3)] for s in range(2)]
    learn(monkeypatch, look, streams)
    assert found
    assert all(found)


def test_data_stays_bytes(monkeypatch):
    """A stage refers to the task's own tensors; numbers of four bytes are made when it is laid out."""
    streams = [[byte_task(f"task {i}", seed=i + s) for i in range(3)] for s in range(2)]
    given = {id(task.train) for tasks in streams for task in tasks}
    seen: set[int] = set()

    def look(training, stages):
        seen.update(id(data.split) for stage in stages for data in stage.data)

    learn(monkeypatch, look, streams)
    assert seen == given


FREED = """
from pathlib import Path
from piaget.engine.heap import give_back

def held():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

bytearray(2**24)  # after a large block that was freed, those up to its size are kept
blocks = [(bytearray(2**20), bytearray(2**12)) for _ in range(100)]
small = [few for _, few in blocks]  # in between: what is free is not at the end
del blocks
before = held()
give_back()
print(before - held())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there it is needed, and told")
def test_free_memory_goes_back():
    """In a process of its own, whose memory is as it is told here."""
    told = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    assert int(told.stdout) > 50 * 2**20
