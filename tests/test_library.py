"""A library of components: written, verified, begun with; hostile files; the commands."""

from __future__ import annotations

import copy
import json
import random
import shutil
from typing import Any

import pytest
import torch

import piaget
from piaget.cli import main
from piaget.files import read_json, write_json
from piaget.knowledge import library
from piaget.knowledge.storage import write_files
from piaget.lab.configuration import configure
from piaget.lab.making import make
from piaget.lab.runs import run
from piaget.method.parameters import new_moments
from tests.small import binary_tasks, image_tasks, make_task
from tests.test_hostile_files import mutate_plain, mutate_tensors

SMALL: dict[str, Any] = {"components": piaget.Dense(5), "initial_components": 2, "epochs": 2}
SMALL |= {"initial_tasks": 2, "batch_size": 8}
REST: dict[str, Any] = {"epochs": 2, "batch_size": 8}


def learned(**settings: Any) -> piaget.Learner:
    learner = piaget.Learner(**(SMALL | settings))
    for task in binary_tasks(3, n=12):
        learner.learn(task)
    return learner


@pytest.fixture
def folder(tmp_path):
    learned().export_components(tmp_path / "lib", licence="CC-BY-4.0", note="small ones")
    return tmp_path / "lib"


# --- written and begun with ---------------------------------------------------------------------------------


def test_a_card_says_what_components_are(folder):
    learner, card = learned(), library.read_card(folder)
    assert (card.count, card.depth, card.dtype, card.entering) == (learner.components, 2, "float32", (5,))
    assert card.kind == {"part": "Dense", "width": 5, "dropout": 0.5}
    assert card.shapes == {"weight": (5, 5), "bias": (5,)}
    assert (card.licence, card.note) == ("CC-BY-4.0", "small ones")
    assert [user.name for user in card.tasks] == learner.tasks
    for user in card.tasks:
        assert user.weights == learner.structures()[user.name].tolist()
    assert (card.trained.method, card.trained.seed) == ("soft-ordering/er/dynamic", 0)
    assert card.trained.versions["piaget"] == piaget.__version__
    assert len(set(card.hashes)) == card.count


@pytest.mark.parametrize("adaptation", ["er", "ewc", "nft", "fm"])
@pytest.mark.parametrize("structure", ["soft-ordering", "soft-gating"])
def test_a_learner_begins_with_components(folder, tmp_path, structure, adaptation):
    given = learned().state.components
    learner = piaget.Learner(structure, adaptation, components_from=str(folder), **REST)
    assert learner.components == len(given["bias"])
    assert learner.state.memory == {}
    for name, stack in given.items():
        assert torch.equal(learner.state.components[name], stack)
    learner.save(tmp_path / "new")
    learner = piaget.Learner.load(tmp_path / "new")
    rows = learner.learn(make_task("first", "binary", 2, 7, n=12))  # no task waits for others
    assert learner.tasks == ["first"]
    assert {row["stage"] for row in rows if row["metric"] == "accuracy"} != {"initialization"}
    learner.learn(make_task("second", "multiclass", 3, 4, n=12))
    changed = not torch.equal(learner.state.components["weight"][:2], given["weight"][:2])
    assert changed == (adaptation != "fm")  # it adapts as usual
    learner.save(tmp_path / "new")
    again = piaget.Learner.load(tmp_path / "new")
    assert again.settings.components_from == library.digest_of(library.read_card(folder))


def test_the_first_task_is_learned_as_a_later_one_is(folder):
    """With given components, the first task goes through exactly what a later task does."""
    task = make_task("next", "binary", 2, 6, n=12)
    old = learned()
    old.state.memory, old.state.moments = (
        {},
        new_moments(old.settings.optimizer.slots, old.state.components, old.components),
    )
    old.state.generator.manual_seed(7)
    new = piaget.Learner(components_from=str(folder), adaptation="nft", **REST)
    new.state.generator.manual_seed(7)
    settings = piaget.Learner(**(SMALL | {"adaptation": "nft"})).settings
    old.settings = settings
    old.learn(task)
    new.learn(task)
    assert torch.equal(new.predict_proba(task.test.x, "next"), old.predict_proba(task.test.x, "next"))


