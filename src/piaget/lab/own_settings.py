"""Deep methods over a table of one's own: settings that are not the paper's, for runs that begin now."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from piaget.data.tasks import Stream, all_validated
from piaget.errors import SettingError, note
from piaget.lab.configuration import Configuration
from piaget.lab.folder import RunFolder, readable, seed_folders
from piaget.lab.making import learners_for
from piaget.lab.parts import NOTHING, Trusted
from piaget.lab.unchanged import check_configuration
from piaget.learner import Learner
from piaget.method.description import to_json


def suit_own_data(
    configuration: Configuration,
    own: Mapping[str, Any],
    streams: Sequence[Stream],
    seeds: Sequence[int],
    out: Path,
    trusted: Trusted = NOTHING,
) -> tuple[Configuration, list[Learner]]:
    """The learners of streams, one each, and the configuration that they have: with the settings `own`, which
    suit one's own data, if all tasks have validation rows. A run that began without them goes on so: an older
    version had the paper's."""
    learners = learners_for(streams, configuration, seeds, trusted)
    if not own or not all(map(all_validated, streams)):
        return configuration, learners
    begun = zip(seed_folders(out, seeds), learners, strict=True)
    before = next((path for path, learner in begun if _began_with(path, configuration, learner)), None)
    if before is None:
        configuration = configuration | {"settings": {**own, **configuration["settings"]}}
        return configuration, learners_for(streams, configuration, seeds, trusted)
    told = ", ".join(f"{name}={value}" for name, value in own.items())
    note(
        f"{before}: the run has the paper's settings, with which older versions of piaget began, and keeps "
        f"them; in another folder, a new one has {told}"
    )
    return configuration, learners


def _began_with(folder: Path, configuration: Configuration, learner: Learner) -> bool:
    if not RunFolder(folder).file.is_file():
        return False
    wanted = json.loads(json.dumps(configuration | {"seed": learner.settings.seed}))
    try:
        check_configuration(folder, readable(folder), wanted, to_json(learner.settings))
    except SettingError:
        return False
    return True
