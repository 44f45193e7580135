"""What the soak has done so far, in its folder; and its result, for docs/reliability.md."""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import piaget
from piaget.files import write_atomically
from tools.soak.lives import Life
from tools.soak.scenarios import Scenario

BEGIN, END = "<!-- the soak's last result -->", "<!-- end -->"


def versions() -> dict[str, str]:
    """What a result depends on."""
    import torch

    return {"piaget": piaget.__version__, "torch": torch.__version__, "python": platform.python_version()}


def code() -> str:
    """A hash of the library's sources: another library's lives do not count."""
    folder, digest = Path(piaget.__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass
class Ledger:
    """The lives that have ended, kept on disk after each of them."""

    path: Path
    plan: dict[str, Any]  # all that must be the same for the soak to go on
    lives: list[Life] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, plan: dict[str, Any]) -> Ledger:
        """The one that was begun with the same plan, or a new one."""
        if path.is_file():
            there = json.loads(path.read_text())
            if there["plan"] == plan:
                return cls(path, plan, [Life(**life) for life in there["lives"]])
        return cls(path, plan)

    def add(self, life: Life) -> None:
        """Takes a life, and is on disk."""
        self.lives.append(life)
        lives = [asdict(one) for one in self.lives]
        write_atomically(self.path, json.dumps({"plan": self.plan, "lives": lives}).encode())

    @property
    def kills(self) -> int:
        """In all lives that have ended well."""
        return sum(len(life.kills) for life in self.lives)

    @property
    def damages(self) -> int:
        """Files that were damaged."""
        return sum(len(life.damages) for life in self.lives)


def result(lives: Sequence[Life], scenarios: Iterable[Scenario], command: str) -> dict[str, Any]:
    """Counts, by scenario, signal, target, stage and file."""
    damages = [damage for life in lives for damage in life.damages]
    files: dict[str, dict[str, int]] = {}
    for file, outcome in sorted((damage["file"], damage["outcome"]) for damage in damages):
        files.setdefault(file, {"mended": 0, "refused": 0})[outcome] += 1
    return {
        "date": datetime.date.today().isoformat(),
        "command": command,
        "machine": f"{platform.machine()}, {platform.system()}",
        "versions": versions(),
        "minutes": round(sum(life.seconds for life in lives) / 60, 1),
        **_counts(lives),
        "failures": 0,
        "scenarios": [
            {"name": one.name, **_counts([life for life in lives if life.scenario == one.name])}
            for one in scenarios
        ],
        **{f"{what}s": _tally(kill[what] for life in lives for kill in life.kills) for what in KILL},
        "files": files,
    }


KILL = ("signal", "target", "stage")


def _counts(lives: Sequence[Life]) -> dict[str, int]:
    outcomes = Counter(damage["outcome"] for life in lives for damage in life.damages)
    return {
        "lives": len(lives),
        "kills": sum(len(life.kills) for life in lives),
        "damages": sum(outcomes.values()),
        "mended": outcomes["mended"],
        "refused": outcomes["refused"],
    }


def _tally(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items(), key=lambda pair: -pair[1]))


# --- for people -------------------------------------------------------------------------------------------


def page(found: Mapping[str, Any]) -> str:
    """The result as docs/reliability.md has it."""
    used = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    head = (
        f"{found['date']}, {used}, `{found['command']}`: **{found['kills']:,} kills** and "
        f"{found['damages']:,} damaged files in {found['lives']:,} lives, {found['failures']} failures."
    )
    lines = ["| scenario | lives | kills | damaged files | mended | refused |", "|---|---|---|---|---|---|"]
    for row in found["scenarios"]:
        counts = " | ".join(f"{row[name]:,}" for name in ("lives", "kills", "damages", "mended", "refused"))
        lines.append(f"| {row['name']} | {counts} |")
    tallies = [f"By {what}: {_shown(found[f'{what}s'])}." for what in KILL]
    files = [f"{file} {one['mended']} and {one['refused']}" for file, one in found["files"].items()]
    tallies += ["Damaged files, mended and refused: " + "; ".join(files) + "."] if files else []
    return "\n\n".join([head, "\n".join(lines), *tallies])


def _shown(tally: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in tally.items())


def publish(found: Mapping[str, Any], path: Path) -> None:
    """Writes the result, and quotes it in the page of the same name, if there is one."""
    path.write_text(json.dumps(found, indent=1) + "\n")
    page_file = path.with_suffix(".md")
    if page_file.is_file():
        before, _, rest = page_file.read_text().partition(BEGIN)
        page_file.write_text(f"{before}{BEGIN}\n{page(found)}\n{END}{rest.partition(END)[2]}")
