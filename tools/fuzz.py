"""make fuzz: the properties of tests/test_fuzz.py for hours, with new examples in every round.

Each distinct exception that is no PiagetError is counted, and listed with an input: there is to be none.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple


class Finding(NamedTuple):
    """What came out that must not, and from which property."""

    property: str
    wrong: str


def read(folder: Path) -> tuple[int, dict[Finding, list[str]]]:
    """How many calls were made, and the findings among them with what was given."""
    calls, findings = 0, dict[Finding, list[str]]()
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            noted = json.loads(line)
            calls += 1
            if "wrong" in noted:
                told = f"{noted['given']}` said `{noted['details']}"
                findings.setdefault(Finding(noted["property"], noted["wrong"]), []).append(told)
    return calls, findings


def listed(findings: dict[Finding, list[str]]) -> str:
    """For people: the smallest input of each finding."""
    lines = []
    for finding, given in sorted(findings.items()):
        smallest = min(given, key=len)
        lines.append(
            f"- **{finding.wrong}** ({finding.property}, {len(given)} times)\n  given `{smallest}`\n"
        )
    return "\n".join(lines)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--hours", type=float, default=8.0, metavar="X", help="how long (8)")
    parser.add_argument(
        "--times", type=int, default=10, metavar="N", help="as many examples as in make test (10)"
    )
    parser.add_argument("--out", type=Path, default=Path("results/fuzz"), metavar="DIR", help="its folder")
    parser.add_argument("--only", default="", metavar="NAME", help="properties whose names have this in them")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {
        "PIAGET_FUZZ": str(options.out.absolute()),
        "PIAGET_FUZZ_TIMES": str(options.times),
    }
    until, findings = time.monotonic() + 3600 * options.hours, dict[Finding, list[str]]()
    while time.monotonic() < until:
        seed = random.randrange(2**32)
        words = ["-n", "2", "-q", f"--hypothesis-seed={seed}", "-k", options.only, "tests/test_fuzz.py"]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words], env=environment, capture_output=True, text=True
        )
        calls, findings = read(options.out)
        print(f"{calls:,} calls, {len(findings)} distinct findings (seed {seed})", flush=True)
        (options.out / "findings.md").write_text(listed(findings))
        if done.returncode != 0:
            print(done.stdout[-5000:])
            return 1
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