def test_what_else_may_be_chosen(folder):
    deeper = piaget.Learner(
        components_from=str(folder), depth=3, components=piaget.Dense(5, dropout=0.1), **REST
    )
    assert (deeper.settings.depth, deeper.settings.components) == (3, piaget.Dense(5, 0.1))
    assert piaget.Learner(components_from=str(folder), components="dense").settings.depth == 2
    wrong: dict[str, tuple[Any, str]] = {
        "components": ("conv", "has Dense"),
        "width": (6, "cannot be used here"),
        "dtype": ("float64", "cannot be used here"),
        "initial_tasks": (2, "leave it out"),
        "encoder": ("shared", "shared encoder"),
        "algorithm": (
            "no-components",
            "'no-components' combines no components; those that do: dynamic, recomm",
        ),
    }
    for name, (value, message) in wrong.items():
        with pytest.raises(piaget.SettingError, match=message):
            piaget.Learner(**{"components_from": str(folder), name: value})


def test_components_for_images_and_linear_ones(tmp_path):
    images = piaget.Learner(components=piaget.Conv(3), initial_tasks=2, epochs=2, depth=2, encoder="none")
    for task in image_tasks(2):
        images.learn(task)
    images.export_components(tmp_path / "conv")
    other = piaget.Learner(components_from=str(tmp_path / "conv"), epochs=2)
    other.learn(image_tasks(3, side=8)[2])
    linear = piaget.Learner("linear", "er", "compositional", epochs=5, initial_tasks=2)
    for task in binary_tasks(2):
        linear.learn(task)
    linear.export_components(tmp_path / "linear")
    new = piaget.Learner("linear", "er", "compositional", components_from=str(tmp_path / "linear"), epochs=5)
    with pytest.raises(piaget.TaskError, match="do not enter the components of the library"):
        new.learn(make_task("wide", "binary", 2, 9))
    new.learn(make_task("right", "binary", 2, 6))


def test_what_cannot_be_exported(tmp_path):
    with pytest.raises(piaget.SettingError, match="no task was learned with its components"):
        piaget.Learner().export_components(tmp_path)
    alone = piaget.Learner(algorithm="alone", width=4, epochs=2, initial_tasks=1)
    alone.learn(make_task("t", "binary"))
    with pytest.raises(piaget.SettingError, match="no components that other tasks"):
        alone.export_components(tmp_path)
    with pytest.raises(piaget.SettingError, match="licence=5"):
        learned().export_components(tmp_path, licence=5)  # type: ignore[arg-type]


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_library_is_not_overwritten(folder):
    before = contents(folder)
    learned().export_components(folder, licence="CC-BY-4.0", note="small ones")  # the very same
    for other, said, differing in (
        (learned(), {}, "licence, note"),
        (learned(), {"licence": "MIT", "note": "small ones"}, "licence"),
        (learned(seed=5), {"licence": "CC-BY-4.0", "note": "small ones"}, "hashes, tasks, trained"),
    ):
        with pytest.raises(piaget.SettingError, match=f"'CC-BY-4.0'. It differs .* in {differing};"):
            other.export_components(folder, **said)
        assert contents(folder) == before
    (folder / "components.json").write_text("{}")
    with pytest.raises(piaget.SettingError, match="already, which cannot be read"):
        learned().export_components(folder)


