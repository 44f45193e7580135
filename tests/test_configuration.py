"""Every setting can be reached, by a flag, --set or a file; wrong ones are refused with what is allowed."""

import json
import re

import pytest

import piaget
from piaget.cli import main
from piaget.errors import SettingError
from piaget.lab.configuration import configure
from piaget.lab.making import make_learner
from piaget.method.choices import SETTINGS, check_settings


def learner(**configuration):
    return make_learner(configure(**({"stream": "digits"} | configuration)), seed=3, tasks=10)


VALUES = {
    "components": ("conv", lambda s: type(s.components) is piaget.Conv),
    "initial_components": (6, lambda s: s.initial_components == 6),
    "depth": (2, lambda s: s.depth == 2),
    "width": (16, lambda s: s.components == piaget.Dense(16)),
    "channels": (8, lambda s: s.components.channels == 8),
    "padding": (0, lambda s: s.components.padding == 0),
    "dropout": (0.1, lambda s: s.components.dropout == 0.1),
    "encoder": ("shared", lambda s: s.encoder.shared and s.encoder.learns),
    "decoder": ("shared", lambda s: s.decoder.shared),
    "optimizer": ("sgd", lambda s: type(s.optimizer).__name__ == "SGD"),
    "weight_decay": (0.01, lambda s: s.optimizer.weight_decay == 0.01),
    "rate_schedule": ("cosine", lambda s: type(s.rate_schedule).__name__ == "CosineRate"),
    "averaging": (0.5, lambda s: s.averaging == 0.5),
    "stop": ("patience", lambda s: s.stop.epochs == 10),
    "patience": (7, lambda s: s.stop.epochs == 7),
    "epochs": (20, lambda s: len(s.stages()) == 20),
    "schedule": ("joint", lambda s: s.algorithm.schedule == piaget.Joint(100)),
    "expansion": ("none", lambda s: s.algorithm.expansion == piaget.NoExpansion()),
    "batch_size": ("all", lambda s: s.batch_size is None),
    "learning_rate": (0.01, lambda s: s.learning_rate == 0.01),
    "initial_tasks": (2, lambda s: s.initial_tasks == 2),
    "initial_epochs": (7, lambda s: s.initial_epochs == 7),
    "adapt_every": (10, lambda s: s.algorithm.schedule == piaget.Staged(90, 9, 1)),
    "replay_size": (9, lambda s: s.adaptation == piaget.Replay(9)),
    "replay_share": (0.5, lambda s: s.adaptation == piaget.Replay(None, 0.5)),
    "ewc_strength": (0.5, lambda s: s.adaptation == piaget.KroneckerEWC(0.5)),
    "acceptance": ("validated", lambda s: s.acceptance == piaget.Validated()),
    "held_out": (0.5, lambda s: s.acceptance == piaget.Validated(held_out=0.5)),
    "threshold": (0.2, lambda s: s.algorithm.expansion == piaget.ComponentDropout(0.2)),
    "kept_epoch": ("best", lambda s: s.kept_epoch == piaget.BestEpoch()),
    "start": ("similar", lambda s: s.start == piaget.SimilarTask()),
    "candidate_start": ("most-used", lambda s: s.candidate_start == piaget.MostUsed()),
    "reduction": ("prune-and-merge", lambda s: s.reduction == piaget.PruneAndMerge()),
    "calibration": ("temperature", lambda s: s.calibration == "temperature"),
    "inference": ("encoded", lambda s: s.inference == piaget.Density("encoded")),
    "compile": ("never", lambda s: s.compile == "never"),
    "device": ("cpu", lambda s: s.device == "cpu"),
    "dtype": ("float64", lambda s: s.dtype == "float64"),
}


@pytest.mark.parametrize("name", [name for name in SETTINGS if name not in ("seed", "components_from")])
def test_every_setting_reaches_the_learner(name):
    value, holds = VALUES[name]
    conv = name in ("channels", "padding", "components")
    stream = {"stream": "cifar100"} if conv else {}
    adaptation = "ewc" if name == "ewc_strength" else "er"
    made = learner(**stream, adaptation=adaptation, settings={name: value})
    assert holds(made.settings), made.settings
    assert not name.startswith(("width", "depth")) or not holds(learner().settings)


