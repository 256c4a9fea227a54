"""Reading a trace: reports, tables, events, errors."""

import pytest

import mmtwin


def test_a_report_says_what_happened(trace):
    report = mmtwin.open(trace).report()
    assert (report.arm, report.events, report.lost_events) == ("import", 18410, 0)
    assert report.kernel.startswith("6.18")
    finding = report.findings[0]
    assert "a cgroup hit its limit 777 times" in finding.sentence
    assert finding.waited == pytest.approx(0.051, abs=0.001)
    assert finding.sentence[:40] in str(report).replace("\n", " ")
    row = next(row for row in report["reclaim"].rows() if row["quantity"].startswith("Reclaims"))
    assert row["cgroup"] == 777
    assert report.figures()["overview.elapsed"] > 0.3
    with pytest.raises(KeyError, match="no table none; there are "):
        report["none"]


def test_a_part_of_a_trace_is_read(trace):
    report = mmtwin.open(trace, processes=["stream"], start=0.1, end=0.2).report()
    assert 0 < report.events < 18410
    with pytest.raises(mmtwin.TraceError, match="nothing matches process none; it has"):
        mmtwin.open(trace, processes=["none"]).report()
    with pytest.raises(ValueError, match="start=-1: expected seconds"):
        mmtwin.open(trace, start=-1)


def test_progress_is_told(trace):
    told = []
    mmtwin.report(mmtwin.open(trace), progress=told.append)
    assert all(isinstance(events, float) for events in told)


def test_inputs_that_are_none(tmp_path):
    with pytest.raises(FileNotFoundError) as raised:
        mmtwin.open(tmp_path / "none.dat")
    assert raised.value.filename.endswith("none.dat")
    other = tmp_path / "other"
    other.write_bytes(b"\0" * 100)
    with pytest.raises(mmtwin.TraceError, match="not a kernel trace"):
        mmtwin.open(other).report()


def test_events_are_arrow(trace):
    import pyarrow as pa

    counts = mmtwin.open(trace).counts()
    name = "mm_vmscan_memcg_reclaim_begin"
    assert counts[name] == 777
    events = mmtwin.open(trace).events(name)
    assert events.columns[:3] == ["ts", "cpu", "pid"]
    table = pa.table(events)
    assert table.num_rows == 777
    assert table.schema.metadata[b"mmtwin.event"] == name.encode()
    with pytest.raises(RuntimeError, match="these rows were taken"):
        pa.table(events)
    with pytest.raises(KeyError, match=rf"has no rows of none; it has .*{name} \(777\)"):
        mmtwin.open(trace).events("none")


def test_rows_that_nobody_takes_are_not_read(trace):
    events = mmtwin.open(trace).events("mm_shrink_slab_end")
    del events


def test_comparison(trace):
    half = mmtwin.open(trace, end=0.17)
    compared = mmtwin.compare({"all": trace, "half": half})
    assert compared.columns == ["all", "half"]
    rows = [row for row in compared["overview"].rows() if row["key"] == "elapsed"]
    assert [row["column"] for row in rows] == ["all", "half"]
    assert "half" in str(compared)
    with pytest.raises(ValueError, match="two columns"):
        mmtwin.compare({"one": trace})
