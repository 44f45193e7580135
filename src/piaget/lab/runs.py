"""Runs: learners of one method over streams, kept on disk so that nothing is lost.

A run is one stream, method and seed. It has a folder of its own:

    run.json     configuration, versions, machine, times, status
    rows.csv     all scores, one a line; it only grows
    log.txt      what happened, for people
    learner/     the learner, when the run is done

Runs of one call are trained together as a cohort. Until it is done, its checkpoint is in the folder of
its first run: checkpoint/.
"""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from piaget.cohort import Cohort
from piaget.data.tasks import Stream, Task
from piaget.errors import LoadError, SettingError
from piaget.lab import checkpoint, folder, kept
from piaget.lab.folder import has_ended, seed_folders
from piaget.lab.keeping import Keeper, Member
from piaget.lab.locks import only_one
from piaget.lab.progress import PROBING, Plan, Standing, Tracker, duration, score
from piaget.lab.row_file import RowFile
from piaget.lab.unchanged import check_data
from piaget.learner import Learner
from piaget.method.description import to_json
from piaget.scoring import component_rows
from piaget.scoring.watch import EpochReport

Tell = Callable[[Standing], None]


def run(
    learners: Sequence[Learner],
    streams: Sequence[Stream],
    out: Path,
    configuration: dict[str, Any],
    tell: Tell | None = None,
    data_dir: str | None = None,
    together: int | None = None,
) -> list[Path]:
    """Learns all tasks of each stream with its learner; the folders of the runs.

    tell: is told where the runs stand. together: runs that are trained as one cohort, at most (default: what
    is fastest for the components).

    Called again with the same configuration after any interruption, it goes on from the last checkpoint
    and ends with the same rows and learners. Finished, it does nothing. A run that diverges ends as
    `failed: diverged`, and the others go on.
    """
    seeds = [learner.settings.seed for learner in learners]
    folders = seed_folders(out, seeds)
    members = [
        Member(*parts, *_looked_through(parts[-1])) for parts in zip(folders, learners, streams, strict=True)
    ]
    runs = {member.seed: member for member in members}
    ended = all(map(has_ended, folders))  # then nothing is written: they may be read-only
    with contextlib.nullcontext() if ended else only_one(folders):
        for one in runs.values():
            learner = to_json(one.learner.settings)
            columns = getattr(one.stream, "columns", None)
            folder.begin(
                one.folder, configuration, one.seed, learner, one.data, data_dir=data_dir, columns=columns
            )
        _remove_leftovers(out, folders)
        if ended:
            return folders
        # In the same company as before an interruption: then the same numbers come out.
        cohorts = begun_cohorts(out, seeds)
        begun = {seed for cohort in cohorts for seed in cohort}
        new = [seed for seed, one in runs.items() if seed not in begun and not has_ended(one.folder)]
        size = together or learners[0].settings.components.together
        cohorts += [new[i : i + size] for i in range(0, len(new), size)]
        for i, cohort in enumerate(cohorts):
            tell_all = None if tell is None else partial(_tell_of_all, tell, i, len(cohorts))
            _train([runs[seed] for seed in cohort], configuration["every"], tell_all)
    return folders


def _remove_leftovers(out: Path, folders: Sequence[Path]) -> None:
    """Checkpoints of runs that have all ended: the process was killed before it could remove them."""
    for path in folders:
        place = path / "checkpoint"
        if place.is_dir() and all(map(has_ended, seed_folders(out, folder.RunFolder(path).together))):
            with contextlib.suppress(OSError):  # it may be read-only
                kept.remove(place)


def fingerprints(stream: Stream) -> dict[str, str]:
    """Of each task, by its name."""
    return _looked_through(stream)[0]


def _looked_through(stream: Stream) -> tuple[dict[str, str], list[int]]:
    """The tasks' fingerprints and training samples; each task is made once."""
    tasks = (stream[i] for i in range(len(stream)))
    seen = [(task.name, task.fingerprint(), len(task.train)) for task in tasks]
    return {name: fingerprint for name, fingerprint, _ in seen}, [size for *_, size in seen]


def _tell_of_all(tell: Tell, i: int, cohorts: int, standing: Standing) -> None:
    """Where one cohort stands as where all of them do, which take as long as this one."""
    left = standing.left
    if left is not None:
        left += (cohorts - 1 - i) * (standing.seconds + left)
    done, begun_at = (i + standing.done) / cohorts, (i + standing.begun_at) / cohorts
    tell(replace(standing, done=done, begun_at=begun_at, left=left))


