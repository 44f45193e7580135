"""Class weights, and scores by class: against scikit-learn's, and what they leave as it is."""

import json

import numpy as np
import pytest
import torch
from sklearn.metrics import precision_recall_fscore_support, roc_auc_score
from sklearn.utils.class_weight import compute_class_weight

import piaget
from piaget import prior
from piaget.data.class_weight import check_class_weight, chosen, from_text, weights_of
from piaget.errors import LoadError, SettingError
from piaget.prior import Values
from piaget.report.reading import read
from piaget.report.table_describe import report_data
from piaget.scoring.answer_scores import Answers, class_scores, scores_by_class
from piaget.streams import from_table
from piaget.streams.table_predictions import predict_table
from tests.commands import said, words
from tests.tables import visits

LABELS = ("rare", "some", "often")


def rare(groups=range(8), rows=60, seed=0):
    """Three classes, one of which is rare, of sites whose effects differ."""
    table = visits(groups, rows, seed)
    table["state"] = np.select([table["stay"] > 15, table["stay"] > 12], ["rare", "some"], "often")
    return table.drop(columns=["ill", "stay"])


@pytest.fixture(scope="module")
def stream():
    return from_table(rare(), group="site", target="state")


def learned(stream, **settings):
    learner = piaget.Learner.for_stream(stream, **settings)
    assert isinstance(learner, piaget.PriorLearner)
    learner.learn_all(stream)
    return learner


@pytest.fixture(scope="module")
def learner(stream):
    return learned(stream)


def of(class_weight, counts):
    weights = weights_of(class_weight, LABELS, counts)
    assert weights is not None
    return weights


def test_balanced_weights_are_scikit_learns():
    y = np.random.default_rng(0).choice(3, 200, p=[0.1, 0.2, 0.7])
    weights = of("balanced", torch.from_numpy(np.bincount(y)))
    expected = compute_class_weight("balanced", classes=np.arange(3), y=y)
    np.testing.assert_allclose(weights.numpy(), expected)
    absent = of("balanced", torch.tensor([0, 5, 15]))
    np.testing.assert_allclose(absent.numpy(), [1, 2, 2 / 3])
    assert weights_of(None, LABELS, torch.tensor([1, 1, 1])) is None
    assert of({"some": 3}, torch.tensor([1, 1, 1])).tolist() == [1, 3, 1]


def test_the_answer_costs_least_in_expectation():
    """By a plain loop: an error costs its true class's weight."""
    rng = np.random.default_rng(1)
    p, weights = rng.dirichlet([1, 1, 1], 100), np.array([5.0, 2.0, 0.5])
    costs = [[sum(weights[c] * row[c] for c in range(3) if c != answer) for answer in range(3)] for row in p]
    assert chosen(torch.from_numpy(p), torch.from_numpy(weights)).tolist() == np.argmin(costs, 1).tolist()


def test_scores_by_class_are_scikit_learns():
    rng = np.random.default_rng(2)
    y, p = rng.choice(3, 300, p=[0.1, 0.3, 0.6]), rng.dirichlet([1, 2, 3], 300)
    weights = torch.tensor([4.0, 1.0, 1.0], dtype=torch.float64)
    answers = (p * weights.numpy()).argmax(1)
    precision, recall, f1, rows = precision_recall_fscore_support(y, answers)
    found = scores_by_class(torch.from_numpy(p), torch.from_numpy(y), weights)
    assert [one.rows for one in found] == rows.tolist()
    assert [one.answered for one in found] == np.bincount(answers, minlength=3).tolist()
    for c, one in enumerate(found):
        expected = {"precision": precision[c], "recall": recall[c], "f1": f1[c]}
        assert one.found() == pytest.approx(expected | {"auc": roc_auc_score(y == c, p[:, c])})
    accuracy = class_scores(torch.from_numpy(p), torch.from_numpy(y), weights)["accuracy"]
    assert accuracy == pytest.approx((answers == y).mean())


def test_what_has_no_rows_has_no_scores():
    p = torch.tensor([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0]], dtype=torch.float64)
    first, second, third = scores_by_class(p, torch.tensor([0, 1]))
    assert first.found() == {"precision": 0.5, "recall": 1.0, "f1": pytest.approx(2 / 3), "auc": 1.0}
    assert second.found() == {"recall": 0.0, "f1": 0.0, "auc": 1.0}
    assert third.found() == {}
    with pytest.raises(SettingError, match="no scores by class"):
        Answers(None, Values(*torch.ones(3, 2))).by_class(torch.zeros(2))


