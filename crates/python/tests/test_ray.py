"""Sweeps on a cluster of three node processes: the same bytes as on one machine, whoever dies."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mmtwin

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

# 200 runs.
VALUES = {"kernel.sysctl.vm.swappiness": "0..199:100", "process.server.phase.work.duration": ["2 s"]}
SETS = ["kernel.sysctl.vm.swappiness=0..199:100", "process.server.phase.work.duration=2 s"]
SEEDS = [1, 2]


@pytest.fixture(scope="module")
def cluster():
    node = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=node)
    del node["include_dashboard"]
    cluster.others = [cluster.add_node(**node) for _ in range(2)]
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The scenario, and the bytes of a sweep on this machine."""
    from conftest import SMALL

    folder = tmp_path_factory.mktemp("ray")
    (folder / "small.toml").write_text(SMALL)
    mmtwin.sweep(folder / "small.toml", VALUES, seeds=SEEDS, output=folder / "local.parquet")
    return folder / "small.toml", (folder / "local.parquet").read_bytes()


def test_a_driver_that_is_killed_is_continued(cluster, expected, tmp_path):
    scenario, wanted = expected
    output = tmp_path / "o.parquet"
    command = [
        sys.executable,
        "-m",
        "mmtwin.ray",
        scenario,
        "-o",
        output,
        "--address",
        cluster.address,
        "--seeds",
        "1..2",
    ]
    for one in SETS:
        command += ["--set", one]
    driver = subprocess.Popen(command)
    journal = output.with_name("o.parquet.journal")
    rows = lambda: journal.read_bytes().count(b'{"row":') if journal.exists() else 0  # noqa: E731
    until(lambda: rows() >= 10 or driver.poll() is not None)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    kept = rows()
    assert 10 <= kept < 200
    subprocess.run(command, check=True)
    assert output.read_bytes() == wanted


def test_a_node_that_dies_loses_nothing(cluster, expected, tmp_path):
    scenario, wanted = expected
    ray.init(address=cluster.address, log_to_driver=False, ignore_reinit_error=True)
    killed = []

    def progress(done, of):
        if done >= 10 and not killed:
            killed.append(cluster.others.pop())
            cluster.remove_node(killed[0], allow_graceful=False)

    sweep = mmtwin.sweep(scenario, VALUES, seeds=SEEDS, output=tmp_path / "o.parquet", engine="ray", progress=progress)
    assert killed and len(sweep) == 200
    assert (tmp_path / "o.parquet").read_bytes() == wanted


def test_the_command_line_starts_it(cluster, expected, tmp_path, program):
    scenario, wanted = expected
    command = [program, "sweep", scenario, "-o", tmp_path / "o.parquet", "--seeds", "1..2"]
    for one in SETS:
        command += ["--set", one]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        [*command, "--engine", "ray", "--address", cluster.address],
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "o.parquet").read_bytes() == wanted
    assert ran.stdout.rstrip("\n") == str(mmtwin.read_sweep(tmp_path / "o.parquet"))


def test_another_version_is_refused(cluster, expected, tmp_path, monkeypatch):
    from mmtwin import ray as on_ray

    ray.init(address=cluster.address, log_to_driver=False, ignore_reinit_error=True)
    monkeypatch.setattr(on_ray, "VERSION", "mmtwin 0.0.0 (another)")
    with pytest.raises(mmtwin.SweepError, match=r"worker .* has mmtwin .*, the driver mmtwin 0\.0\.0"):
        mmtwin.sweep(expected[0], VALUES, output=tmp_path / "o.parquet", engine="ray")


def until(condition, seconds=120):
    """Waits for what is to happen."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