def begun_cohorts(out: Path, seeds: Sequence[int]) -> list[list[int]]:
    """The interrupted cohorts among these seeds."""
    cohorts = []
    for path in sorted(out.glob("seed-*/checkpoint")):
        try:
            begun = kept.seeds(path)
        except LoadError as error:
            raise LoadError(f"{error}. {kept.lost(path)}") from error
        if not begun or not set(begun) & set(seeds):
            continue
        if all(has_ended(one) for one in seed_folders(out, begun)):
            kept.remove(path)  # a crash at the very end left it
        elif not set(begun) <= set(seeds):
            raise SettingError(
                f"{out}: seeds {begun} were interrupted together, and must be among those to go on with: "
                "give the command that began them again"
            )
        else:
            cohorts.append(begun)
    return cohorts


def _train(runs: Sequence[Member], every: int | None, tell: Tell | None) -> None:
    """Runs that are trained together, from their checkpoint, if there is one, to their end."""
    place = runs[0].folder / "checkpoint"
    learners, streams = [one.learner for one in runs], [one.stream for one in runs]
    paths = [one.folder / "rows.csv" for one in runs]
    loaded = checkpoint.load(place, learners, streams, paths)
    before, effects = loaded or (None, [[] for _ in runs])
    for one, data in zip(runs, before.data if before else [], strict=False):
        check_data(one.folder, data, one.data)
    plan = _plan(runs[0], every)
    tracker = Tracker(plan, before.done, before.seconds, before.measured) if before else Tracker(plan)
    files = [RowFile(path, before.rows[i] if before else None) for i, path in enumerate(paths)]
    for file in files:
        tracker.rows(file.rows())
    keeper = Keeper(place, runs, files, tracker, before.diverged if before else {}, effects)
    for one in keeper.left:
        together = [other.seed for other in runs]
        folder.note(one.folder, status="running", error=None, together=together, rows=None)
        folder.log(one.folder, f"goes on at {100 * tracker.done:.1f} %" if before else f"begins: {together=}")
    try:
        _probe(runs, _learn(runs, keeper, every, tell), keeper, tell)
    except BaseException as error:
        status, trace = _how_it_ended(error)
        with contextlib.suppress(OSError):  # the disk may be full
            for one in keeper.left:
                folder.note(one.folder, status=status, error=trace)
                folder.log(
                    one.folder, f"{status} at {100 * tracker.done:.1f} %" + (f"\n{trace}" if trace else "")
                )
        raise
    for one, file in zip(runs, files, strict=True):
        ended: dict[str, Any] = {"rows": file.extent._asdict()}
        if one in keeper.left:
            one.learner.save(one.folder / "learner")
            ended |= {
                "saved": folder.learner_mark(one.folder),
                "status": folder.DONE,
                "finished": folder.now(),
                "seconds": round(tracker.seconds, 3),
                "peak_memory": peak_memory(),
                "steps": one.learner.state.steps,
                "parameters": one.learner.sizes().parameters,
            }
            folder.log(one.folder, f"done in {duration(tracker.seconds)}")
        folder.note(one.folder, **ended)
    kept.remove(place)


def _plan(one: Member, every: int | None) -> Plan:
    """What a run's epochs will be. Streams of other seeds are as large."""
    settings = one.learner.settings
    expansion, stages = settings.algorithm.expansion, settings.stages()
    return Plan(
        sizes=one.sizes,
        stages=[kind.name for kind in stages] * settings.attempts,
        initial=min(settings.initial_tasks, len(one.sizes)),
        every=every,
        # Of two attempts, the first one takes one pass, and the second one is not always made.
        passes=len(expansion.passes) if expansion.proposes and settings.attempts == 1 else 1,
        grows=frozenset(kind.name for kind in stages if kind.adapts and settings.adaptation.corrects),
    )


def _how_it_ended(error: BaseException) -> tuple[str, str | None]:
    """`interrupted` by the user, `stopped` by the system (a full disk), or `failed`."""
    if not isinstance(error, Exception):
        return "interrupted", None
    return "stopped" if isinstance(error, OSError) else "failed", traceback.format_exc()


