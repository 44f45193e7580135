"""Parts and streams of one's own in runs, sweeps and comparisons; and that files never cause an import."""

import importlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import piaget
from examples.a_gem import AGEM
from examples.cosine_and_patience import NoProgress, WarmCosine
from examples.der_plus_plus import DERPlusPlus
from examples.mcnemar import McNemar
from examples.scale_and_shift import ScaleAndShift
from piaget.cli import main
from piaget.lab import keeping
from piaget.lab.folder import RunFolder, read_description
from piaget.lab.making import make_stream
from piaget.report.contents import Contents
from piaget.report.reading import read
from piaget.report.tables import tables
from tests.commands import rows_of, said
from tests.small import binary_tasks

OLD = Path(__file__).parent / "written_by_0_1"
PARTS = """
from dataclasses import dataclass

import piaget
from piaget.method.encoders import LinearDecoder, LinearEncoder
from piaget.method.optimizer import SGD
from piaget.method.rates import CosineRate
from piaget.method.stopping import Patience
from tests.small import binary_tasks


@dataclass(frozen=True)
class Mine(piaget.Replay):
    size: int = 3
    alpha: float = 0.1
    name = "mine"


FOUR = Mine(size=4)


@dataclass(frozen=True)
class Other(piaget.Replay):
    name = "mine"


@dataclass(frozen=True)
class Ordering(piaget.SoftOrdering):
    name = "my-ordering"


@dataclass(frozen=True)
class Always(piaget.Expansion):
    def keeps(self, *evidence):
        return True


OTHERS = {
    "components": piaget.Dense,
    "encoder": LinearEncoder,
    "decoder": LinearDecoder,
    "optimizer": SGD,
    "rate_schedule": CosineRate,
    "stop": Patience,
    "schedule": piaget.Staged,
}
for role, base in OTHERS.items():
    globals()[f"My_{role}"] = dataclass(frozen=True)(type(f"My_{role}", (base,), {"__module__": __name__}))


class Plain(piaget.Replay):
    name = "er"


@dataclass
class Loose(piaget.Adaptation):
    name = "loose"


def make_stream(seed, tasks=5):
    return binary_tasks(tasks, n=20)


def wrong(seed):
    return 3
"""
SMALL = ["--epochs", "2", "--width", "6", "--initial-components", "3", "--initial-tasks", "3", "--quiet"]
SMALL_SET = ["--epochs", "2", "--set", "width=6", "--set", "initial_components=3", "--set", "initial_tasks=3"]


@pytest.fixture
def module(tmp_path, monkeypatch, request):
    """A module in the working directory, by a name that no other test has; it leaves a mark when imported."""
    folder = tmp_path / "code"
    folder.mkdir()
    name = "own_" + "".join(letter if letter.isalnum() else "_" for letter in request.node.name)
    mark = folder / "imported"
    (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\n{PARTS}")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", sys.path[:])
    yield name
    sys.modules.pop(name, None)


def was_imported(module):
    return module in sys.modules or Path("imported").exists()


def described(out, seed=0):
    return read_description(out / f"seed-{seed}")


def scores(out, seed=0):
    return list(RunFolder(out / f"seed-{seed}").rows())


def interrupt(monkeypatch, *arguments, after=3):
    """Runs a command until it has kept everything a few times."""
    keep, count = keeping.Keeper.keep, iter(range(after))

    def stopping(self):
        keep(self)
        if next(count, None) is None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(keeping.Keeper, "SHARE", 1e9)  # keep every epoch
        patch.setattr(keeping.Keeper, "keep", stopping)
        assert main([str(one) for one in arguments]) == 130


