import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Several workers share the cores: one thread each, here and in the processes that tests start.
os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import pytest
import torch

from piaget.cli import main
from piaget.lab.executors import InProcess
from tests.browser import browser, driver  # noqa: F401  # fixtures for tests of pages
from tests.commands import DISTURBED, rows_of, words
from tests.data_files import write_everything
from tests.reported import copy, results  # noqa: F401  # fixtures for tests of reports

torch.set_num_threads(1)
REAL_DATA = os.environ.pop("PIAGET_DATA", None)  # only tests that ask for real data see it


def pytest_configure(config: pytest.Config) -> None:
    """Caches of this session's own, which its workers and the processes they start have in common.

    What is compiled is kept there under a key of all it depends on: made once, and not by every test.
    """
    if not hasattr(config, "workerinput"):  # the others inherit it
        folder = tempfile.mkdtemp(prefix="piaget-tests-")
        os.environ |= {"XDG_CACHE_HOME": folder, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor"}
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


# Files whose tests share something that is not to be started twice, or that would get into each other's way:
# with several workers, each of these is given to a single one, before all others. (Other tests are given out
# one by one. The marker xdist_group, which would do the same, is not heeded by pytest 9.2 with xdist 3.8.)
TOGETHER = (
    *("test_ray.py", "test_page.py", "test_page_explorer.py", "test_page_look.py", "test_table_page.py"),
    "test_table_bends.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            return file if file.endswith(TOGETHER) else nodeid

    return Scheduler(config, log)


@pytest.fixture(autouse=True)
def _no_global_randomness() -> Iterator[None]:
    """Nothing in the library may use or move PyTorch's global generator."""
    before = torch.random.get_rng_state()
    yield
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.fixture(autouse=True)
def _no_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The user's own cache folder is not looked at, nor written to; what is downloaded, each test's own."""
    empty: Callable[[str], Path] = functools.cache(lambda name: tmp_path_factory.mktemp("cache"))
    shared = Path(os.environ["XDG_CACHE_HOME"])
    monkeypatch.setattr("piaget.streams.fetch.user_cache_path", empty)
    monkeypatch.setattr("piaget.engine.compiled.user_cache_path", lambda name: shared / name)


@pytest.fixture
def real_data() -> Path:
    """The folder of real data sets."""
    if REAL_DATA is None:
        pytest.skip("no real data: PIAGET_DATA does not name a folder")
    return Path(REAL_DATA)


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with small files of every source."""
    root = tmp_path_factory.mktemp("data")
    write_everything(root)
    return root


@pytest.fixture
def without_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps run their jobs in this process: for tests that are about something else than workers."""
    monkeypatch.setattr("piaget.lab.executors.Processes", InProcess)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, bytes]:
    """The row files of the sweep that others disturb."""
    out = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("piaget.lab.executors.Processes", InProcess)
        assert main(words(DISTURBED, out=out)) == 0
    rows = rows_of(out)
    assert len(rows) == 4
    return rows