def _learn(runs: Sequence[Member], keeper: Keeper, every: int | None, tell: Tell | None) -> list[list[Task]]:
    """The tasks of each run, for evaluation."""
    past: list[list[Task]] = [[] for _ in runs]  # without most of their training data
    for one in runs:
        one.learner.tasks_in_all = len(one.stream)
    for i in range(len(runs[0].stream)):
        tasks = [one.stream[i] for one in runs]
        # Learners that went on alone may have finished a task that others are still at.
        left = [r for r, one in enumerate(runs) if one in keeper.left]
        todo = [r for r in left if not _has(runs[r].learner, tasks[r])]
        if todo:
            keeper.tracker.probing = component_rows.Work(runs[todo[0]].learner, past[todo[0]]).share
            keeper.tracker.current = {runs[r].seed: tasks[r].name for r in todo}
            Cohort([runs[r].learner for r in todo]).learn(
                [tasks[r] for r in todo],
                evaluate_on=[[*past[r], tasks[r]] for r in todo],
                every=every,
                on_epoch=partial(_on_epoch, i + 1, keeper.tracker, tell),
                on_row=keeper.row,
                keeper=keeper,
            )
            if keeper.worthwhile(i + 1):
                keeper.keep()
            keeper.tracker.ended()
            for r in (r for r in todo if runs[r] in keeper.left):
                _log_task(runs[r], i, tasks[r].name, keeper.tracker)
            if tell is not None and keeper.tracker.began(i + 1):
                tell(keeper.tracker.standing())  # with what was evaluated since
        past = [[*earlier, task.lean()] for earlier, task in zip(past, tasks, strict=True)]
    return past


def _probe(
    runs: Sequence[Member], tasks: Sequence[Sequence[Task]], keeper: Keeper, tell: Tell | None
) -> None:
    """The rows about components, kept now and then, so that it goes on after an interruption."""
    left = [r for r, one in enumerate(runs) if one in keeper.left]
    # Structures, each task, consistency. It may be fewer: then the last ones are not met.
    epochs, epoch = sum(len(tasks[r]) + 2 - len(keeper.effects[r]) for r in left), 0
    for r in left:
        learner, name, effects = runs[r].learner, tasks[r][-1].name, keeper.effects[r]
        report = EpochReport(runs[r].seed, name, PROBING, epoch, epochs, learner.components, _no_score)
        keeper.tracker.current = {runs[r].seed: name}
        keeper.tracker.probe(report)
        done = {(row["stage"], row["evaluated"]) for row in keeper.files[r].rows()}
        for rows in component_rows.parts(learner, tasks[r], done, effects):
            for row in rows:
                keeper.row(row)
            if keeper.due():
                keeper.keep()
            epoch = min(epoch + 1, epochs)
            if keeper.tracker.probe(replace(report, epoch=epoch)) and tell is not None:
                tell(keeper.tracker.standing())
    keeper.write()  # without a checkpoint: what comes next is soon done again


def _no_score(split: str) -> float:
    raise SettingError(f"nothing is learned while components are probed: no {split} score")


def _on_epoch(task: int, tracker: Tracker, tell: Tell | None, report: EpochReport) -> None:
    """All runs of a cohort that are still at the task are at the same epoch: the first of them speaks."""
    if tracker.is_new(task, report):
        tracker.epoch(task, report)
        if tell is not None and tracker.due():
            tell(tracker.standing())


def _has(learner: Learner, task: Task) -> bool:
    """Learned, or waiting for the other initial tasks, and not the one being learned."""
    progress = learner.state.progress
    if progress is not None and progress.tasks[-1] == task.name:
        return False
    return task.name in learner.tasks or task.name in learner.pending


def _log_task(one: Member, i: int, name: str, tracker: Tracker) -> None:
    metric, current, past = tracker.latest({one.seed: name})
    scores = [
        f"{score(metric, current)} on it" if current is not None else "waits for the other initial ones"
    ]
    scores += [f"{score(metric, past)} on the others"] if past is not None and current is not None else []
    components = f"{one.learner.components} components; " if one.learner.components else ""
    text = f"task {i + 1} of {len(one.stream)}, {name}: {', '.join(scores)}; {components}"
    folder.log(one.folder, text + f"{duration(tracker.seconds)} so far")


def peak_memory() -> int | None:
    """Bytes, of the whole process so far."""
    try:
        import resource
    except ImportError:  # not on every system
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
