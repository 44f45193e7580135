"""Sweeps on a real Ray instance, with workers and machines that die."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SWEEP = [
    "sweep",
    "digits",
    "--algorithms",
    "compositional",
    "joint",
    "--seeds",
    "2",
    "--cohort",
    "2",
    "--epochs",
    "30",
    "--option",
    "tasks=6",
    "--option",
    "train_size=40",
    "--quiet",
]


def command(out, *more):
    return [sys.executable, "-m", "piaget", *SWEEP, "--out", str(out), *more]


def rows(out):
    return {path.relative_to(out): path.read_bytes() for path in out.rglob("rows.csv")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    assert subprocess.run(command(out), capture_output=True).returncode == 0
    assert len(rows(out)) == 4
    return rows(out)


def workers():
    """The processes that run a cohort, which Ray names by the function."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::_on_ray"):
                found.append(int(path.parent.name))
        except OSError:  # it is gone
            continue
    return found


@pytest.mark.slow
def test_a_killed_worker(tmp_path, undisturbed):
    environment = os.environ | {"RAY_AUTH_MODE": "disabled"}
    process = subprocess.Popen(
        command(tmp_path, "--executor", "ray"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    while process.poll() is None and len(list(tmp_path.rglob("checkpoint.json"))) < 2:
        time.sleep(0.02)
    found = workers()
    assert len(found) == 2
    os.kill(found[0], signal.SIGKILL)
    assert process.wait() == 0, process.stderr.read()
    process.stderr.close()
    assert rows(tmp_path) == undisturbed
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
    environment = os.environ | {"RAY_AUTH_MODE": "disabled"}
    call = [sys.executable, "-c", CLUSTER, str(tmp_path), *command(tmp_path, "--executor", "ray")]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path) == undisturbed


def test_wrong_words(tmp_path):
    for more, message in (
        (["--address", "auto"], "--address is of a Ray cluster: give --executor ray, too"),
        (["--executor", "ray", "--address", "auto", "--workers", "3"], "leave out --workers"),
    ):
        done = subprocess.run(command(tmp_path / "out", *more), capture_output=True, text=True)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_no_cluster_there(tmp_path):
    more = ["--executor", "ray", "--address", "auto"]
    environment = os.environ | {"RAY_TMPDIR": str(tmp_path), "RAY_AUTH_MODE": "disabled"}
    done = subprocess.run(command(tmp_path / "out", *more), capture_output=True, text=True, env=environment)
    assert (done.returncode, "no Ray cluster at address 'auto'" in done.stderr) == (2, True), done.stderr
