"""The recommended algorithm is dynamic with other defaults, and nothing else."""

import json
from dataclasses import replace
from typing import Any

import pytest

import piaget
from benchmarks.methods import variant
from piaget.lab.configuration import configure
from piaget.lab.folder import note, runs_below
from piaget.paper.names import COMPARED, Method, goes_together, in_words, methods
from tests.commands import said, words
from tests.test_extending import SMALL

SPELT_OUT: dict[str, Any] = {
    "structure": "soft-ordering-scaled",
    "rate_schedule": "cosine",
    "learning_rate": 3e-3,
    "acceptance": "validated",
    "expansion": "second-attempt",
}


def test_it_is_dynamic_with_its_parts_chosen():
    recommended = piaget.Learner(algorithm="recommended").settings
    dynamic = piaget.Learner(adaptation="fm", algorithm="dynamic", **SPELT_OUT).settings
    assert recommended.algorithm.name == "recommended"
    assert replace(recommended, algorithm=replace(recommended.algorithm, name="dynamic")) == dynamic
    assert dynamic != piaget.Learner(algorithm="dynamic").settings


def test_what_is_chosen_goes_before():
    chosen: dict[str, Any] = {"learning_rate": 0.5, "start": "drawn", "expansion": "none"}
    settings = piaget.Learner("soft-gating", "nft", "recommended", **chosen).settings
    assert settings.method == "soft-gating/nft/recommended"
    assert settings.learning_rate == 0.5
    assert settings.start == piaget.Learner().settings.start
    assert not settings.algorithm.expansion.proposes
    own = piaget.Learner(piaget.SoftOrdering(), algorithm="recommended").settings
    assert own.structure == piaget.SoftOrdering()


def test_a_structure_that_is_named_is_the_one_that_is_used(tmp_path, capsys):
    """In Python, in a run, in a sweep and where methods are compared; unless it is named, it is scaled."""
    assert (
        piaget.Learner("soft-ordering", algorithm="recommended").settings.structure == piaget.SoftOrdering()
    )
    assert configure(stream="digits", algorithm="recommended")["structure"] == "soft-ordering-scaled"
    named = configure(stream="digits", structure="soft-ordering", algorithm="recommended")
    assert named["structure"] == "soft-ordering"
    sweep = "sweep digits --algorithms recommended --seeds 1 --epochs 2 --option tasks=3 --workers 1"
    for flag, out in (("", "a"), (" --structures soft-ordering soft-ordering-scaled", "b")):
        assert said(capsys, *words(sweep + flag, out=tmp_path / out)).code == 0
    trained = {
        out: {json.loads(run.read_text())["learner"]["structure"]["part"] for run in found}
        for out in ("a", "b")
        for found in [list((tmp_path / out).rglob("run.json"))]
    }
    assert trained == {"a": {"Scaled"}, "b": {"Scaled", "SoftOrdering"}}
    methods = [{"algorithm": "recommended"}, {"algorithm": "recommended", "structure": "soft-ordering"}]
    rows = piaget.lab.compare(methods, [("digits", {"tasks": 3})], [0], tmp_path / "c", epochs=2)
    assert {row["structure"] for row in rows} == {"soft-ordering", "soft-ordering-scaled"}


def test_a_method_by_names_has_what_its_algorithm_has():
    assert Method("fm", "recommended").structure == "soft-ordering-scaled"
    assert Method("fm", "recommended", "soft-ordering").structure == "soft-ordering"
    assert Method("er", "dynamic").structure == "soft-ordering"


