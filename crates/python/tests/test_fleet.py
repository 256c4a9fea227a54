"""Many recordings: what `mmtwin report --fleet` says of them, on threads."""

import os
import shutil
import subprocess

import pytest
from conftest import ROOT

import mmtwin

RECORDINGS = {
    "web1.tar.zst": "host-cp",
    "web2.tar.zst": "host-wc-loop",
    "db/a.tar.zst": "host-redis-oom",
    "db/b.tar.zst": "host-cp-free",
}


def some(folder):
    """Four recordings, and a file that is none."""
    (folder / "db").mkdir()
    for to, name in RECORDINGS.items():
        shutil.copy(ROOT / f"tests/verdicts/{name}.tar.zst", folder / to)
    (folder / "cut.dat").write_text("17.9")
    return folder


def test_it_is_what_the_command_line_says(tmp_path, program):
    folder, told = some(tmp_path), []
    fleet = mmtwin.report(folder, engine="local", progress=lambda done, of: told.append((done, of)))

    def said(*arguments):
        command = [program, "report", "--fleet", folder, *arguments]
        ran = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "100"})
        assert (ran.returncode, ran.stderr) == (1, "")
        return ran.stdout

    index, expected = tmp_path / "python.parquet", tmp_path / "expected.parquet"
    assert str(fleet) + "\n" == said("--index", expected)
    assert fleet.screen(all=True) + "\n" == said("--all")
    assert fleet.to_json() == said("--format", "json")
    assert fleet.to_csv() == said("--format", "csv")
    fleet.write_index(index)
    assert index.read_bytes() == expected.read_bytes()
    assert told[-1] == (5, 5)
    assert (len(fleet), fleet.unreadable[0][0]) == (4, str(folder / "cut.dat"))
    with pytest.raises(mmtwin.TraceError, match="exists"):
        fleet.write_index(index)
    fleet.write_index(index, force=True)


def test_rows_are_arrow(tmp_path):
    import polars as pl

    folder = some(tmp_path)
    fleet = mmtwin.report([folder / "db", folder / "web1.tar.zst"], engine="local", jobs=1)
    frame = pl.DataFrame(fleet)
    assert frame.rows(named=True) == fleet.table().rows()
    assert set(frame["recording"]) == set(fleet.recordings) == {str(folder / name) for name in RECORDINGS if "2" not in name}


def test_what_cannot_be_one_is_refused(tmp_path, trace):
    with pytest.raises(mmtwin.TraceError, match="no recording and no trace in it"):
        mmtwin.report(tmp_path, engine="local")
    with pytest.raises(ValueError, match="expected 'local' or 'ray'"):
        mmtwin.report(trace, engine="cloud")
    with pytest.raises(TypeError, match="jobs is of a report with an engine"):
        mmtwin.report(trace, jobs=2)
    with pytest.raises(TypeError, match="no option address"):
        mmtwin.report(trace, engine="local", address="auto")
    with pytest.raises(TypeError, match="a report with an engine is of paths"):
        mmtwin.report(mmtwin.open(trace), engine="local")
    # What only the driver has is no recording that cannot be read.
    with pytest.raises(mmtwin.TraceError, match="not on this machine"):
        mmtwin._mmtwin.read_task(tmp_path / "none.mmt", True)


def test_what_progress_raises_ends_it(tmp_path):
    def progress(done, of):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        mmtwin.report(some(tmp_path), engine="local", progress=progress)