def test_a_run_with_parts_of_ones_own(module, tmp_path):
    out = tmp_path / "out"
    flags = ["--adaptation", f"{module}:Mine", "--structure", f"{module}:Ordering"]
    flags += ["--expansion", f"{module}:Always", "--set", "adaptation.alpha=0.3", "--seeds", "0-1"]
    assert main(["run", f"{module}:make_stream", *flags, *SMALL, "--out", str(out)]) == 0
    configuration = described(out)["configuration"]
    assert configuration["adaptation"] == f"{module}:Mine"
    assert configuration["stream"] == f"{module}:make_stream"
    assert configuration["settings"]["expansion"] == f"{module}:Always"
    assert configuration["settings"]["adaptation.alpha"] == 0.3
    rows = scores(out)
    assert {(row["stream"], row["method"]) for row in rows} == {("make_stream", "my-ordering/mine/dynamic")}
    assert [row["value"] for row in rows if row["metric"] == "components"][-1] == 5  # always kept
    with pytest.raises(piaget.LoadError, match="pass it again"):
        piaget.Learner.load(out / "seed-0" / "learner")


@pytest.mark.usefixtures("without_workers")
def test_a_field_of_one_part_among_others_in_a_sweep(module, tmp_path, capsys):
    flags = [
        "--adaptations",
        "er",
        f"{module}:Mine",
        "--algorithms",
        "compositional",
        "--seeds",
        "1",
        "--quiet",
    ]
    sweep = ["sweep", f"{module}:make_stream", *flags, *SMALL_SET, "--out", str(tmp_path / "out")]
    assert main([*sweep, "--set", "adaptation.alpha=0.3"]) == 0
    chosen = [read_description(p.parent)["configuration"] for p in (tmp_path / "out").rglob("run.json")]
    alphas = {one["adaptation"]: one["settings"].get("adaptation.alpha") for one in chosen}
    assert alphas == {"er": None, f"{module}:Mine": 0.3}
    assert main([*sweep, "--set", "adaptation.alhpa=0.3"]) == 2
    assert "no field 'alhpa'" in capsys.readouterr().err


def test_every_kind_of_part(module, tmp_path, capsys):
    out = tmp_path / "out"
    roles = ("components", "encoder", "decoder", "optimizer", "rate_schedule", "stop", "schedule")
    flags = [word for role in roles for word in (f"--{role.replace('_', '-')}", f"{module}:My_{role}")]
    numbers = ["--width", "6", "--weight-decay", "0.01", "--patience", "1"]
    fields = {"optimizer.momentum": 0.5, "schedule.struct_updates": 3, "schedule.adapt_freq": 3}
    fields |= {"rate_schedule.least": 0.1, "components.dropout": 0.0}
    words = [word for name, value in fields.items() for word in ("--set", f"{name}={value}")]
    few = ["--option", "tasks=4", "--initial-tasks", "3", "--initial-epochs", "2", "--quiet", "--out", out]
    run = said(capsys, "run", f"{module}:make_stream", *flags, *numbers, *words, *few)
    assert run.code == 0, run.err
    settings = described(out)["configuration"]["settings"]
    assert {role: settings[role] for role in roles} == {role: f"{module}:My_{role}" for role in roles}
    assert fields.items() <= settings.items()
    learner = described(out)["learner"]
    assert learner["optimizer"]["fields"] == {"momentum": 0.5, "weight_decay": 0.01}
    assert learner["components"]["fields"] == {"width": 6, "dropout": 0.0}
    assert learner["stop"]["fields"] == {"epochs": 1}


