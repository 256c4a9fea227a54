"""Sweeps: the same bytes as the command line's, faults, continuation."""

import os
import signal
import subprocess
import sys
import threading

import pytest

import mmtwin

VALUES = {"cgroup./box.memory.max": "12MiB..24MiB:4", "kernel.sysctl.vm.swappiness": [10, 60]}


def test_the_bytes_are_those_of_the_command_line(small, tmp_path, program):
    command = [program, "sweep", small, "-o", tmp_path / "c.parquet", "--seeds", "1..2"]
    for one in ["cgroup./box.memory.max=12MiB..24MiB:4", "kernel.sysctl.vm.swappiness=10,60"]:
        command += ["--set", one]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"})
    told = []
    sweep = mmtwin.sweep(
        small, VALUES, seeds=[1, 2], output=tmp_path / "p.parquet", progress=lambda done, of: told.append((done, of))
    )
    assert (tmp_path / "p.parquet").read_bytes() == (tmp_path / "c.parquet").read_bytes()
    assert told[-1] == (16, 16)
    assert str(sweep) == printed.stdout.rstrip("\n")
    assert (len(sweep), sweep.planned, sweep.kept, sweep.version) == (16, 16, 0, mmtwin.VERSION)
    again = mmtwin.sweep(small, VALUES, seeds=[1, 2], output=tmp_path / "p.parquet")
    assert again.kept == 16
    assert mmtwin.read_sweep(tmp_path / "p.parquet").keys == list(VALUES)


def test_rows_are_arrow(small):
    import polars as pl

    sweep = mmtwin.sweep(small, VALUES, jobs=1)
    frame = pl.DataFrame(sweep)
    assert frame.height == 8
    assert frame["case.kernel.sysctl.vm.swappiness.number"].to_list() == [10.0, 60.0] * 4
    assert set(frame["status"]) == {"completed"}
    assert "memory.max" in sweep.curve("overview.elapsed")
    assert "best" in str(sweep) or len(str(sweep)) > 0
    with pytest.raises(ValueError, match="no key or quantity"):
        sweep.curve("none")


def test_cases(small, tmp_path):
    cases = [{"kernel.thp": "never", "run.duration": "1 s"}, {"kernel.thp": "always", "run.duration": "2 s"}]
    listed = mmtwin.sweep(small, cases=cases)
    file = tmp_path / "cases.csv"
    file.write_text("kernel.thp,run.duration\nnever,1 s\nalways,2 s\n")
    assert listed.table().rows() == mmtwin.sweep(small, cases=file).table().rows()
    paired = mmtwin.sweep(small, {"kernel.thp": ["never", "always"], "run.duration": ["1 s", "2 s"]}, paired=True)
    assert paired.table().rows() == listed.table().rows()
    with pytest.raises(ValueError, match="the same keys"):
        mmtwin.sweep(small, cases=[{"kernel.thp": "never"}, {"run.duration": "1 s"}])
    with pytest.raises(ValueError, match="values and a list of cases"):
        mmtwin.sweep(small, {"kernel.thp": ["never"]}, cases=cases)


def test_overrides_are_part_of_each_case(small):
    base = mmtwin.Scenario.load(small, {"run.seed": 5})
    sweep = mmtwin.sweep(base, {"kernel.thp": ["never"]})
    assert sweep.table().rows()[0]["seed"] == 5
    with pytest.raises(mmtwin.ScenarioError) as raised:
        mmtwin.sweep(base, {"kernel.thp": ["often"], "kernel.sysctl.vm.swappines": [1]})
    assert {(fault.file, fault.key) for fault in raised.value.faults} == {
        ("--set 1", "kernel.thp"),
        ("--set 2", "kernel.sysctl.vm.swappines"),
    } or "kernel.sysctl.vm.swappines" in str(raised.value)


def test_ctrl_c_keeps_what_is_finished(small, tmp_path):
    output = tmp_path / "o.parquet"
    values = {"kernel.sysctl.vm.swappiness": "0..199:200", "process.server.phase.work.duration": ["3 s"]}

    killed = []

    def progress(done, of):
        if done >= 3 and not killed:
            killed.append(done)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        mmtwin.sweep(small, values, output=output, progress=progress)
    kept = len(mmtwin.read_sweep(output))
    assert 3 <= kept < 200
    assert not output.with_name("o.parquet.journal").exists()
    with pytest.raises(mmtwin.SweepError, match="is a sweep of other keys"):
        mmtwin.sweep(small, {"kernel.thp": ["never"]}, output=output)


def test_engines_and_their_options(small):
    with pytest.raises(ValueError, match="expected 'local' or 'ray'"):
        mmtwin.sweep(small, engine="slurm")
    with pytest.raises(TypeError, match="no option address"):
        mmtwin.sweep(small, address="auto")


def test_ray_is_not_imported(small):
    code = "import sys, mmtwin; mmtwin.sweep(sys.argv[1], jobs=1); assert not {'ray', 'optuna'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code, small], check=True)


def test_threads_end(small):
    before = threading.active_count()
    mmtwin.sweep(small, VALUES)
    assert threading.active_count() == before