def test_probabilities_stay_and_answers_change(stream, learner):
    weighted = learned(stream, class_weight="balanced")
    assert weighted.class_weight == "balanced"
    test = stream[0].test
    p = weighted.predict_proba(test.x, "site 0")
    torch.testing.assert_close(p, learner.predict_proba(test.x, "site 0"), rtol=0, atol=0)
    weights = weighted.class_weights()
    assert list(weights) == list(weighted.labels) == ["often", "rare", "some"]
    assert weights["rare"] > weights["some"] > weights["often"]
    best = (p.numpy() * list(weights.values())).argmax(1)
    assert weighted.predict(test.x, "site 0").tolist() == [weighted.labels[i] for i in best]
    assert set(learner.class_weights().values()) == {1.0}
    rows = {one: only_recall(one.evaluate(stream, by_class=True)) for one in (weighted, learner)}
    assert rows[weighted] > rows[learner] + 0.05  # of the rare class, more are found


def only_recall(rows):
    return np.mean([row["value"] for row in rows if row["metric"] == "recall of rare"])


def test_it_may_be_set_later_and_is_saved(stream, learner, tmp_path):
    other = learned(stream)
    other.class_weight = {"rare": 10, "often": 1}
    other.save(tmp_path / "a")
    loaded = piaget.PriorLearner.load(tmp_path / "a")
    assert loaded.class_weight == {"rare": 10.0, "often": 1.0}
    x = stream[1].test.x
    assert loaded.predict(x, "site 1").tolist() == other.predict(x, "site 1").tolist()
    assert loaded.predict(x, "site 1").tolist() != learner.predict(x, "site 1").tolist()
    described = json.loads((tmp_path / "a" / "learner.json").read_text())
    assert described["settings"]["class_weight"] == [["rare", 10.0], ["often", 1.0]]
    described["settings"]["class_weight"] = [["none such", 2.0]]
    (tmp_path / "a" / "learner.json").write_text(json.dumps(described))
    with pytest.raises(LoadError):
        piaget.load(tmp_path / "a")


def test_counts_are_of_all_rows_that_were_learned(stream):
    """Also of those that are not kept; and none of what was forgotten."""
    tasks = list(stream)
    learner = piaget.PriorLearner(stream.labels, rows=10, class_weight="balanced")
    learner.learn_all(tasks[:3])
    learner.learn(tasks[3])

    def expected(some):
        y = [learner.common.rows(task, ["train", "validation"])[1] for task in some]
        return torch.bincount(torch.cat(y), minlength=3).tolist()

    assert learner.known.class_counts.tolist() == expected(tasks[:4])
    learner.forget("site 1")
    assert learner.known.class_counts.tolist() == expected([tasks[i] for i in (0, 2, 3)])
    plain, tree = prior.describe(learner.known)
    assert prior.restore(plain, tree).class_counts.tolist() == learner.known.class_counts.tolist()
    for own in tree["tasks"].values():
        del own["counts"]  # as an older version wrote it: of the rows that are kept
    assert prior.restore(plain, tree).class_counts.sum() == 30
    tree["tasks"]["0"]["counts"] = torch.tensor([1, 2, 3, 4])
    with pytest.raises(ValueError, match="counts of classes"):
        prior.restore(plain, tree)


@pytest.mark.parametrize(
    "wrong", ["even", {}, {"rare": 0}, {"rare": -1.0}, {"rare": float("nan")}, {"rare": "x"}, 3, ["rare"]]
)
def test_wrong_weights(wrong):
    with pytest.raises(SettingError, match="class_weight"):
        piaget.PriorLearner(class_weight=wrong)


def test_weights_of_other_classes_or_of_values(stream):
    with pytest.raises(SettingError, match="no class 'ill'; expected 'often', 'rare', 'some'"):
        piaget.Learner.for_stream(stream, class_weight={"ill": 2.0})
    values = from_table(visits(range(4)).drop(columns="ill"), group="site", target="stay")
    with pytest.raises(SettingError, match="the target is a number"):
        piaget.Learner.for_stream(values, class_weight="balanced")
    learner = piaget.PriorLearner(class_weight="balanced")
    with pytest.raises(SettingError, match="the target is a number"):
        learner.learn(values[0])
    assert learner.tasks == []
    with pytest.raises(SettingError, match="class_weight: a setting of the prior"):
        piaget.Learner.for_stream(stream, class_weight="balanced", structure="soft-ordering")