def test_going_on_needs_the_flags_and_ends_the_same(module, tmp_path, capsys, monkeypatch):
    whole, out = tmp_path / "whole", tmp_path / "out"
    flags = ["--adaptation", f"{module}:FOUR", "--set", "adaptation.alpha=0.2"]
    command = ["run", f"{module}:make_stream", *flags, *SMALL, "--seeds", "0-1", "--out"]
    assert main([*command, str(whole)]) == 0
    interrupt(monkeypatch, *command, out)
    assert described(out)["status"] == "interrupted"
    del sys.modules[module]
    Path("imported").unlink()
    refused = said(capsys, "resume", out, "--quiet")
    assert refused.code == 2
    wanted = f"piaget resume {out} --stream {module}:make_stream --adaptation {module}:FOUR"
    assert wanted in refused.err
    for other in ([f"{module}:Mine"], [f"{module}:FOUR", f"{module}:Mine"]):
        wrong = said(capsys, "resume", out, "--adaptation", *other)
        assert f"--adaptation {module}:Mine: {out} began with --adaptation {module}:FOUR" in wrong.err
    assert "has no encoder of your own" in said(capsys, "resume", out, "--encoder", "a:B").err
    assert not was_imported(module)
    assert said(capsys, *wanted.split()[1:], "--quiet").code == 0
    assert rows_of(out) == rows_of(whole)
    del sys.modules[module]
    Path("imported").unlink()
    assert said(capsys, "resume", out, "--quiet").code == 0  # done: there is nothing to run
    assert said(capsys, "status", out).code == 0
    assert said(capsys, "predict", out, "x.csv", "--out", tmp_path / "y.csv").code == 2
    assert not was_imported(module)


def test_a_sweep_beside_the_papers_methods(module, tmp_path, capsys, monkeypatch):
    out, again = tmp_path / "out", tmp_path / "again"
    command = ["sweep", f"{module}:make_stream", "--adaptations", "er", f"{module}:Mine", *SMALL_SET]
    command += ["--algorithms", "compositional", "--seeds", "2", "--workers", "2", "--option", "tasks=4"]
    first = said(capsys, *command, "--json", "--out", out)
    assert first.code == 0, first.err
    table = json.loads(first.out.splitlines()[-1])["table"]
    assert [(line["base"], line["algorithm"], line["seeds"]) for line in table] == [
        ("er", "compositional", 2),
        ("mine", "compositional", 2),
    ]
    assert "| make_stream | mine | Compositional | 2 |" in (out / "table.md").read_text()
    # The same in this process.
    monkeypatch.setattr("piaget.lab.executors.Processes", piaget.lab.executors.InProcess)
    assert said(capsys, *command, "--quiet", "--out", again).code == 0
    assert rows_of(again) == rows_of(out)
    shutil.rmtree(next(again.rglob("*Mine*/seed-1")))
    refused = said(capsys, "resume", again)
    flags = f"--stream {module}:make_stream --adaptation {module}:Mine"
    assert f"piaget resume {again} {flags}" in refused.err
    assert said(capsys, "resume", again, *flags.split(), "--quiet").code == 0


def test_a_part_for_all_methods_of_a_sweep(module, tmp_path, capsys, without_workers):
    command = ["sweep", f"{module}:make_stream", "--algorithms", "dynamic", *SMALL_SET, "--seeds", "1"]
    flags = ["--expansion", f"{module}:Always", "--structure", "soft-ordering", f"{module}:Ordering"]
    assert said(capsys, *command, *flags, "--quiet", "--out", tmp_path).code == 0
    finished = piaget.lab.folder.runs_below(tmp_path)
    assert {run.configuration["structure"] for run in finished} == {"soft-ordering", f"{module}:Ordering"}
    for run in finished:
        assert [row["value"] for row in run.rows() if row["metric"] == "components"][-1] == 5
    assert "| my-ordering | ER |" in (tmp_path / "table.md").read_text()  # structures are told apart


def test_a_file_cannot_name_code(module, tmp_path, capsys):
    out = tmp_path / "out"
    text = 'stream = "digits"\noptions = {tasks = 4, train_size = 20}\n'
    text += f'[adaptation]\nname = "{module}:Mine"\nalpha = 0.5'
    (tmp_path / "config.toml").write_text(text)
    command = ["run", tmp_path / "config.toml", *SMALL, "--out", out]
    refused = said(capsys, *command)
    assert refused.code == 2
    assert f"give --adaptation {module}:Mine, too" in refused.err
    (tmp_path / "stream.toml").write_text(f'stream = "{module}:make_stream"')
    assert f"give --stream {module}:make_stream" in said(capsys, "run", tmp_path / "stream.toml").err
    assert not was_imported(module)
    assert said(capsys, *command, "--adaptation", f"{module}:Mine").code == 0
    assert described(out)["configuration"]["settings"]["adaptation.alpha"] == 0.5
    # A run.json that somebody changed.
    digits = tmp_path / "digits"
    plain = ["run", "digits", *SMALL, "--option", "tasks=4", "--option", "train_size=20", "--out", digits]
    assert said(capsys, *plain).code == 0
    del sys.modules[module]
    Path("imported").unlink()
    path = digits / "seed-0" / "run.json"
    changed = json.loads(path.read_text())
    for role in ("adaptation", "stream"):
        changed["configuration"][role] = f"{module}:Mine"
    path.write_text(json.dumps(changed | {"status": "interrupted"}))
    for word in ("resume", "status"):
        said(capsys, word, digits)
    with pytest.raises(piaget.SettingError, match="code is only run if you name it yourself"):
        make_stream(changed["configuration"], 0, None)  # as a report does
    assert not was_imported(module)


