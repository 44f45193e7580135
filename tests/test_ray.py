"""Sweeps on a real Ray instance, with workers and machines that die."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import DISTURBED, command, rows_of, said, words

ENVIRONMENT = {"RAY_AUTH_MODE": "disabled"}


def sweep(out: Path, *more: str) -> list[str]:
    return command(*words(DISTURBED, *more, out=out))


def workers(ancestor: int) -> list[int]:
    """The processes that run a cohort, which Ray names by the function."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::_on_ray") and descends(path.parent, ancestor):
                found.append(int(path.parent.name))
        except OSError:  # it is gone
            continue
    return found


def descends(process: Path, ancestor: int) -> bool:
    """Was it started by that process, or by one that it started? Others may use Ray on this machine, too."""
    while (number := int(process.name)) > 1:
        if number == ancestor:
            return True
        parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
        process = process.with_name(parent)
    return False


@pytest.mark.slow
def test_a_killed_worker(tmp_path, undisturbed):
    process = subprocess.Popen(
        sweep(tmp_path, "--executor", "ray"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | ENVIRONMENT,
    )
    while process.poll() is None and len(list(tmp_path.rglob("checkpoint.json"))) < 2:
        time.sleep(0.02)
    found = workers(process.pid)
    assert len(found) == 2
    os.kill(found[0], signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert rows_of(tmp_path) == undisturbed
    logs = [path.read_text() for path in tmp_path.rglob("log.txt")]
    assert sum("goes on at" in log for log in logs) == 2  # both runs of the cohort


# A cluster of two machines, of which one is lost; the sweep is given its address.
CLUSTER = """
import pathlib, subprocess, sys, time
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
lost = cluster.add_node(num_cpus=1)
out = pathlib.Path(sys.argv[1])
process = subprocess.Popen([*sys.argv[2:], "--address", cluster.address])
while process.poll() is None and len(list(out.rglob("checkpoint.json"))) < 2:
    time.sleep(0.02)
cluster.remove_node(lost, allow_graceful=False)
code = process.wait()
cluster.shutdown()
sys.exit(code)
"""


@pytest.mark.slow
def test_a_lost_machine(tmp_path, undisturbed):
    call = [sys.executable, "-c", CLUSTER, str(tmp_path), *sweep(tmp_path, "--executor", "ray")]
    done = subprocess.run(call, capture_output=True, text=True, env=os.environ | ENVIRONMENT, timeout=300)
    assert done.returncode == 0, done.stderr
    assert rows_of(tmp_path) == undisturbed


def test_wrong_words(tmp_path, capsys):
    for more, message in (
        ("--address auto", "--address is of a Ray cluster: give --executor ray, too"),
        ("--executor ray --address auto --workers 3", "leave out --workers"),
    ):
        code, _, errors = said(capsys, *words(f"{DISTURBED} {more}", out=tmp_path / "out"))
        assert (code, message in errors) == (2, True), errors


def test_no_cluster_there(tmp_path):
    call = sweep(tmp_path / "out", "--executor", "ray", "--address", "auto")
    environment = os.environ | ENVIRONMENT | {"RAY_TMPDIR": str(tmp_path)}
    done = subprocess.run(call, capture_output=True, text=True, env=environment)
    assert (done.returncode, "no Ray cluster at address 'auto'" in done.stderr) == (2, True), done.stderr