def test_runs_that_development_versions_noted_otherwise_go_on_as_they_are(tmp_path, capsys):
    """They called the structure soft-ordering, and trained it scaled."""
    run = "run --stream digits --algorithm recommended --epochs 2 --option tasks=4 --set width=8"
    assert said(capsys, *words(run, out=tmp_path / "r")).code == 0
    (path,) = (tmp_path / "r").rglob("run.json")
    noted = json.loads(path.read_text())
    assert noted["configuration"]["structure"] == "soft-ordering-scaled"
    note(path.parent, configuration=noted["configuration"] | {"structure": "soft-ordering"})
    assert '"soft-ordering"' in path.read_text()
    (found,) = runs_below(tmp_path / "r")
    assert found.configuration["structure"] == "soft-ordering-scaled"
    rows = (path.parent / "rows.csv").read_bytes()
    assert said(capsys, *words(run, out=tmp_path / "r")).code == 0  # it is done
    assert (path.parent / "rows.csv").read_bytes() == rows
    other = said(capsys, *words(run + " --structure soft-ordering", out=tmp_path / "r"))
    assert other.code == 2
    assert "'soft-ordering-scaled' there, 'soft-ordering' now" in other.err


def test_sweeps_leave_it_out_where_dynamic_is_left_out():
    for structure, adaptation in (
        ("linear", "er"),
        ("linear", "fm"),
        ("soft-ordering", "er"),
        ("soft-ordering", "fm"),
    ):
        dynamic, recommended = (Method(adaptation, name, structure) for name in ("dynamic", "recommended"))
        assert goes_together(recommended) == goes_together(dynamic)


@pytest.mark.parametrize("adaptation", ["er", "ewc", "fm"])
def test_it_learns_and_is_loaded_as_it_was(adaptation, tmp_path):
    stream = piaget.stream("digits", seed=0)
    learner = piaget.Learner(adaptation=adaptation, algorithm="recommended", epochs=3, **SMALL)
    for task in stream[:4]:
        learner.learn(task)
    learner.save(tmp_path / "learner")
    again = piaget.Learner.load(tmp_path / "learner")
    assert again.settings == learner.settings
    assert stream[3].test is not None
    x = stream[3].test.x
    assert (again.predict(x, "digits-03") == learner.predict(x, "digits-03")).all()


def test_sweeps_have_it_if_it_is_named(tmp_path, capsys):
    assert "recommended" not in COMPARED
    assert in_words("soft-ordering-scaled/er/recommended").startswith("Recommended: dynamic, with parts")
    sweep = "sweep digits --algorithms dynamic recommended --seeds 1 --epochs 2 --option tasks=3 --workers 1"
    answer = said(capsys, *words(sweep, out=tmp_path / "runs"))
    assert answer.code == 0
    assert "Recommended" in answer.out


def test_components_stay_frozen_unless_an_adaptation_is_chosen(tmp_path, capsys):
    """In Python, in a sweep, and where methods are compared; the others have replay."""
    assert piaget.Learner(algorithm="recommended").settings.method.endswith("/fm/recommended")
    assert piaget.Learner(adaptation="er", algorithm="recommended").settings.adaptation.name == "er"
    assert piaget.Learner().settings.adaptation.name == "er"
    chosen = {(m.adaptation, m.algorithm) for m in methods("soft-ordering", None, ["dynamic", "recommended"])}
    assert chosen == {("er", "dynamic"), ("fm", "recommended")}
    asked = methods("soft-ordering", ["er", "fm"], ["recommended"])
    assert [method.adaptation for method in asked] == ["er", "fm"]
    (row,) = piaget.lab.compare(
        [{"algorithm": "recommended", "width": 8}], [("digits", {"tasks": 4})], [0], tmp_path / "c", epochs=2
    )
    assert (row["base"], row["algorithm"]) == ("fm", "recommended")
    answer = said(
        capsys,
        *words(
            "run --stream digits --algorithm recommended --epochs 2 --option tasks=4 --set width=8",
            out=tmp_path / "r",
        ),
    )
    assert answer.code == 0
    (run,) = (tmp_path / "r").rglob("run.json")
    assert json.loads(run.read_text())["configuration"]["adaptation"] == "fm"


def test_the_benchmark_chooses_between_what_is_recommended_and_the_same_with_replay():
    recommended, with_replay = (
        piaget.Learner(**variant(name)).settings for name in ("recommended", "recommended + replay")
    )
    assert recommended == piaget.Learner(algorithm="recommended").settings
    assert with_replay == piaget.Learner(adaptation="er", algorithm="recommended").settings
