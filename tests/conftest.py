import os
from pathlib import Path

import pytest
import torch

from tests.data_files import write_everything

torch.set_num_threads(1)
REAL_DATA = os.environ.pop("PIAGET_DATA", None)  # only tests that ask for real data see it


@pytest.fixture(autouse=True)
def _no_global_randomness():
    """Nothing in the library may use or move PyTorch's global generator."""
    before = torch.random.get_rng_state()
    yield
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.fixture(autouse=True)
def _no_cache_folder(monkeypatch, tmp_path_factory):
    """The user's own cache folder is not looked at, nor written to."""
    empty = tmp_path_factory.mktemp("cache")
    for module in ("piaget.streams.fetch", "piaget.engine.compiled"):
        monkeypatch.setattr(f"{module}.user_cache_path", lambda name: empty)


@pytest.fixture
def real_data():
    """The folder of real data sets."""
    if REAL_DATA is None:
        pytest.skip("no real data: PIAGET_DATA does not name a folder")
    return Path(REAL_DATA)


@pytest.fixture(scope="session")
def small_data(tmp_path_factory):
    """A data folder with small files of every source."""
    root = tmp_path_factory.mktemp("data")
    write_everything(root)
    return root
