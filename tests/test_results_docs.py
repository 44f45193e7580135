"""docs/results.md is made of results/paper and of what was written by hand, and always the same."""

from pathlib import Path

import numpy as np
import pytest

from piaget.lab.collecting import add
from piaget.lab.folder import runs_below
from piaget.paper.presets import OBJECTS
from piaget.report.contents import Contents
from piaget.report.reading import read
from piaget.report.selection import Selection
from tests.made_runs import constant, write_run
from tools.results.__main__ import main
from tools.results.figures import ROWS, curves, gains
from tools.results.recommended import rows

ROOT = Path(__file__).parent.parent
BASES = ("er", "ewc", "nft")
METHOD = "soft-ordering/er/dynamic"


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """All methods on mnist with five seeds, those that the paper lacks, and landmine."""
    out = tmp_path_factory.mktemp("runs")
    levels = {"dynamic": 0.97, "compositional": 0.96, "joint": 0.8, "no-components": 0.75}
    levels["no-components-frozen"] = 0.76
    for base in BASES:
        for algorithm, level in levels.items():
            if algorithm == "no-components-frozen" and base != "er":
                continue
            structure = "monolithic" if algorithm.startswith("no") else "soft-ordering"
            for seed in range(5):
                lost = 0.0 if level > 0.9 else 0.02
                score = lambda i, j, at=level, by=lost, s=seed: at - by * (i - j) + 0.001 * (s + j % 3)  # noqa: E731
                method, every = f"{structure}/{base}/{algorithm}", 20 if base == "er" else None
                write_run(out, "mnist", method, seed, score, tasks=10, every=every)
    for seed in range(5):
        write_run(out, "mnist", "alone/fm/alone", seed, constant(0.9 + 0.001 * seed), tasks=10)
        write_run(out, "landmine", "linear/er/compositional", seed, constant(0.5))
    kept = tmp_path_factory.mktemp("kept")
    add(runs_below(out), kept)
    return kept


def selection_of(folder):
    return Selection(Contents(read([folder])))


def made(collected, folder, notes=None):
    notes = notes or folder / "no-notes"
    assert main([str(collected), "--docs", str(folder), "--notes", str(notes)]) == 0
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_committed_page_is_what_the_committed_results_give(tmp_path):
    """Only the texts: figures may differ in details from one version of matplotlib to the next."""
    notes = ROOT / "docs" / "results-notes"
    files = made(ROOT / "results" / "paper", tmp_path, notes)
    for name in ("results.md", "results.csv"):
        assert files[Path(name)].decode() == (ROOT / "docs" / name).read_text(), "give: make results"
    drawn = {path.name for path in (ROOT / "docs" / "pictures").glob("results-*.svg")}
    assert drawn == {path.name for path in files if path.suffix == ".svg"}


def test_the_recommended_method_beside_the_best_of_the_papers(tmp_path):
    """The best of those that were run on the same data, by the mean of paired differences."""
    levels = {"soft-ordering-scaled/fm/recommended": 0.95, "soft-ordering/er/dynamic": 0.90}
    levels |= {"soft-ordering/nft/dynamic": 0.94, "alone/fm/alone": 0.96}
    for method, level in levels.items():
        for seed in range(3):
            noise = 0.002 * seed if method.endswith("recommended") else 0.0
            write_run(tmp_path, "mnist", method, seed, constant(level + noise + 0.01 * (seed % 2)), tasks=6)
    (row,) = rows(selection_of(tmp_path))
    assert row[:3] == ("mnist", "3", "95.5 ± 0.4")
    assert (row[4], row[6]) == ("NFT Dyn. + Comp.", "2")
    assert row[7:10] == ("+1.20 ± 0.12", "+5.20 ± 0.12", "-0.80 ± 0.12")
    assert row[10] == "1.00"


def test_curves_of_several_streams_are_means_over_all_of_them(tmp_path):
    """One is evaluated on the way, the other when tasks are done: only there is a mean of both."""
    for seed in range(3):
        for stream, every, level in (("mnist", 20, 0.9), ("fashion", None, 0.8)):
            write_run(tmp_path, stream, METHOD, seed, constant(level), tasks=6, every=every)
    figure = curves(selection_of(tmp_path))
    assert figure is not None
    levels = [np.asarray(line.get_ydata(), dtype=float) for line in figure.axes[0].lines]
    np.testing.assert_allclose(np.concatenate(levels), 85.0)


def test_the_same_results_give_the_same_files(collected, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one = made(collected, tmp_path / "one")
    assert one == made(collected, tmp_path / "two")
    assert {path.name for path in one if path.suffix == ".svg"} == {
        "results-gains.svg",
        "results-curves.svg",
        "results-forgetting.svg",
    }


def test_objects_have_panels_of_their_own(collected, tmp_path):
    """Where all methods were run on them, beside the streams of pictures."""
    rows = {row.title: row for row in ROWS}
    selection = selection_of(collected)
    assert rows["soft ordering"].everywhere(selection) == ["mnist"]
    assert rows["Objects"].everywhere(selection) == []
    assert set(rows["soft ordering"].groups(selection, "nft", "alone")) == {"mnist"}
    committed = selection_of(ROOT / "results" / "paper")
    assert rows["Objects"].everywhere(committed) == list(OBJECTS)
    figure = gains(committed)
    assert figure is not None
    titles = [axis.get_title() for axis in figure.axes]
    assert "NFT, Objects\nrandom, circle, top-left, orange" in titles


def test_the_page(collected, tmp_path):
    text = made(collected, tmp_path)[Path("results.md")].decode()
    first, _, rest = text.partition("## How it is judged")
    assert "Of the paper's 357 numbers" in first
    assert first.count("![") == 3
    assert "| ER | No Comp., past frozen | 5 |" in rest
    assert "|  | Alone | 5 | 90.2 ± 0.1 |" in rest
    assert "piaget sweep mnist --adaptations all --seeds 5" in rest
    assert "### fera\nNot run: its data could not be had" in rest
    assert "piaget sweep cifar100 --adaptations all --seeds 10" in rest
    assert "**holds**" in rest
    assert "| abc | 0.1.0 | 2.13.0 | 3.11.7 | x86_64 | 75 |" in rest
    assert (tmp_path / "results.csv").read_text().count("\n") == 358


def test_notes_are_where_they_belong(collected, tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "linear.md").write_text("About linear models.\n")
    (notes / "zebra.md").write_text("## Zebras\nIn the end.\n")
    text = made(collected, tmp_path / "docs", notes)[Path("results.md")].decode()
    assert text.index("## Linear") < text.index("About linear models.") < text.index("## Soft layer ordering")
    assert text.index("## The paper's claims") < text.index("## Zebras")


def test_what_is_not_drawn_any_more_is_removed(collected, tmp_path):
    made(collected, tmp_path)
    files = made(tmp_path / "nothing", tmp_path)
    assert not [path for path in files if path.suffix == ".svg"]
    assert "not run **357**" in files[Path("results.md")].decode()
