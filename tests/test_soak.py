"""The soak notices what must not be. (`make soak` is the long one.)"""

import json
import random
import re
from pathlib import Path

import pytest

from piaget.lab import checkpoint, row_file
from piaget.scoring.rows import COLUMNS
from tools.soak import ledger
from tools.soak.__main__ import Soak
from tools.soak.damage import KINDS, damage
from tools.soak.lives import Failure, Life, stage
from tools.soak.scenarios import ALL, Scenario

TINY = "--option tasks=5 --option train_size=20 --epochs 2 --every 1 --quiet --set width=8 --set depth=2"
RUN = Scenario("tiny", f"run digits {TINY}")
DOCS = Path(__file__).parents[1] / "docs"


def soak(out: Path, scenario: Scenario = RUN, damages: float = 0.0) -> Soak:
    return Soak(out, 0, damages, [scenario])


def test_a_few_kills_and_on_from_there(tmp_path, capsys):
    soak(tmp_path).go(kills=2)
    first = soak(tmp_path).ledger
    assert first.kills >= 2
    soak(tmp_path).go(kills=first.kills + 1)
    second = soak(tmp_path).ledger
    assert second.kills > first.kills
    assert second.lives[: len(first.lives)] == first.lives
    assert f"{second.kills} kills" in capsys.readouterr().out
    assert not list(tmp_path.glob("life-*"))


def _other_numbers(monkeypatch):
    """Learners that go on draw other numbers than they would have."""
    load = checkpoint.load

    def loaded(folder, learners, streams, *more):
        kept = load(folder, learners, streams, *more)
        if kept is not None:
            for learner in learners:
                learner.state.generator.manual_seed(7)
        return kept

    monkeypatch.setattr(checkpoint, "load", loaded)


def _lost_rows(monkeypatch):
    """A run that goes on forgets the first of its rows."""
    opened, append = row_file.RowFile.__init__, row_file.RowFile.append

    def opening(self, path, size=None, *more):
        opened(self, path, size, *more)
        self.forgets = size is not None

    def appending(self, rows):
        append(self, rows[1:] if self.forgets else rows)
        self.forgets = self.forgets and not rows

    monkeypatch.setattr(row_file.RowFile, "__init__", opening)
    monkeypatch.setattr(row_file.RowFile, "append", appending)


@pytest.mark.parametrize("fault", [_other_numbers, _lost_rows])
def test_a_planted_fault_is_found(fault, tmp_path, monkeypatch):
    fault(monkeypatch)
    with pytest.raises(Failure, match="other bytes than in the uninterrupted run"):
        soak(tmp_path).go(kills=60)


def test_an_error_about_nothing_is_found(tmp_path):
    with pytest.raises(Failure, match="does not even run"):
        soak(tmp_path, Scenario("wrong", "run digits --epochs many")).go(kills=1)


def test_every_kind_of_damage_is_one_and_can_be_undone(tmp_path):
    rows = ",".join(COLUMNS) + "\n" + "a,b,0\n" * 20
    (tmp_path / "rows.csv").write_text(rows)
    rng, kinds = random.Random(0), set()
    for done in (damage(tmp_path, rng) for _ in range(50)):
        assert done is not None
        assert done.there()
        assert (tmp_path / "rows.csv").read_text(errors="replace") != rows
        done.undo()
        assert not done.there()
        assert (tmp_path / "rows.csv").read_text() == rows
        kinds.add(done.kind)
        assert done.named(f"{tmp_path / 'rows.csv'} was changed")
        assert not done.named("rows.csv was changed, somewhere")
    assert kinds == set(KINDS)


def test_stages(tmp_path):
    assert stage(tmp_path) == "start"
    run = tmp_path / "seed-0"
    run.mkdir()
    (run / "run.json").write_text('{"status": "running"}')
    assert stage(tmp_path) == "initialization"
    (run / "rows.csv").write_text(",".join(COLUMNS) + "\nd,m,0,t,1,adaptation,t,test,accuracy,,,1.0\n")
    assert stage(tmp_path) == "adaptation"
    (run / "learner").mkdir()
    (run / "learner" / "learner.json").touch()
    assert stage(tmp_path) == "saving the learner"
    (run / "run.json").write_text('{"status": "done"}')
    assert stage(tmp_path) == "after the end"


def test_all_there_is_to_choose_is_in_some_scenario():
    from piaget.method.choices import ADAPTATIONS, ALGORITHMS, STRUCTURES

    words = " ".join(scenario.command for scenario in ALL).split()
    for name in (*STRUCTURES[:1], *STRUCTURES[2:], *ADAPTATIONS, *ALGORITHMS):  # soft ordering is the default
        assert name in words, name
    assert len({scenario.name for scenario in ALL}) == len(ALL)


def test_the_result_and_its_page(tmp_path):
    lives = [
        Life(
            0,
            "tiny",
            [{"signal": "SIGKILL", "target": "parent", "stage": "joint"}] * 3,
            [{"kind": "cut", "file": "rows.csv", "outcome": "refused"}],
        )
    ]
    found = ledger.result(lives, [RUN], "make soak")
    assert (found["kills"], found["refused"], found["stages"]) == (3, 1, {"joint": 3})
    page = tmp_path / "page.md"
    page.write_text(f"before\n{ledger.BEGIN}\nold\n{ledger.END}\nafter\n")
    ledger.publish(found, tmp_path / "page.json")
    assert page.read_text() == f"before\n{ledger.BEGIN}\n{ledger.page(found)}\n{ledger.END}\nafter\n"


def test_the_page_quotes_the_last_result():
    found = json.loads((DOCS / "reliability.json").read_text())
    page = (DOCS / "reliability.md").read_text()
    assert f"{ledger.BEGIN}\n{ledger.page(found)}\n{ledger.END}" in page
    assert sum(row["kills"] for row in found["scenarios"]) == found["kills"]
    assert found["failures"] == 0
    named = {Path(name).name for name in re.findall(r"tests/test_\w+\.py", page)}
    assert {name for name in named if not (DOCS.parent / "tests" / name).is_file()} == set()
