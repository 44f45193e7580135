"""What makes it pleasant in Python: reprs, a bar, tables of the library that they came from."""

import pandas
import polars
import pytest

import piaget
from piaget.streams import from_table
from piaget.streams.table_predictions import predict_table
from tests.small import make_task
from tests.tables import frame, only


def test_a_learner_says_what_it_knows():
    learner = piaget.Learner(width=4, epochs=2, initial_tasks=2)
    assert repr(learner) == "Learner(soft-ordering/er/dynamic, 0 tasks learned, 0 components)"
    learner.learn(make_task("a"))
    assert repr(learner) == "Learner(soft-ordering/er/dynamic, 0 tasks learned, 1 pending, 0 components)"
    learner.learn(make_task("b"))
    assert repr(learner) == "Learner(soft-ordering/er/dynamic, 2 tasks learned, 4 components)"


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (make_task("a", n=30), "Task('a', multiclass: 0, 1, 2; inputs (6,); "),
        (make_task("a", "regression", 0, n=30), "Task('a', regression; inputs (6,); "),
        (make_task("a", classes=9, n=90), "Task('a', multiclass: 0, 1, 2, 3, 4, ...; inputs (6,); "),
        (
            piaget.Task.from_arrays("b", [[0.0], [1]] * 10, ["no", "yes"] * 10),
            "Task('b', binary: 'no', 'yes'; inputs (1,); 12 train, 4 validation, 4 test samples)",
        ),
    ],
)
def test_a_task_says_what_it_is(task, says):
    assert repr(task).startswith(says)


def test_a_bar_of_epochs(capsys):
    seen = []
    learner = piaget.Learner(width=4, epochs=3, initial_tasks=1)
    learner.learn(make_task("[red]one"), progress=True, on_epoch=lambda report: seen.append(report.epoch))
    said = capsys.readouterr()
    assert "[red]one" in said.err  # a name is no markup
    assert "3/3" in said.err
    assert said.out == ""
    assert seen == [1, 2, 3]
    quiet = piaget.Learner(width=4, epochs=3, initial_tasks=1)
    rows = quiet.learn(make_task("[red]one"))
    assert capsys.readouterr() == ("", "")
    assert rows == piaget.Learner(width=4, epochs=3, initial_tasks=1).learn(
        make_task("[red]one"), progress=True
    )


def test_polars_in_and_out():
    table = only(frame(), "cost")
    learner = piaget.Learner("linear", algorithm="compositional", epochs=3)
    for task in from_table(polars.from_pandas(table), group="site", target="cost"):
        learner.learn(task)
    new = only(frame(seed=9), "cost").drop(columns="cost")
    expected = predict_table(learner, new)
    assert isinstance(expected, pandas.DataFrame)
    found = predict_table(learner, polars.from_pandas(new))
    assert isinstance(found, polars.DataFrame)
    assert found.columns == list(expected.columns)
    assert found["predicted cost"].to_list() == expected["predicted cost"].tolist()
    assert predict_table(learner, polars.from_pandas(new).lazy()).equals(found)
