"""The recommended method beside the paper's, stream by stream: a table of docs/results.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from piaget.lab.final_table import mean_and_error
from piaget.method.choices import adaptation_of
from piaget.paper.names import paper_methods
from piaget.paper.presets import IMAGES, OBJECTS
from piaget.report.claims import Comparison, Side, difference
from piaget.report.selection import Chosen, Selection, components, final

OURS = Side(adaptation_of("recommended"), "recommended")
REPLAY = Side("er", "dynamic")
ALONE = Side("fm", "alone")
TITLE = "The recommended method and the paper's, stream by stream"
ABOUT = """Accuracy in %, differences paired by seed, with standard errors. Best: of the paper's 14 (as
many as were run), the one it is least ahead of on these very test data, which no user could know before.
Steps: those of the recommended method, divided by those of dynamic with replay. [What it is](recommended.md)
"""
HEAD = (
    *("stream", "seeds", "recommended", "components", "best of the paper's", "its components", "of"),
    *("more than the best", "more than dynamic, ER", "more than each task alone", "steps"),
)


def rows(selection: Selection) -> Iterator[Sequence[str]]:
    """Of every stream with soft ordering on which the method was run."""
    for stream in (*IMAGES, "combined", *OBJECTS):
        ours = _found(selection, stream, OURS)
        if ours is None:
            continue
        against = [Side(method.adaptation, method.algorithm) for method in paper_methods("soft-ordering")]
        scores = ours.values(selection.contents, final)
        pairs = [(side, one) for side in against for one in _compared(selection, stream, side)]
        pairs = [(side, one) for side, one in pairs if len(one.values) == len(scores)]
        if not pairs:
            continue
        best, lead = min(pairs, key=lambda pair: pair[1].mean)
        theirs = _found(selection, stream, best)
        yield (
            stream + (f" ({ours.reduced})" if ours.reduced else ""),
            str(len(scores)),
            _shown(list(scores.values())),
            _components(selection, ours),
            best.full_label,
            "-" if theirs is None or best.algorithm == "no-components" else _components(selection, theirs),
            str(len(pairs)),
            _shown(lead.values, "+", 2),
            *(_lead(selection, stream, side) for side in (REPLAY, ALONE)),
            _steps(ours, _found(selection, stream, REPLAY)),
        )


def _found(selection: Selection, stream: str, side: Side) -> Chosen | None:
    return selection.find(stream, side.structure, side.base, side.algorithm)


def _compared(selection: Selection, stream: str, side: Side) -> list[Comparison]:
    return [one for one in difference(selection, stream, OURS, side) if len(one.values) > 1]


def _lead(selection: Selection, stream: str, side: Side) -> str:
    return "".join(_shown(one.values, "+", 2) for one in _compared(selection, stream, side))


def _shown(values: Sequence[float], sign: str = "", digits: int = 1) -> str:
    mean, error = mean_and_error(values)
    return f"{mean:{sign}.{digits}f} ± {error:.{digits}f}"


def _components(selection: Selection, chosen: Chosen) -> str:
    counts = chosen.values(selection.contents, components, 1.0).values()
    return f"{mean_and_error(list(counts))[0]:.1f}" if counts else ""


def _steps(ours: Chosen, theirs: Chosen | None) -> str:
    """Over the seeds that both have."""
    if theirs is None or theirs.reduced != ours.reduced:
        return ""
    one, two = ({run.seed: run.costs[1] for run in chosen.group.counted} for chosen in (ours, theirs))
    pairs = [(a, b) for seed, a in one.items() if a and (b := two.get(seed))]
    return f"{sum(a for a, _ in pairs) / sum(b for _, b in pairs):.2f}" if pairs else ""
