"""Sweeps and reports on a cluster of three node processes: the same bytes as on one machine, whoever dies.

Nothing depends on how fast the machine is. What waits for a cluster or a run has minutes, and a cluster that did not start
in the time that Ray itself gives it is started again.
"""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mmtwin

# Read when Ray is imported and by its processes: a loaded machine starts them slowly, and other programs' memory is no
# reason to end a worker.
os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "300")
os.environ.setdefault("RAY_memory_monitor_refresh_ms", "0")

ray = pytest.importorskip("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")

# 200 runs.
VALUES = {"kernel.sysctl.vm.swappiness": "0..199:100", "process.server.phase.work.duration": ["2 s"]}
SETS = ["kernel.sysctl.vm.swappiness=0..199:100", "process.server.phase.work.duration=2 s"]
SEEDS = [1, 2]


# How often a cluster is started before it is a failure: each time Ray waits half a minute for a node.
STARTS = 5


@pytest.fixture(scope="module")
def cluster():
    for last in [False] * (STARTS - 1) + [True]:
        try:
            cluster = started()
            break
        except Exception:
            ray.shutdown()
            if last:
                raise
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def started():
    """A cluster of three nodes."""
    cluster = cluster_utils.Cluster()
    try:
        node = {"num_cpus": 1, "object_store_memory": 80 << 20}
        cluster.add_node(**node, include_dashboard=False)
        cluster.others = [cluster.add_node(**node) for _ in range(2)]
        cluster.wait_for_nodes(timeout=300)
    except BaseException:
        cluster.shutdown()
        raise
    return cluster


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The scenario, and the bytes of a sweep on this machine."""
    from conftest import SMALL

    folder = tmp_path_factory.mktemp("ray")
    (folder / "small.toml").write_text(SMALL)
    mmtwin.sweep(folder / "small.toml", VALUES, seeds=SEEDS, output=folder / "local.parquet")
    return folder / "small.toml", (folder / "local.parquet").read_bytes()


# A driver that dies with ten runs or some more; a task has 33 at most.
KILLED = """
import os, signal, sys
import mmtwin
scenario, output, address = sys.argv[1:4]
values = dict(one.split("=", 1) for one in sys.argv[4:])
die = lambda done, of: os.kill(os.getpid(), signal.SIGKILL) if done >= 10 else None
mmtwin.sweep(scenario, values, seeds=[1, 2], output=output, engine="ray", address=address, progress=die)
"""


def test_a_driver_that_is_killed_is_continued(cluster, expected, tmp_path):
    scenario, wanted = expected
    output = tmp_path / "o.parquet"
    driver = subprocess.run([sys.executable, "-c", KILLED, scenario, output, cluster.address, *SETS])
    assert driver.returncode == -signal.SIGKILL
    kept = output.with_name("o.parquet.journal").read_bytes().count(b'{"row":')
    assert 10 <= kept < 200 and not output.exists()
    command = [sys.executable, "-m", "mmtwin.ray", scenario, "-o", output, "--address", cluster.address, "--seeds", "1..2"]
    for one in SETS:
        command += ["--set", one]
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


def test_a_report_on_many_recordings(cluster, tmp_path):
    from test_fleet import some

    ray.init(address=cluster.address, log_to_driver=False, ignore_reinit_error=True)
    folder, told = some(tmp_path), []
    # More than a task has.
    for copy in range(12):
        shutil.copy(folder / "web1.tar.zst", folder / f"copy{copy}.tar.zst")
    local = mmtwin.report(folder, engine="local")
    on_ray = mmtwin.report(folder, engine="ray", progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (17, 17)
    assert (len(on_ray), len(on_ray.unreadable)) == (16, 1)
    assert str(on_ray) == str(local)
    assert (on_ray.to_json(), on_ray.to_csv()) == (local.to_json(), local.to_csv())
    for name, fleet in [("local", local), ("ray", on_ray)]:
        fleet.write_index(tmp_path / name)
    assert (tmp_path / "ray").read_bytes() == (tmp_path / "local").read_bytes()


def test_recordings_that_only_the_driver_has_are_an_error(cluster, tmp_path):
    from mmtwin import ray as on_ray

    class Elsewhere:
        """Recordings of another machine."""

        planned_runs, done = 1, 0

        def missing(self):
            return [0]

        def task(self, at):
            return (tmp_path / "none.mmt", True)

    ray.init(address=cluster.address, log_to_driver=False, ignore_reinit_error=True)
    with pytest.raises(mmtwin.TraceError, match=r"worker .*none\.mmt: not on this machine"):
        on_ray.run_missing(Elsewhere(), what="read")


def test_another_version_is_refused(cluster, expected, tmp_path, monkeypatch, trace):
    from mmtwin import ray as on_ray

    ray.init(address=cluster.address, log_to_driver=False, ignore_reinit_error=True)
    monkeypatch.setattr(on_ray, "VERSION", "mmtwin 0.0.0 (another)")
    with pytest.raises(mmtwin.SweepError, match=r"worker .* has mmtwin .*, the driver mmtwin 0\.0\.0"):
        mmtwin.sweep(expected[0], VALUES, output=tmp_path / "o.parquet", engine="ray")
    with pytest.raises(mmtwin.SweepError, match=r"worker .* has mmtwin"):
        mmtwin.report(trace, engine="ray")
