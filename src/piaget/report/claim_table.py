"""The table of the paper's claims in a report."""

from __future__ import annotations

from statistics import median

from piaget.report.claim_list import CLAIMS
from piaget.report.contents import Contents
from piaget.report.forms import Table, number
from piaget.report.selection import Selection


def claims(contents: Contents) -> Table:
    """What the paper says in words, as far as these runs tell."""
    table = Table(
        "claims",
        "The paper's claims",
        "Each is checked by comparing runs seed by seed (docs/results.md says how). It holds if the numbers "
        "are above 0 on average, significantly so in at least one comparison (paired t-test at 5 %, by "
        "Holm's method), and in none significantly below. Number, Cohen's d: the median over comparisons. "
        "Reduced: how many comparisons are of less than the paper's data, epochs or channels.",
        [
            "claim",
            "read as",
            "verdict",
            "comparisons",
            "for",
            "against",
            "reduced",
            "number",
            "unit",
            "Cohen's d",
        ],
    )
    selection = Selection(contents)
    for claim in CLAIMS:
        found = claim.check(selection)
        if found.comparisons:
            reduced = [one for one in found.comparisons if one.reduced]
            counts = map(len, (found.comparisons, found.supporting, found.against, reduced))
            mean = number(median(one.mean for one in found.comparisons), digits=2)
            effect = number(median(one.effect for one in found.comparisons), digits=1)
            cells = [number(count, digits=0) for count in counts]
            table.add(None, claim.sentence, claim.reading, found.verdict, *cells, mean, claim.unit, effect)
    return table
