"""Many runs of one scenario, on the threads of this machine or with Ray."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ._mmtwin import Driver, Reading, Scenario, Sweep, SweepError

Value = Any
Progress = Callable[[int, int], object]


def word(value: Value) -> str:
    """A value of a list, so that a comma or two dots in it do not part it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    plain = not any(mark in text for mark in (",", "..", '"', "'"))
    quoted = text[:1] in ('"', "'", "[", "{")
    return text if plain or quoted else f'"{text}"'


def sets(values: Mapping[str, str | Iterable[Value]]) -> list[str]:
    """`KEY=VALUES` of every key: a text is as `--set` takes it, anything else a list of values."""
    parts = {key: of if isinstance(of, str) else ",".join(word(value) for value in of) for key, of in values.items()}
    return [f"{key}={of}" for key, of in parts.items()]


def seed_list(seeds: int | Iterable[int] | None) -> list[int]:
    """Seeds as a list; one number is one seed."""
    return [] if seeds is None else [seeds] if isinstance(seeds, int) else list(seeds)


def sweep(
    scenario: Scenario | str | os.PathLike[str],
    values: Mapping[str, str | Iterable[Value]] | None = None,
    *,
    cases: str | os.PathLike[str] | Sequence[Mapping[str, Value]] | None = None,
    paired: bool = False,
    seeds: int | Iterable[int] | None = None,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    jobs: int | None = None,
    engine: str = "local",
    progress: Progress | None = None,
    **options: Any,
) -> Sweep:
    """Runs a scenario with other values of some keys, and gives a row for each run.

    `values`: by key a list (`[10, 60]`), or a text as `mmtwin sweep --set` takes it (`"256MiB..1GiB:8"`, `"1..100:5:log"`).
    Every combination is a case; with `paired` the first values of all keys are one, the second another. `cases`: a CSV
    file, or a list of dictionaries, all with the same keys. `seeds`: each case runs with every one.

    `output`: the Parquet file, the same bytes as of `mmtwin sweep`; without one the rows are only returned. Finished runs
    are kept beside it while the sweep runs, and the same call continues one that ended early; `force` starts again.

    `engine`: `"local"` with `jobs` threads (all CPUs), or `"ray"` with the `options` of `mmtwin.ray.run_missing`, which
    needs `mmtwin[ray]`. `progress(done, of)` is called now and then.

    Raises `ScenarioError` before the first run if a key, value or case is wrong, with all faults; `SweepError` if the
    output is of another sweep or version; `KeyboardInterrupt` after the finished rows were written.
    """
    if not isinstance(scenario, Scenario):
        scenario = Scenario.load(scenario)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sweep.parquet") if output is None else output
        if cases is not None and not isinstance(cases, (str, os.PathLike)):
            if values:
                raise ValueError("values and a list of cases: add the values to the cases")
            keys = list(cases[0]) if cases else []
            if any(list(case) != keys for case in cases):
                raise ValueError("all cases have the same keys, in the same order")
            rows = [[word(value) for value in case.values()] for case in cases]
            driver = Driver.of_cases(scenario, path, keys, rows, seeds=seed_list(seeds), force=force)
        else:
            driver = Driver(
                scenario,
                path,
                sets=sets(values or {}),
                cases=cases,
                paired=paired,
                seeds=seed_list(seeds),
                force=force,
            )
        return finish(driver, engine, jobs, progress, options)


def finish(driver: Driver, engine: str, jobs: int | None, progress: Progress | None, options: dict[str, Any]) -> Sweep:
    """Runs what is missing, and writes the output, also if it is interrupted."""
    try:
        run_missing(driver, engine, jobs, progress, options)
    except KeyboardInterrupt:
        driver.finish()
        raise
    return driver.finish()


def run_missing(
    work: Driver | Reading,
    engine: str,
    jobs: int | None,
    progress: Progress | None,
    options: dict[str, Any],
) -> None:
    """Does on an engine what is missing: runs of a sweep, or recordings."""
    if engine == "local":
        if options:
            raise TypeError(f"the local engine has no option {', '.join(options)}")
        work.run_missing(jobs or len(os.sched_getaffinity(0)), progress)
    elif engine == "ray":
        if jobs is not None:
            raise TypeError("jobs is of the local engine: a cluster has as many at a time as CPUs")
        try:
            from . import ray as on_ray
        except ImportError as error:
            raise SweepError(f"engine='ray' needs the package ray: pip install 'mmtwin[ray]' ({error})") from error
        on_ray.run_missing(work, what="run" if isinstance(work, Driver) else "read", progress=progress, **options)
    else:
        raise ValueError(f"engine={engine!r}: expected 'local' or 'ray'")