def test_as_text():
    assert from_text("balanced", LABELS) == "balanced"
    assert from_text(None, LABELS) is None
    assert from_text("a=b=2, 1 = 3", ["a=b", 1]) == {"a=b": 2.0, 1: 3.0}
    assert check_class_weight({np.int64(1): np.float32(2)}) == {1: 2.0}


def test_one_metric_only(stream, learner):
    assert {row["metric"] for row in learner.evaluate(stream, metric="loss")} == {"loss"}
    only = learner.evaluate(stream[0], metric="recall", by_class=True)
    assert {row["metric"] for row in only} <= {f"recall of {label}" for label in learner.labels}
    assert len(only) > 1
    with pytest.raises(SettingError, match="metric=rmse: expected loss, accuracy, auc for a multiclass"):
        learner.evaluate(stream, metric="rmse")


# --- through the command line -------------------------------------------------------------------------------


def test_the_command_line(tmp_path, capsys):
    rare().to_csv(tmp_path / "january.csv", index=False)
    run = words("run --group site --target state --quiet --table", tmp_path / "january.csv")
    run = [*run, "--class-weight", "rare=6,often=1", "--by-class", "--out", str(tmp_path / "out")]
    shown = said(capsys, *run)
    assert shown.code == 0, shown.err
    assert "precision     recall         F1        AUC     weight" in shown.out
    line = next(line for line in shown.out.splitlines() if line.startswith("rare "))
    assert line.endswith("6.000")
    summary = json.loads((tmp_path / "out" / "seed-0" / "summary.json").read_text())
    (one,) = (one for one in summary["classes"] if one["label"] == "rare")
    assert line.split()[1:3] == [str(one["rows"]), str(one["answered"])]
    assert float(line.split()[4]) == pytest.approx(one["recall"], abs=5e-4)
    assert "Cost of an error" in shown.out
    # Predictions are weighted, probabilities are not.
    learner = piaget.PriorLearner.load(tmp_path / "out" / "seed-0" / "learner")
    answers = predict_table(learner, rare(seed=3).drop(columns="state"), proba=True)
    p = answers[[f"probability of {label}" for label in learner.labels]].to_numpy()
    np.testing.assert_allclose(p.sum(1), 1)
    expected = (p * [1.0, 6.0, 1.0]).argmax(1)
    assert answers["predicted state"].tolist() == [learner.labels[i] for i in expected]
    assert (expected != p.argmax(1)).any()
    again = said(capsys, *words("report --no-figures --quiet", tmp_path / "out", "--out", tmp_path / "page"))
    assert again.code == 0, again.err
    assert (tmp_path / "page" / "tables" / "classes.csv").is_file()
    (data,) = report_data(read([tmp_path / "out"]).runs, [], title="t", command="c")["runs"]
    assert [one["weight"] for one in data["classes"]] == [1.0, 6.0, 1.0]
    loss, accuracy, _ = data["metrics"]
    assert "log-loss" in str(loss["verdict"])
    assert str(accuracy["verdict"]).startswith("no verdict, since classes have weights")
    assert "weight x probability" in accuracy["words"]


def test_wrong_words_are_refused_before_any_work(tmp_path, capsys):
    rare(range(4)).to_csv(tmp_path / "january.csv", index=False)
    run = words("run --group site --target state --quiet --table", tmp_path / "january.csv")
    for weight, why in (("even", "expected balanced, or CLASS=WEIGHT"), ("rare=x", "could not convert")):
        with pytest.raises(SystemExit):
            said(capsys, *run, "--class-weight", weight, "--out", tmp_path / "out")
        assert why in capsys.readouterr().err
    for weight, why in (
        ("rare=-1", "weights above 0"),
        ("ill=2", "no class 'ill'; expected 'often', 'rare', 'some'"),
    ):
        refused = said(capsys, *run, "--class-weight", weight, "--out", tmp_path / "out")
        assert refused.code != 0
        assert why in refused.err
        assert not (tmp_path / "out").exists()
    deep = said(
        capsys, *run, *words("--class-weight balanced --structure soft-ordering --out"), tmp_path / "o"
    )
    assert deep.code != 0
    assert "without --structure" in deep.err