def test_the_papers_settings_are_the_defaults():
    assert not learner(stream="mnist").settings.encoder.learns
    assert learner(stream="cub").settings.components == piaget.Dense(256)
    assert learner(stream="omniglot").settings.components == piaget.Conv(53, padding=0)
    assert learner(stream="schools").settings.method == "linear/er/compositional"
    assert learner(stream="objects").settings.adaptation == piaget.Replay(5)
    assert learner(stream="omniglot", settings={"channels": 20}).settings.components == piaget.Conv(
        20, padding=0
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widht": 3}, "'widht' is not known (did you mean 'width'?); known: structure,"),
        ({"width": "wide"}, "width='wide': expected a whole number, 1 or more"),
        ({"width": 0}, "width=0: expected a whole number"),
        ({"encoder": "big"}, "expected learned, fixed, shared or none"),
        ({"learning_rate": "fast"}, "expected a finite number"),
        ({"learning_rate": float("inf")}, "learning_rate=inf: expected a finite number"),
        ({"batch_size": "some"}, "expected a whole number"),
    ],
)
def test_wrong_settings(settings, message):
    with pytest.raises(SettingError, match=re.escape(message)):
        check_settings(settings)


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({"settings": {"channels": 5}}, "channels is not a setting of Dense"),
        (
            {"adaptation": "nft", "settings": {"replay_size": 5}},
            "replay_size is not a setting of NaiveFineTuning",
        ),
        ({"algorithm": "joint", "settings": {"adapt_every": 5}}, "all its epochs are alike"),
        (
            {"algorithm": "compositional", "settings": {"threshold": 0.1}},
            "threshold is not a setting of NoExpansion",
        ),
        ({"settings": {"adapt_every": 33}}, "with 100 epochs; expected one of 2, 4, 5"),
    ],
)
def test_settings_that_do_not_go_together(configuration, message):
    with pytest.raises(SettingError, match=message):
        learner(**configuration)


def described(out):
    return json.loads((out / "seed-2" / "run.json").read_text())["configuration"]


FILE = """
stream = "digits"
algorithm = "compositional"
epochs = 2
seeds = "2"
width = 16
learning_rate = 0.01

[options]
tasks = 5
train_size = 20
"""


def test_from_a_file_with_changes(tmp_path):
    path, out = tmp_path / "config.toml", tmp_path / "out"
    path.write_text(FILE)
    flags = ["--epochs", "3", "--width", "8", "--set", "learning_rate=0.02", "--option", "tasks=4"]
    assert main(["run", str(path), *flags, "--quiet", "--out", str(out)]) == 0
    found = described(out)
    assert found["algorithm"] == "compositional"
    assert found["epochs"] == 3  # a flag goes before the file
    assert found["settings"] == {"encoder": "fixed", "width": 8, "learning_rate": 0.02}
    assert found["options"] == {"tasks": 4, "train_size": 20}
    loaded = piaget.Learner.load(out / "seed-2" / "learner")
    assert loaded.settings.components == piaget.Dense(8)
    assert len(loaded.tasks) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('stream = "digits"\nwidht = 3', "'widht' is not known (did you mean 'width'?)"),
        ("stream = ", "is no TOML file"),
        ('stream = "digits"\nepochs = 0', "epochs=0"),
        ('stream = "digits"\nseeds = "x"', "is not a list of seeds"),
        ("epochs = 3", "give either a stream"),
        ('stream = "digits"\n[options]\ncolour = 3', "no option 'colour'"),
    ],
)
def test_wrong_files(tmp_path, text, message, capsys):
    (tmp_path / "config.toml").write_text(text)
    assert main(["run", str(tmp_path / "config.toml"), "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert main(["run", str(tmp_path / "nothing.toml")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_help_explains_every_setting(capsys):
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for setting in SETTINGS.values():
        assert setting.flag in text
        assert setting.about.help.split()[0] in text


def test_a_flag_goes_before_the_file_also_if_it_is_the_default(tmp_path):
    path, out = tmp_path / "config.toml", tmp_path / "out"
    path.write_text(FILE + "\n")
    text = path.read_text().replace('seeds = "2"', 'seeds = "0-1"\nadaptation = "nft"')
    path.write_text(text)
    flags = ["--adaptation", "er", "--seeds", "0", "--epochs", "2", "--quiet", "--out", str(out)]
    assert main(["run", str(path), *flags]) == 0
    assert [folder.name for folder in sorted(out.iterdir())] == ["seed-0"]
    found = json.loads((out / "seed-0" / "run.json").read_text())
    assert found["configuration"]["adaptation"] == "er"
    # What is used is recorded whole; a default that is spelled out is no other configuration.
    assert found["learner"]["components"] == {"part": "Dense", "width": 16, "dropout": 0.5}
    assert main(["run", str(path), *flags, "--dropout", "0.5"]) == 0
    assert main(["run", str(path), *flags, "--dropout", "0.4"]) == 2


def test_set_speaks_of_everything(tmp_path):
    out = tmp_path / "out"
    words = ["--set", "seeds=0,2", "--set", "epochs=2", "--set", "options.tasks=5", "--set", "width=8"]
    arguments = ["run", "digits", *words, "--option", "train_size=20", "--quiet", "--out", str(out)]
    assert main(arguments) == 0
    assert sorted(folder.name for folder in out.iterdir()) == ["seed-0", "seed-2"]
