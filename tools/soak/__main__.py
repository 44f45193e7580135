"""make soak: 1,000 kills. Stopped, the same command goes on."""

from __future__ import annotations

import argparse
import importlib
import itertools
import multiprocessing
import os
import random
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

# One thread each, here and in all that is started: as many processes as cores are at work.
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

from tools.soak.ledger import Ledger, code, publish, result, versions
from tools.soak.lives import TIMES, Failure, Life, Living, Original, uninterrupted
from tools.soak.scenarios import Scenario, order, possible, write_table
from tools.soak.starts import die_with_parent, take_orphans

FORK = multiprocessing.get_context("fork")  # processes that have imported everything


class Soak:
    """All lives of one plan, in a folder."""

    def __init__(self, out: Path, seed: int, damages: float, scenarios: Sequence[Scenario]) -> None:
        self.out, self.seed, self.damages, self.scenarios = out.absolute(), seed, damages, scenarios
        self.out.mkdir(parents=True, exist_ok=True)
        self.table = self.out / "table.csv"
        write_table(self.table)
        names = [scenario.name for scenario in scenarios]
        plan = {"seed": seed, "damages": damages, "scenarios": names, "code": code(), **versions()}
        self.ledger = Ledger.open(self.out / "ledger.json", plan)
        if not self.ledger.lives:
            shutil.rmtree(self.out / "originals", ignore_errors=True)

    def scenario(self, number: int) -> Scenario:
        """Of a life."""
        return next(itertools.islice(order(self.scenarios, self.seed), number, None))

    def original(self, scenario: Scenario) -> None:
        """Makes the uninterrupted run of a scenario, and keeps it."""
        folder = self.out / "originals" / scenario.name
        if not (folder / TIMES).is_file():
            uninterrupted(scenario, self.table, folder)

    def live(self, number: int) -> Life:
        """One life; all that is drawn in it comes from the seed and its number."""
        scenario, rng = self.scenario(number), random.Random(f"{self.seed} {number}")
        original = Original.kept(self.out / "originals" / scenario.name)
        folder = self.out / f"life-{number}"
        life = Life(number, scenario.name)
        living = Living(life, scenario, original, folder, self.table, rng)
        try:
            living.go(rng.randint(2, 3 if scenario.spawned else 8), self.damages)
        except Failure as failure:
            story = "; ".join(living.story)
            raise Failure(
                f"life {number}, {scenario.name}: {failure}\nin {folder}\nafter {story}"
            ) from failure
        shutil.rmtree(folder)
        return life

    def go(self, kills: int, workers: int = 2) -> None:
        """Lives until so many kills have been survived, in processes of their own."""
        with _workers(self, workers) as connections:
            _do_all(connections, iter(("original", i) for i in range(len(self.scenarios))), lambda life: True)
            done = {life.number for life in self.ledger.lives}
            numbers = (("live", number) for number in itertools.count() if number not in done)
            _do_all(connections, numbers, lambda life: self._take(life, kills), self.ledger.kills < kills)

    def _take(self, life: Life, kills: int) -> bool:
        """Counts a life; are more wanted?"""
        self.ledger.add(life)
        print(
            f"\r{self.ledger.kills:,} kills, {self.ledger.damages:,} damaged files, "
            f"{len(self.ledger.lives):,} lives, 0 failures",
            end="",
            flush=True,
        )
        return self.ledger.kills < kills

    def do(self, what: str, number: int) -> Life | None:
        """An original or a life, by its number."""
        if what == "live":
            return self.live(number)
        self.original(self.scenarios[number])
        return None


@contextmanager
def _workers(soak: Soak, count: int) -> Iterator[list[Any]]:
    """Connections to processes that do what they are told."""
    pairs = [FORK.Pipe() for _ in range(count)]
    processes = [FORK.Process(target=_serve, args=(soak, there)) for _, there in pairs]
    for process in processes:
        process.start()
    try:
        yield [here for here, _ in pairs]
    finally:
        for process in processes:
            process.kill()  # and with it what it has started
            process.join()


def _serve(soak: Soak, connection: Connection) -> None:
    die_with_parent()
    take_orphans()
    while True:
        try:
            connection.send(soak.do(*connection.recv()))
        except (Failure, OSError, ValueError) as error:
            connection.send(
                error if isinstance(error, Failure) else Failure(f"{type(error).__name__}: {error}")
            )


def _do_all(
    connections: list[Any], orders: Iterator[tuple[str, int]], more: Any, wanted: bool = True
) -> None:
    """Gives each free worker the next order, until there is none, or no more is wanted."""
    busy = []
    for connection in connections if wanted else []:
        if (following := next(orders, None)) is not None:
            connection.send(following)
            busy.append(connection)
    while busy:
        ready_ones = wait(busy)
        for ready in [connection for connection in busy if connection in ready_ones]:
            answer = ready.recv()
            if isinstance(answer, Exception):
                raise answer
            busy.remove(ready)
            if (answer is None or more(answer)) and (following := next(orders, None)) is not None:
                ready.send(following)
                busy.append(ready)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, metavar="N", help="so many in all (1000)")
    parser.add_argument("--damages", type=float, default=0.3, metavar="P", help="between two starts (0.3)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all that is drawn (0)")
    parser.add_argument("--out", type=Path, default=Path("results/soak"), metavar="DIR", help="its folder")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="scenarios whose names begin so")
    parser.add_argument("--life", type=int, metavar="N", help="lives this one life again")
    parser.add_argument(
        "--result", type=Path, metavar="FILE.json", help="where counts are written in the end"
    )
    options = parser.parse_args(arguments)
    _warm(options.out)
    scenarios = [one for one in possible() if one.name.startswith(tuple(options.only or [""]))]
    soak = Soak(options.out, options.seed, options.damages, scenarios)
    try:
        if options.life is None:
            soak.go(options.kills)
        else:
            with _workers(soak, 1) as connections:
                orders = [("original", scenarios.index(soak.scenario(options.life))), ("live", options.life)]
                _do_all(connections, iter(orders), print)
    except Failure as failure:
        print(f"\nFAILED: {failure}\nAgain: {_again(options, failure)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\nstopped at {soak.ledger.kills:,} kills: the same command goes on")
        return 130
    print()
    if options.result is not None:
        publish(
            result(soak.ledger.lives, scenarios, f"python -m tools.soak {_plan(options)}"), options.result
        )
    return 0


def _again(options: argparse.Namespace, failure: Failure) -> str:
    """The command that lives the failed life once more."""
    number = str(failure).removeprefix("life ").partition(",")[0]
    life = f" --life {number}" if number.isdigit() else ""
    return f"python -m tools.soak {_plan(options)} --out {options.out}{life}"


def _plan(options: argparse.Namespace) -> str:
    """The flags that decide what is done."""
    only = f" --only {shlex.join(options.only)}" if options.only else ""
    return f"--kills {options.kills} --seed {options.seed} --damages {options.damages}{only}"


def _warm(out: Path) -> None:
    """Imports all that commands need, once; what is compiled is kept in the soak's folder."""
    cache = out.absolute() / "cache"
    os.environ |= {"XDG_CACHE_HOME": str(cache), "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor")}
    for name in ("pandas", "piaget.cli.run", "piaget.lab.making", "piaget.lab.runs", "piaget.lab.sweeps"):
        importlib.import_module(name)
    import torch

    torch.set_num_threads(1)


if __name__ == "__main__":
    sys.exit(main())
