"""Runs on the simulated kernel: results, recordings, progress, interruption, the GIL."""

import os
import signal
import threading
import time

import pytest

import mmtwin

LONG = {"process.server.phase.work.duration": "100000 s"}


def test_a_run_has_results(small, tmp_path):
    run = mmtwin.run(mmtwin.Scenario.load(small), output=tmp_path / "r.mmt")
    assert (run.status, run.reason) == ("completed", None)
    assert run.report.arm == "twin"
    assert run.results()["phases"][0]["process"] == "server"
    again = mmtwin.run(mmtwin.Scenario.load(small), check_determinism=True)
    assert again.report.figures() == run.report.figures()
    assert mmtwin.open(tmp_path / "r.mmt").report().figures()["overview.elapsed"] == pytest.approx(run.elapsed, rel=0.01)
    with pytest.raises(mmtwin.TraceError, match="r.mmt"):
        mmtwin.run(mmtwin.Scenario.load(small), output=tmp_path / "r.mmt")
    mmtwin.run(mmtwin.Scenario.load(small), output=tmp_path / "r.mmt", force=True)


def test_runs_are_compared(small):
    base = mmtwin.Scenario.load(small)
    runs = {"all": mmtwin.run(base), "half": mmtwin.run(base.override({"cgroup./box.memory.max": "12 MiB"}))}
    compared = mmtwin.compare(runs)
    assert any("12 MiB" in note for note in compared.notes)


def test_ctrl_c_ends_a_run(small):
    scenario = mmtwin.Scenario.load(small, LONG)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        mmtwin.run(scenario)


def test_what_progress_raises_ends_a_run(small):
    class Enough(Exception):
        pass

    def progress(seconds):
        assert seconds >= 0
        raise Enough

    with pytest.raises(Enough):
        mmtwin.run(mmtwin.Scenario.load(small, LONG), progress=progress)


def test_other_threads_run_meanwhile(small):
    turns = []

    def count(_):
        if len(turns) > 5:
            raise TimeoutError

    def turn():
        while True:
            turns.append(time.monotonic())
            time.sleep(0.01)

    threading.Thread(target=turn, daemon=True).start()
    with pytest.raises(TimeoutError):
        mmtwin.run(mmtwin.Scenario.load(small, LONG), progress=count)
