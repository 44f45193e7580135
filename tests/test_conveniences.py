"""What makes it pleasant in Python: reprs, a bar, tables of the library that they came from."""

import pandas
import polars
import pytest

import piaget
from piaget.errors import unknown_task
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


@pytest.mark.parametrize(("algorithm", "counts"), [("compositional", True), ("no-components", False)])
def test_the_bar_tells_of_components_where_there_are_some(capsys, algorithm, counts):
    learner = piaget.Learner(algorithm=algorithm, width=4, epochs=2, initial_tasks=1)
    reports: list[piaget.EpochReport] = []
    learner.learn(make_task("one"), progress=True, on_epoch=reports.append)
    assert ("components" in capsys.readouterr().err) == counts
    assert {report.components for report in reports} == {4 if counts else 0}


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
    assert learner.predict_table(polars.from_pandas(new)).equals(found)


def test_a_table_answered_by_groups():
    table = only(frame(), "cost")
    learner = piaget.PriorLearner()
    learner.learn_all(from_table(table, group="site", target="cost"))
    new = only(frame(seed=9), "cost").drop(columns="cost").iloc[:4].assign(site="site 99")
    with pytest.warns(
        piaget.DataNote, match="'site 99': they are predicted from what the other groups share"
    ) as notes:
        found = learner.predict_table(new, interval=0.8)
    assert notes[0].filename == __file__  # where the user called, not somewhere in the library
    assert (found["predicted from"] == "other groups").all()
    assert (found["cost from"] < found["predicted cost"]).all()
    assert (found["predicted cost"] < found["cost to"]).all()


def test_a_name_that_is_nearly_known():
    learner = piaget.PriorLearner()
    learner.learn_all(from_table(only(frame(), "cost"), group="site", target="cost"))
    with pytest.raises(piaget.UnknownTaskError, match=r"known tasks: 'site 0', .*'site 5'$"):
        learner.forget("site 9")
    many = [f"town {i}" for i in range(30)] + ["Ulm", "Bern"]
    error = str(unknown_task("ulm", many))
    assert error.endswith("'town 19', and 12 more; did you mean 'Ulm'?")
    assert str(unknown_task("zzz", many)).endswith("'town 19', and 12 more")


def test_where_a_runs_learner_is(tmp_path):
    learner = piaget.PriorLearner()
    learner.learn_all(from_table(only(frame(), "cost"), group="site", target="cost"))
    learner.save(tmp_path / "seed-0" / "learner")
    for folder in (tmp_path, tmp_path / "seed-0"):
        with pytest.raises(piaget.LoadError, match=r"no learner: .*; there is one in .*seed-0/learner$"):
            piaget.load(folder)
