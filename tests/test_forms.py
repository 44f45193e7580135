"""A report's tables as Markdown, CSV and LaTeX."""

import csv
import io

from piaget.report import forms
from piaget.report.statistics import spread


def table():
    made = forms.Table("t", "A & B", "100 % of it_all.", ["method", "score", "n"])
    made.add(0, "a|b <c> $x$", forms.number(1.25, 0.5), "7")
    made.add(1, "d", forms.number(2.0), "8")
    forms.mark_best(made, 1, True, range(2))
    return made


def test_markdown_is_escaped():
    assert "| a\\|b \\<c\\> $x$ | 1.2 ± 0.5 | 7 |" in forms.as_markdown(table())
    assert "**2.0**" in forms.as_markdown(table())


def test_csv_has_numbers_in_full():
    rows = list(csv.DictReader(io.StringIO(forms.as_csv(table()))))
    assert rows[0] == {"method": "a|b <c> $x$", "score": "1.25", "score s.e.": "0.5", "n": "7"}
    assert rows[1]["score s.e."] == ""


def test_latex_is_escaped():
    text = forms.as_latex(table())
    assert r"\caption{A \& B. 100 \% of it\_all.}" in text
    assert r"a|b $<$c$>$ \$x\$ & $1.2 \pm 0.5$ & 7 \\" in text
    assert r"$\mathbf{2.0}$" in text


def test_what_rounds_to_the_same_is_best_together():
    made = forms.Table("t", "t", "", ["x"])
    for value in (1.04, 0.96, 0.5):
        made.add(None, forms.number(value))
    forms.mark_best(made, 0, True, range(3))
    assert [row[0].best for row in made.rows] == [True, True, False]


def test_thousands_are_compared_as_numbers():
    made = forms.Table("t", "t", "", ["rmse"])
    for value, text in ((2870.0, "2,870"), (990.0, "990"), (10000.0, "10,000")):
        made.add(None, forms.Cell(text, value))
    forms.mark_best(made, 0, False, range(3))
    assert [row[0].best for row in made.rows] == [False, True, False]


def test_positions_are_spread_from_first_to_last():
    assert spread(3, 10) == [0, 1, 2]
    assert spread(50, 10)[0] == 0
    assert spread(50, 10)[-1] == 49
    assert len(spread(50, 10)) == 10
    assert spread(0, 10) == []