@pytest.mark.slow
def test_a_report_beside_the_papers_methods_imports_nothing(module, tmp_path, capsys, without_workers):
    command = ["sweep", "digits", "--adaptations", "er", f"{module}:Mine", *SMALL_SET, "--quiet", "--out"]
    options = ["--option", "tasks=4", "--option", "train_size=20", "--algorithms", "compositional"]
    assert said(capsys, *command, tmp_path / "out", *options).code == 0
    del sys.modules[module]
    Path("imported").unlink()
    code, _, notes = said(capsys, "report", tmp_path / "out")
    assert code == 0
    assert f"code of your own (adaptation {module}:Mine)" in notes
    assert "piaget.scoring.probing" in notes
    assert "Learner.load" not in notes
    assert "mine" in (tmp_path / "out" / "report" / "tables" / "final.md").read_text()
    assert not was_imported(module)


def test_fields_of_the_papers_parts(tmp_path):
    from piaget.lab.configuration import configure
    from piaget.lab.making import make_learner

    settings = {"adaptation.size": 5, "components.width": 12, "components.dropout": 0.1}
    learner = make_learner(configure(stream="digits", settings=settings), 0, 5)
    assert learner.settings.adaptation == piaget.Replay(5)
    assert learner.settings.components == piaget.Dense(12, 0.1)
    assert configure(stream="digits", settings=settings)["settings"]["replay_size"] == 5
    convolutions = configure(stream="omniglot", settings={"components.kernel": 5})
    assert make_learner(convolutions, 0, 5).settings.components == piaget.Conv(53, 0, kernel=5)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--adaptation", "nowhere:Mine"], "--adaptation nowhere:Mine: there is no module 'nowhere' in "),
        (["--adaptation", "{}:Mein"], "{} has no 'Mein' (did you mean 'Mine'?)"),
        (
            ["--adaptation", "broken:Mine"],
            "--adaptation broken:Mine: broken cannot be imported: ZeroDivisionError: division by zero "
            "(broken.py, line 2)",
        ),
        (["--adaptation", "{}:"], "--adaptation {}:: expected package.module:Name"),
        (
            ["--adaptation", "{}:Always"],
            "it is the class Always; expected a class or an object of Adaptation",
        ),
        (["--expansion", "{}:make_stream"], "it is a function; expected a class or an object of Expansion"),
        (["--adaptation", "{}:Plain"], "its name is 'er', which is one of the library's; give it another"),
        (["--adaptation", "{}:Loose"], "expected a frozen dataclass"),
        (["--adaptation", "{}:Mine", "--set", "adaptation.alfa=1"], "(did you mean 'alpha'?)"),
        (
            ["--adaptation", "{}:Mine", "--set", "adaptation.size=0"],
            "size=0: expected a whole number, 1 or more",
        ),
        (
            ["--adaptation", "{}:Mine", "--set", "adaptation.alpha=abc"],
            "adaptation.alpha='abc': expected a finite number (--adaptation {}:Mine)",
        ),
        (
            ["--adaptation", "examples.der_plus_plus:DERPlusPlus", "--set", "adaptation.size=2.5"],
            "adaptation.size=2.5: expected a whole number or None",
        ),
        (
            ["--adaptation", "{}:Mine", "--set", "adaptation.alpha=True"],
            "alpha=True: expected a finite number",
        ),
        (["--set", "adaptation.alpha=1"], "adaptation 'er' has no field 'alpha'"),
        (["--stop", "sometimes"], "stop='sometimes': expected never or patience, or package.module:Name"),
        (
            ["--structure", "soft-orderin"],
            "monolithic, alone, or package.module:Name of a part of your own (did you mean 'soft-ordering'?)",
        ),
        (["--set", "adaption.alpha=1"], "'adaption.alpha' is not known"),
        (["--set", "adaptation.alpha=[1]"], "expected a finite number, a text, True, False or None"),
        (["--learning-rate", "inf"], "learning_rate='inf': expected a finite number"),
        (["--set", "seed=3"], "'seed' is not known (did you mean 'seeds'?)"),
    ],
)
def test_mistakes(flags, message, module, capsys):
    Path("broken.py").write_text("x = 0\n1 / x\n")
    words = [flag.format(module) for flag in flags]
    result = said(capsys, "run", "digits", *words, "--quiet")
    assert result.code == 2
    assert message.format(module) in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "{}:wrong"], "it made an int; expected a list of tasks"),
        (["run", "{}:FOUR"], "it is a Mine; expected a function (seed, **options)"),
        (["run", "{}:make_stream", "--option", "size=3"], "has no option 'size'; its options: tasks"),
        (["sweep", "digits", "{}:make_stream", "--option", "size=3"], "no option 'size'"),
        (["sweep", "digits", "--adaptation", "{}:Mine", "{}:Other"], "give the parts different names"),
    ],
)
def test_mistakes_about_streams_and_names(arguments, message, module, capsys, tmp_path):
    words = [word.format(module) for word in arguments]
    result = said(capsys, *words, "--quiet", "--out", tmp_path / "out")
    assert result.code == 2
    assert message in result.err