def test_a_library_has_a_folder_for_itself(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(piaget.SettingError, match=r"holds other files \(notes.txt\); expected a folder"):
        learned().export_components(tmp_path)
    assert contents(tmp_path) == {"notes.txt": b"mine"}
    (tmp_path / "notes.txt").unlink()
    for left in (
        "components-0123456789abcdef.safetensors",
        ".components.json.17.tmp",
    ):  # of an export that was killed
        (tmp_path / left).write_text("half")
    learned().export_components(tmp_path)
    assert library.read_card(tmp_path).count == 2


class Twice(torch.nn.Module):
    """Of one's own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(5))

    def forward(self, x):
        return torch.tanh(x * self.weight) * 2


def test_a_kind_of_ones_own_is_given_again_and_never_imported(tmp_path):
    kind = piaget.Module(Twice, shape=(5,))
    learned(components=kind).export_components(tmp_path)
    assert library.read_card(tmp_path).kind["custom"] == "piaget.method.components.Module"
    with pytest.raises(piaget.LoadError, match="give it, too"):
        piaget.Learner(components_from=str(tmp_path))
    with pytest.raises(piaget.LoadError, match="differs"):
        piaget.Learner(components_from=str(tmp_path), components=piaget.Dense(5))
    learner = piaget.Learner(components_from=str(tmp_path), components=kind, **REST)
    learner.learn(make_task("t", "binary", 2, 6, n=12))


# --- hostile files ------------------------------------------------------------------------------------------


def parts(folder) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    data = read_json(folder / "components.json")
    from safetensors.torch import load_file

    return data, load_file(folder / data.pop("tensors")["file"])


def refused(folder, change) -> str:
    data, tensors = parts(folder)
    change(data["card"], tensors)
    write_files(folder, "components", data, tensors)
    with pytest.raises(piaget.LoadError) as caught:
        piaget.Learner(components_from=str(folder))
    assert str(folder) in str(caught.value)
    return str(caught.value)


def rehashed(card, tensors) -> None:
    card["hashes"] = library.hashes_of(tensors)


CHANGES: dict[str, Any] = {
    "component 1 is not what its hash says": lambda c, t: t["weight"][1].add_(1),
    "hashes for": lambda c, t: c["hashes"].pop(),
    "tensor weight is not": lambda c, t: t.update(weight=t["weight"].double()),
    "is not (2": lambda c, t: c["shapes"].update(weight=[5, 4]),
    "card.depth is -": lambda c, t: c.update(depth=-(10**30)),
    "depth 1000000": lambda c, t: c.update(depth=1_000_000),
    "enters": lambda c, t: c.update(entering=[2**40]),
    "the kind of components has": lambda c, t: c["kind"].update(width=2**30),
    "a whole number": lambda c, t: c["kind"].update(width=-5),
    "unknown part": lambda c, t: c.update(kind={"part": "os.system"}),
    "give it, too": lambda c, t: c.update(kind={"custom": "os.system", "fields": {}}),
    "is no kind of components": lambda c, t: c.update(kind={"part": "SoftOrdering"}),
    "weights of task": lambda c, t: c["tasks"][0].update(weights=[[1.0]] * 50),
    "expected": lambda c, t: c.update(more=1),
    "tensors": lambda c, t: t.update(x=torch.zeros(3)),
}


@pytest.mark.parametrize("message", CHANGES)
def test_files_that_lie_are_refused(folder, message):
    assert message in refused(folder, CHANGES[message])


def test_numbers_that_are_not_finite_are_refused(folder):
    def change(card, tensors):
        tensors["bias"][0, 0] = float("nan")
        rehashed(card, tensors)

    assert "bias is not finite" in refused(folder, change)


def test_damage_is_noticed(folder):
    card = folder / "components.json"
    text = card.read_bytes()
    for broken in (b"", b"[" * 10_000, text[:-20], text.replace(b"CC-BY-4.0", b"MIT"), b'{"format": "x"}'):
        card.write_bytes(broken)
        with pytest.raises(piaget.LoadError, match=r"components\.json"):
            library.read_card(folder)
    card.write_bytes(text)
    (tensor_file,) = folder.glob("*.safetensors")
    data = bytearray(tensor_file.read_bytes())
    data[-3] ^= 1
    tensor_file.write_bytes(data)
    with pytest.raises(piaget.LoadError, match="not the file that was saved"):
        library.read_card(folder)
    tensor_file.unlink()
    with pytest.raises(piaget.LoadError, match="missing"):
        library.read_card(folder)
    with pytest.raises(piaget.LoadError, match="holds no library"):
        library.read_card(folder / "nothing")
    with pytest.raises(piaget.SettingError, match="a folder that export_components wrote"):
        piaget.Learner(components_from=str(folder / "nothing"))


def test_files_changed_at_random(folder):
    data, tensors = parts(folder)
    before, rng = piaget.Learner(components_from=str(folder)).state.components, random.Random(0)
    caught = 0
    for _ in range(80):
        changed, others = copy.deepcopy(data), dict(tensors)
        change = mutate_plain(changed, rng) if rng.random() < 0.6 else mutate_tensors(others, rng)
        write_files(folder, "components", changed, others)
        try:
            found = piaget.Learner(components_from=str(folder)).state.components
            assert all(torch.equal(found[name], before[name]) for name in before), change
        except piaget.PiagetError:
            caught += 1
        except Exception as error:
            raise AssertionError(f"{change}: {type(error).__name__}: {error}") from error
    assert caught > 40


# --- the lab and the command line ---------------------------------------------------------------------------


def test_runs_begin_with_a_library_and_verify_it(folder, tmp_path):
    settings = {"components_from": str(folder), "width": 5}
    config = configure(stream="digits", epochs=2, settings=settings, options={"tasks": 2, "train_size": 20})
    out = run(*make(config, [0], None), tmp_path / "out", config)[0]
    description = read_json(out / "run.json")
    assert description["learner"]["components_from"] == library.digest_of(library.read_card(folder))
    assert description["configuration"]["settings"]["components_from"] == str(folder.absolute())
    shutil.rmtree(folder)
    learned(seed=5).export_components(folder)  # another one, at the same place
    description["status"] = "interrupted"
    write_json(out / "run.json", description)
    with pytest.raises(piaget.DataError, match="not those with which the run began"):
        run(*make(config, [0], None), tmp_path / "out", config)


def test_commands(folder, tmp_path, capsys):
    words = [
        "run",
        "digits",
        "--option",
        "tasks=2",
        "--option",
        "train_size=20",
        "--epochs",
        "2",
        "--width",
        "5",
    ]
    words += ["--components-from", str(folder), "--out", str(tmp_path / "run"), "--inference", "inputs"]
    assert main(words) == 0
    assert "task inferred" in (tmp_path / "run/seed-0/rows.csv").read_text()
    assert "without task names  accuracy with task inferred" in capsys.readouterr().out
    export = [
        "components",
        "export",
        str(tmp_path / "run"),
        "--to",
        str(tmp_path / "new"),
        "--licence",
        "MIT",
    ]
    assert main(export) == 0
    capsys.readouterr()
    assert main(["components", "show", str(tmp_path / "new")]) == 0
    shown = capsys.readouterr().out
    assert "Dense" in shown
    assert "MIT" in shown
    assert library.digest_of(library.read_card(folder)) in shown  # with what it began
    assert main(["components", "show", str(tmp_path / "new"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["licence"] == "MIT"
    assert main([*export[:-1], "Apache-2.0"]) == 2
    assert "licence 'MIT'. It differs from this one in licence" in capsys.readouterr().err
    assert main(["components", "show", str(tmp_path)]) == 2
    assert "holds no library" in capsys.readouterr().err


OTHERWISE: list[dict[str, Any]] = [{"padding": 0}, {"components": "conv", "padding": 0}]


@pytest.mark.parametrize("changed", [*OTHERWISE, {"components": piaget.Conv(6, padding=0)}])
def test_components_that_would_compute_otherwise_are_refused(changed, tmp_path):
    """Though their parameters have the same shapes."""
    settings = SMALL | {"components": piaget.Conv(6, padding=1)}
    learner = piaget.Learner(**settings)
    for task in image_tasks(3):
        learner.learn(task)
    learner.export_components(tmp_path)
    with pytest.raises(piaget.SettingError, match="it has Conv"):
        piaget.Learner(components_from=tmp_path, **REST, **changed)
    same = piaget.Learner(components_from=tmp_path, **REST, dropout=0.1)
    assert same.settings.components == piaget.Conv(6, padding=1, dropout=0.1)


def test_a_streams_own_settings_give_way_to_a_library(tmp_path):
    learner = piaget.Learner(**SMALL | {"components": piaget.Dense(7)})
    for task in binary_tasks(2, n=12):
        learner.learn(task)
    learner.export_components(tmp_path)

    class Birds(list[piaget.Task]):
        name, seed = "cub", 0  # whose components are of width 256

    begun = piaget.Learner.for_stream(Birds(binary_tasks(2, n=12)), components_from=tmp_path)
    assert isinstance(begun, piaget.Learner)
    assert begun.settings.components == piaget.Dense(7)


def test_a_seal_that_was_removed_is_missed(folder):
    path = folder / "components.json"
    data = read_json(path)
    data["card"]["licence"] = "do what you like"
    path.write_text(json.dumps(data))
    with pytest.raises(piaget.LoadError, match="the hash at its end is missing"):
        piaget.Learner(components_from=folder, **REST)
