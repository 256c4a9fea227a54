"""The hand-over of tables: nothing is copied, and everybody takes it."""

import numpy as np
import pytest

import mmtwin

EVENT = "mm_vmscan_memcg_reclaim_begin"


def address(column) -> int:
    """Where the values of a column of pyarrow begin."""
    return column.chunk(0).buffers()[1].address


def address_of_series(series) -> int:
    """The same of polars, which raises where it would have to copy."""
    return series.to_numpy(allow_copy=False).__array_interface__["data"][0]


def test_nothing_is_copied(trace):
    import polars as pl
    import pyarrow as pa

    table = mmtwin.open(trace).report()["latency-cgroup"]
    # Two streams of the same table have the same buffers: they are those of the table itself.
    first, second = pa.table(table), pa.table(table)
    assert address(first["count"]) == address(second["count"])
    # And so has polars, and what polars gives pyarrow.
    frame = pl.DataFrame(table)
    assert address_of_series(frame["count"]) == address(first["count"])
    # Of events, too: all numbers of 777 rows.
    events = pa.table(mmtwin.open(trace).events(EVENT))
    frame = pl.DataFrame(events)
    for column in ["ts", "cpu", "pid"]:
        assert address_of_series(frame[column]) == address(events[column])
    assert np.all(np.diff(events["ts"].to_numpy().astype(np.int64)) >= 0)


def test_everybody_takes_a_table(trace):
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    table = mmtwin.open(trace).report()["reclaim"]
    rows = table.rows()
    assert len(rows) == len(table) > 0
    assert pa.table(table).to_pylist() == rows
    assert pl.DataFrame(table).rows(named=True) == rows
    assert pd.DataFrame.from_arrow(table).shape == (len(rows), len(table.columns))
    assert duckdb.connect().register("taken", table).sql("select count(*) from taken").fetchall() == [(len(rows),)]


@pytest.mark.parametrize("name", ["tasks", "counters.vmstat"])
def test_other_rows_of_a_recording(tmp_path, small, name):
    import pyarrow as pa

    mmtwin.run(mmtwin.Scenario.load(small), output=tmp_path / "r.mmt")
    rows = pa.table(mmtwin.open(tmp_path / "r.mmt").events(name))
    assert rows.num_rows > 0