# --- from Python --------------------------------------------------------------------------------------------


def own_stream(seed, n=20):
    return binary_tasks(4, n=n)


def test_compare(module, tmp_path, monkeypatch):
    sys.path.insert(0, str(Path.cwd()))
    code = importlib.import_module(module)
    small = {"epochs": 2, "components": piaget.Dense(6), "initial_components": 3, "initial_tasks": 3}
    methods: list[Any] = [
        {"adaptation": "er", "algorithm": "compositional"} | small,
        ("soft-ordering", code.Mine(alpha=0.7), "compositional", small),
    ]

    def table():
        return piaget.lab.compare(
            methods, [own_stream, ("digits", {"tasks": 4, "train_size": 20})], [0, 1], tmp_path
        )

    first = table()
    assert sorted((line["stream"], line["base"], line["seeds"]) for line in first) == [
        (stream, base, 2) for stream in ("digits", "own_stream") for base in ("er", "mine")
    ]
    assert all(0 <= line["mean"] <= 100 for line in first)
    configurations = [run.configuration for run in piaget.lab.folder.runs_below(tmp_path)]
    assert {one["adaptation"] for one in configurations} == {"er", f"{module}:Mine"}
    assert {one["settings"].get("adaptation.alpha") for one in configurations} == {None, 0.7}
    assert {one["settings"]["width"] for one in configurations} == {6}
    assert {one["stream"] for one in configurations} == {"digits", "tests.test_own_parts:own_stream"}
    monkeypatch.setattr("piaget.lab.sweeps.run_job", lambda *job, **more: pytest.fail("trained again"))
    assert table() == first


