"""What a trace has, as a dataframe: python read_trace.py [TRACE]."""

import sys
from pathlib import Path

import polars as pl

import mmtwin

ROOT = Path(__file__).resolve().parents[3]


def main() -> None:
    trace = mmtwin.open(sys.argv[1] if len(sys.argv) > 1 else ROOT / "tests/data/host-6.18.dat")
    report = trace.report()
    print(report.kernel, f"{report.events:,} events")
    for finding in report.findings:
        print(f"[{finding.severity}] {finding.sentence}")
    counts = trace.counts()
    print(sorted(counts.items(), key=lambda item: -item[1])[:5])
    begin = pl.DataFrame(trace.events("mm_vmscan_memcg_reclaim_begin")).select("ts", "pid", "comm")
    end = pl.DataFrame(trace.events("mm_vmscan_memcg_reclaim_end")).select("ts", "pid", "nr_reclaimed")
    # Which reclaim ended next on the same task.
    reclaims = begin.join_asof(end.with_columns(ended="ts"), on="ts", by="pid", strategy="forward", check_sortedness=False)
    reclaims = reclaims.with_columns(us=(pl.col("ended") - pl.col("ts")) / 1000)
    print(reclaims.select("us", "nr_reclaimed").describe())


if __name__ == "__main__":
    main()
