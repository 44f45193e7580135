"""Where the jobs of a sweep are run: in processes of this machine, or on a Ray cluster.

An executor gives futures for jobs, and passes on what their workers report. Everything else (which
jobs, in what order, again after a worker died) is the sweep's.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.managers import SyncManager
from pathlib import Path
from typing import Any, Protocol

from piaget.errors import DataNote, SettingError
from piaget.extras import need
from piaget.lab.jobs import Job
from piaget.lab.memory import keep_memory
from piaget.lab.progress import Standing

Send = Callable[[tuple[Job, Standing]], None]
Work = Callable[[Job, Path, Send], None]


class Executor(Protocol):
    """A context: workers live as long as it is entered."""

    workers: int

    def __enter__(self) -> Executor: ...

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None: ...

    def submit(self, work: Work, job: Job, out: Path) -> Future[None]:
        """Has a job done some time."""

    def received(self) -> list[tuple[Job, Standing]]:
        """What workers have reported since the last call."""

    def died(self, error: BaseException) -> bool:
        """Is it the worker that is gone, and not the job that failed?"""


def prepare_worker() -> None:
    """One torch thread a worker: workers share the cores."""
    import torch

    keep_memory()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", DataNote)  # said before, by the process that asked for the sweep


# --- this process -------------------------------------------------------------------------------------


class InProcess:
    """Runs each job at once, in this process: for parts that no other process could import."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        self._news: list[tuple[Job, Standing]] = []

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        pass

    def submit(self, work: Work, job: Job, out: Path) -> Future[None]:
        future: Future[None] = Future()
        try:
            work(job, out, self._news.append)
            future.set_result(None)
        except Exception as error:
            future.set_exception(error)
        return future

    def received(self) -> list[tuple[Job, Standing]]:
        news, self._news = self._news, []
        return news

    def died(self, error: BaseException) -> bool:
        return False


# --- processes of this machine --------------------------------------------------------------------------

_channel: Any = None


def _start(channel: Any, parent: int) -> None:
    global _channel
    _channel = channel
    _end_with(parent)
    prepare_worker()


def _end_with(parent: int) -> None:
    """A worker must not live on, unseen and holding locks, when what started it was killed."""

    def follow() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asked; it ends its workers
    threading.Thread(target=follow, daemon=True).start()


def _in_process(work: Work, job: Job, out: Path) -> None:
    work(job, out, _tell)


def _tell(news: tuple[Job, Standing]) -> None:
    with contextlib.suppress(OSError, EOFError):  # nobody listens any more: no reason to stop working
        _channel.put(news)


class Processes:
    """Worker processes, one PyTorch thread each. If one dies, the others do not notice: each is a pool
    of its own, served by a thread."""

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def __enter__(self) -> Processes:
        self._context = multiprocessing.get_context("spawn")
        self._manager = SyncManager(ctx=self._context)
        self._manager.start(_end_with, (os.getpid(),))
        self._channel = self._manager.Queue()
        self._todo: queue.SimpleQueue[tuple[Future[None], Work, Job, Path] | None] = queue.SimpleQueue()
        self._pools: dict[int, ProcessPoolExecutor] = {}
        self._ending, self._lock = False, threading.Lock()
        self._threads = [threading.Thread(target=self._serve, args=(i,)) for i in range(self.workers)]
        for thread in self._threads:
            thread.start()
        return self

    def _serve(self, number: int) -> None:
        while (item := self._todo.get()) is not None:
            future, work, job, out = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                with self._lock:
                    running = self._pool(number).submit(_in_process, work, job, out)
                future.set_result(running.result())
            except BaseException as error:
                if isinstance(error, BrokenProcessPool):
                    with self._lock:
                        self._pools.pop(number, None)
                future.set_exception(error)

    def _pool(self, number: int) -> ProcessPoolExecutor:
        if self._ending:
            raise BrokenProcessPool("the sweep was stopped")
        if number not in self._pools:
            start = (self._channel, os.getpid())
            self._pools[number] = ProcessPoolExecutor(1, self._context, _start, start)
        return self._pools[number]

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is not None:  # do not wait for what was begun: it is kept
            with contextlib.suppress(queue.Empty):
                while (item := self._todo.get_nowait()) is not None:
                    item[0].cancel()
            with self._lock:
                self._ending = True
                processes = [p for pool in self._pools.values() for p in (pool._processes or {}).values()]
            for process in processes:
                process.terminate()
        for _ in self._threads:
            self._todo.put(None)
        for thread in self._threads:
            thread.join()
        for pool in self._pools.values():
            pool.shutdown()
        self._manager.shutdown()

    def submit(self, work: Work, job: Job, out: Path) -> Future[None]:
        future: Future[None] = Future()
        self._todo.put((future, work, job, out))
        return future

    def received(self) -> list[tuple[Job, Standing]]:
        news = []
        with contextlib.suppress(queue.Empty, OSError, EOFError):  # the last two: the queue's process died
            while True:
                news.append(self._channel.get_nowait())
        return news

    def died(self, error: BaseException) -> bool:
        return isinstance(error, BrokenProcessPool)


# --- a Ray cluster --------------------------------------------------------------------------------------


def _on_ray(work: Work, job: Job, out: Path, channel: Any) -> None:
    from ray.exceptions import RayError

    def tell(news: tuple[Job, Standing]) -> None:
        with contextlib.suppress(RayError):  # nobody listens any more: no reason to stop working
            channel.put_nowait(news)

    prepare_worker()
    work(job, out, tell)


class Ray:
    """Tasks on a Ray cluster, one core each. All its machines must see the output and data folders, and
    have the same piaget installed. Without an address, a Ray instance is started on this machine."""

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        if address is not None and workers is not None:
            raise SettingError("a Ray cluster has its own number of workers: leave out --workers")
        self._ray = need("ray", "Ray clusters")
        self.address, self.workers = address, workers or 2  # of a cluster: known when it is entered

    def __enter__(self) -> Ray:
        variables = _of_environment("PIAGET_DATA")
        try:
            self._ray.init(
                address=self.address or "local",
                num_cpus=None if self.address else self.workers,
                include_dashboard=None if self.address else False,
                log_to_driver=False,
                logging_level="WARNING",
                runtime_env={"env_vars": variables},
            )
        except ConnectionError as error:
            raise SettingError(f"no Ray cluster at address {self.address!r}: {error}") from error
        if self.address:
            self.workers = int(self._ray.cluster_resources().get("CPU", 1))
        from ray.util.queue import Queue
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=True)
        self._channel = Queue(actor_options={"num_cpus": 0, "scheduling_strategy": here})
        self._remote = self._ray.remote(num_cpus=1, max_retries=0)(_on_ray)
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        self._ray.shutdown()

    def submit(self, work: Work, job: Job, out: Path) -> Future[None]:
        future: Future[None] = self._remote.remote(work, job, out.absolute(), self._channel).future()
        return future

    def received(self) -> list[tuple[Job, Standing]]:
        try:
            return list(self._channel.get_nowait_batch(self._channel.qsize()))
        except self._ray.exceptions.RayError:  # the queue's machine is lost: the work goes on unseen
            return []

    def died(self, error: BaseException) -> bool:
        kinds = self._ray.exceptions
        return isinstance(error, kinds.RayError) and not isinstance(error, kinds.RayTaskError)


def _of_environment(*names: str) -> dict[str, str]:
    return {name: os.environ[name] for name in names if name in os.environ}