def test_compare_with_what_only_this_process_knows(tmp_path):
    class Local(piaget.NaiveFineTuning):
        name = "local"

    small = {"epochs": 2, "width": 6, "initial_tasks": 3}
    methods = [{"adaptation": Local(), "algorithm": "compositional"} | small]
    (line,) = piaget.lab.compare(methods, [own_stream], [0], tmp_path)
    assert line["base"] == "local"
    with pytest.raises(piaget.SettingError, match="other processes cannot import it"):
        piaget.lab.compare(methods, [own_stream], [0], tmp_path, workers=2)
    with pytest.raises(piaget.SettingError, match="has no name by which it could be recorded"):
        piaget.lab.compare(methods, [lambda seed: []], [0], tmp_path)
    with pytest.raises(piaget.SettingError, match="expected a dictionary or"):
        piaget.lab.compare(["er"], ["digits"], [0], tmp_path)
    with pytest.raises(
        piaget.SettingError, match=r"streams='digits'; expected a list of streams, such as \["
    ):
        piaget.lab.compare(methods, "digits", [0], tmp_path)
    with pytest.raises(
        piaget.SettingError, match=r"methods=\{'adaptation': 'er'\}; expected a list of methods"
    ):
        piaget.lab.compare({"adaptation": "er"}, ["digits"], [0], tmp_path)
    odd = piaget.Algorithm(piaget.Joint(2))
    with pytest.raises(piaget.SettingError, match="expected a finite number, a text"):
        piaget.lab.compare([{"algorithm": odd}], ["digits"], [0], tmp_path)


# --- folders of version 0.1 ---------------------------------------------------------------------------------


def test_an_old_run_goes_on(tmp_path, capsys):
    shutil.copytree(OLD / "interrupted", tmp_path / "old")
    assert said(capsys, "resume", tmp_path / "old", "--quiet").code == 0
    found, expected = (
        b"".join(rows_of(folder).values()).splitlines() for folder in (tmp_path / "old", OLD / "whole")
    )
    new = (b",auc,", b",majority,")  # metrics that version 0.1 did not have
    lines = [line for line in found if not any(metric in line for metric in new)]
    assert [line.rpartition(b",")[0] for line in lines] == [line.rpartition(b",")[0] for line in expected]
    for line, old in zip(lines, expected, strict=True):  # another processor may round otherwise
        value, then = line.rpartition(b",")[2], old.rpartition(b",")[2]
        assert value == then or float(value) == pytest.approx(float(then), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
    "wrong",
    [
        {"seeds": [-1]},
        {"seeds": [2**70]},
        {"seeds": [0.7]},
        {"seeds": "01"},
        {"seeds": 3},
        {"every": 0},
        {"every": "x"},
        {"cohort": -1},
        {"workers": 0},
    ],
)
def test_a_wrong_comparison_leaves_nothing_behind(tmp_path, wrong):
    call: dict[str, Any] = {
        "methods": [{"algorithm": "joint", "width": 8}],
        "streams": ["digits"],
        "seeds": [0],
    }
    with pytest.raises(piaget.SettingError):
        piaget.lab.compare(**(call | wrong), out=tmp_path / "out", epochs=2)
    assert not (tmp_path / "out").exists()


def test_the_examples_stand_in_a_report_beside_the_papers_methods(tmp_path):
    """With paired statistics; from importable classes, as a sweep has them."""
    small = {"width": 6, "initial_components": 3, "initial_tasks": 3, "algorithm": "dynamic"}
    own: list[dict[str, Any]] = [
        {},
        {"adaptation": DERPlusPlus()},
        {"adaptation": AGEM(references=4)},
        {"structure": ScaleAndShift()},
        {"expansion": McNemar()},
        {"rate_schedule": WarmCosine(), "stop": NoProgress(epochs=1)},
    ]
    stream = ("digits", {"tasks": 4, "train_size": 20})
    piaget.lab.compare([small | one for one in own], [stream], range(3), tmp_path, epochs=2)
    contents = Contents(read([tmp_path]))
    labels = " ".join(group.label for group in contents.groups)
    assert len(contents.groups) == len(own)
    for name in ("der++", "a-gem", "scale-and-shift", "McNemar", "WarmCosine"):
        assert name in labels
    (differences,) = (table for table in tables(contents) if "differences" in table.name)
    assert len(differences.rows) == len(own) * (len(own) - 1) / 2
