"""piaget components: a library of components, written from a run, and looked at."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from piaget.cli.common import print_json

OWN = "components of its own"


def add(commands: Any) -> None:
    """The command and its flags."""
    parser = commands.add_parser(
        "components",
        help="write the components of a run into a library that other learners can begin with, or show one",
        description="A library is a folder: components.json (a card: kind, shapes, tasks, where they were "
        "trained, licence, hashes) and a tensor file. piaget run ... --components-from FOLDER begins with "
        "it. Nothing in it can run code, and it is verified before it is used.",
    )
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    export = actions.add_parser("export", help="write the components of a finished run")
    export.add_argument(
        "folder", type=Path, metavar="DIR", help="folder of piaget run, of one of its runs, or of a learner"
    )
    export.add_argument(
        "--to", type=Path, required=True, metavar="FOLDER", help="a folder for it alone, new or empty"
    )
    export.add_argument("--licence", metavar="TEXT", help="under which others may use them, such as MIT")
    export.add_argument("--note", default="", metavar="TEXT", help="whatever others should know")
    export.set_defaults(run=_export)
    show = actions.add_parser("show", help="show the card of a library, after verifying it")
    show.add_argument("folder", type=Path, metavar="FOLDER", help="a library")
    show.add_argument("--json", action="store_true", help="all of the card, as JSON")
    show.set_defaults(run=_show)


def _export(options: argparse.Namespace) -> int:
    import piaget
    from piaget.errors import LoadError, SettingError
    from piaget.lab.folder import RunFolder, runs_in

    folder = options.folder
    if runs := runs_in(folder):
        if len(runs) > 1:
            raise SettingError(f"{folder} has {len(runs)} runs; give one of them, such as {runs[0].path}")
        folder = runs[0].path
    if (folder / "run.json").is_file():
        run = RunFolder(folder)
        if run.status != "done":
            raise LoadError(f"{folder}: the run is {run.status}; only one that is done has a learner")
        folder = run.saved_learner()
    learner = piaget.load(folder)
    if not isinstance(learner, piaget.Learner):
        raise SettingError(f"{folder} holds a prior learner, which has no components of this kind")
    learner.export_components(options.to, licence=options.licence, note=options.note)
    print(f"{options.to}: {learner.components} components of {len(learner.tasks)} tasks")
    if options.licence is None:
        print("Nothing is said of a licence: others cannot tell whether they may use them (--licence).")
    return 0


def _show(options: argparse.Namespace) -> int:
    from dataclasses import asdict

    from piaget.knowledge.library import digest_of, read_card

    card = read_card(options.folder)
    if options.json:
        print_json(asdict(card) | {"digest": digest_of(card)})
        return 0
    named = ("part", "custom")
    fields = ", ".join(f"{name}={value}" for name, value in card.kind.items() if name not in named)
    kind = card.kind.get("part") or f"{card.kind.get('custom')} (not part of piaget: give it, too)"
    trained = card.trained
    lines = {
        "components": f"{card.count} of kind {kind} ({fields})",
        "depth": f"{card.depth}",
        "one has": ", ".join(f"{name} {shape}" for name, shape in card.shapes.items()) + f", {card.dtype}",
        "trained": f"{trained.method}, seed {trained.seed}, on {trained.tasks} tasks of "
        + (", ".join(filter(None, trained.streams)) or "no named stream"),
        "by": ", ".join(f"{name} {version}" for name, version in trained.versions.items()),
        "began with": trained.started_from or OWN,
        "merged with": "; ".join(
            f"seed {one.seed}, began with {one.started_from or OWN}" for one in trained.merged
        )
        or "no other learner",
        "licence": card.licence or "not said",
        "note": card.note,
        "hash": digest_of(card),
    }
    for name, text in lines.items():
        print(f"{name:>12}  {_one_line(text)}")
    for i, digest in enumerate(card.hashes):
        users = [(sum(user.weights[i]), user.name) for user in card.tasks if i < len(user.weights)]
        most = ", ".join(_one_line(name) for weight, name in sorted(users, reverse=True)[:3] if weight > 0)
        print(f"{f'component {i}':>12}  {digest[:16]}  most used by {most or 'no task'}")
    return 0


def _one_line(text: str) -> str:
    """Text from a file, without what a terminal would act upon."""
    return "".join(c if c.isprintable() else " " for c in text)
