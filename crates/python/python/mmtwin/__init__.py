"""Record, explain, simulate and predict how Linux manages memory on NUMA machines.

- `open` reads a trace or recording, and `Trace.report` says what happened; `Trace.events` gives its events. `report` with an
  engine is one page on a directory of recordings.
- `Scenario` is a machine, a kernel and a workload, and `run` runs it on a simulated kernel.
- `compare` puts inputs and runs side by side.
- `sweep` runs a scenario many times, on this machine or with Ray; `tune` searches the best values of its keys.
- `fidelity` puts the simulated kernel beside real ones.

Tables, events and sweeps are Arrow streams: `polars.DataFrame(table)`, `pyarrow.table(table)`, `pandas.DataFrame.from_arrow`
and DuckDB take them without a copy. What takes long releases the GIL, and Ctrl-C ends it. What goes wrong is an `Error`,
or an `OSError` where the operating system said it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from ._mmtwin import (
    VERSION,
    Comparison,
    Error,
    Events,
    Fault,
    Fidelity,
    Finding,
    Fleet,
    Reading,
    Report,
    Run,
    Scenario,
    ScenarioError,
    Sweep,
    SweepError,
    Table,
    Trace,
    TraceError,
    fidelity,
    read_sweep,
    run,
)
from ._mmtwin import compare as _compare
from ._sweep import run_missing as _run_missing
from ._sweep import sweep

if TYPE_CHECKING:
    from ._tune import Tuned

    Path = str | os.PathLike[str]
    Input = Path | Trace | Report | Run

__version__ = VERSION.split()[1]

__all__ = [
    "VERSION",
    "Comparison",
    "Error",
    "Events",
    "Fault",
    "Fidelity",
    "Finding",
    "Fleet",
    "Report",
    "Run",
    "Scenario",
    "ScenarioError",
    "Sweep",
    "SweepError",
    "Table",
    "Trace",
    "TraceError",
    "compare",
    "fidelity",
    "open",
    "read_sweep",
    "report",
    "run",
    "sweep",
    "tune",
]


def open(  # noqa: A001
    path: str | os.PathLike[str],
    *,
    cgroups: Sequence[str] = (),
    processes: Sequence[str] = (),
    nodes: Sequence[int] = (),
    start: float | None = None,
    end: float | None = None,
) -> Trace:
    """Opens a trace: a recording of mmtwin, a `trace.dat`, the text of ftrace; compressed or not.

    The rest takes a part of it, as the filters of `mmtwin report`: cgroups with those below them and processes by name
    (with `*` and `?`) or id, nodes by number, and a stretch of time in seconds from the start. Raises `OSError` or
    `TraceError`.
    """
    return Trace(path, cgroups=list(cgroups), processes=list(processes), nodes=list(nodes), start=start, end=end)


@overload
def report(source: Input, *, progress: Callable[[float], object] | None = None) -> Report: ...


@overload
def report(
    source: Path | Sequence[Path],
    *,
    engine: str,
    jobs: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    **options: Any,
) -> Fleet: ...


def report(
    source: Input | Sequence[Path],
    *,
    engine: str | None = None,
    jobs: int | None = None,
    progress: Callable[..., object] | None = None,
    **options: Any,
) -> Report | Fleet:
    """The report of an input: of a path, what `open` opens; of a run, its own. Raises as `Trace.report`.

    With an `engine` it is one on many recordings, as of `mmtwin report --fleet`: `source` is a path or several, and a
    directory stands for all recordings and traces in it and below. `"local"` reads with `jobs` threads (all CPUs), `"ray"`
    on a cluster with the `options` of `mmtwin.ray.run_missing`, which needs `mmtwin[ray]`, and recordings on a path that all
    machines have. Both give the same bytes. `progress(done, of)` is called now and then. Raises `OSError` if a directory
    cannot be read, and `TraceError` if there is no recording; one that cannot be read is in `Fleet.unreadable`.
    """
    if engine is not None:
        if isinstance(source, (Trace, Report, Run)):
            raise TypeError("a report with an engine is of paths")
        one = isinstance(source, (str, os.PathLike))
        reading = Reading([source] if one else list(source))  # type: ignore[list-item, arg-type]
        _run_missing(reading, engine, jobs, progress, options)
        return reading.finish()
    if jobs is not None or options:
        raise TypeError(f"{', '.join(options) or 'jobs'} is of a report with an engine")
    if isinstance(source, Report):
        return source
    if isinstance(source, Run):
        return source.report
    trace = source if isinstance(source, Trace) else open(source)  # type: ignore[arg-type]
    return trace.report(progress=progress)


def compare(columns: Mapping[str, Input | Sequence[Input]]) -> Comparison:
    """Puts columns side by side, the first of which is the baseline.

    A column has a name, and one or several inputs: paths, traces, reports or runs. Of several, such as runs with other
    seeds, values are medians with an interval, and differences are tested. Raises `ValueError` for fewer than two columns.
    """

    def reports(inputs: Any) -> list[Report]:
        several = isinstance(inputs, Sequence) and not isinstance(inputs, (str, bytes))
        return [report(one) for one in (inputs if several else [inputs])]

    return _compare([(name, reports(inputs)) for name, inputs in columns.items()])


def tune(*arguments: Any, **options: Any) -> Tuned:
    """Searches the best values of a scenario's keys: see `mmtwin._tune.tune`. Needs `mmtwin[tune]`."""
    from ._tune import tune as search

    return search(*arguments, **options)
