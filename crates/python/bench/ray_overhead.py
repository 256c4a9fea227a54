"""What Ray adds to a sweep: throughput on Ray beside that of threads, on the CPUs of this machine.

    python ray_overhead.py [--seconds 0.2 5] [--rounds 3] [--work 20]

For each length of a run a scenario is made that takes as long; its sweeps run on threads and on Ray in turn, `rounds` times
each, and the medians are compared. Ray runs before the first of them, with its workers: a cluster is started once and
serves many sweeps. What the start takes is printed apart.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import ray

import mmtwin

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from conftest import SMALL  # noqa: E402

LENGTH = "process.server.phase.work.duration"


def seconds_of(scenario: mmtwin.Scenario, milliseconds: int) -> float:
    """Seconds that a run takes whose work has a length."""
    begin = time.perf_counter()
    mmtwin.sweep(scenario, {LENGTH: [f"{milliseconds} ms"]}, jobs=1)
    return time.perf_counter() - begin


def length_for(scenario: mmtwin.Scenario, seconds: float) -> int:
    """Milliseconds of work for a run of so many seconds."""
    length = 1000
    for _ in range(3):
        length = max(1, round(length * seconds / seconds_of(scenario, length)))
    return length


def throughput(scenario: mmtwin.Scenario, length: int, runs: int, engine: str, folder: Path) -> float:
    """Runs per second of a sweep."""
    begin = time.perf_counter()
    values, output = {LENGTH: [f"{length} ms"]}, folder / "o.parquet"
    mmtwin.sweep(scenario, values, seeds=range(1, runs + 1), output=output, force=True, engine=engine)
    return runs / (time.perf_counter() - begin)


def main() -> None:
    """Prints a line for each length."""
    parser = argparse.ArgumentParser(description="Throughput of sweeps on Ray beside that on threads.")
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.2, 5.0], help="lengths of a run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", type=float, default=20.0, help="seconds that a sweep is to take")
    given = parser.parse_args()
    cpus = len(os.sched_getaffinity(0))
    scenario = mmtwin.Scenario.parse(SMALL)
    begin = time.perf_counter()
    ray.init(num_cpus=cpus, include_dashboard=False, log_to_driver=False)
    mmtwin.sweep(scenario, seeds=range(1, 1 + 4 * cpus), engine="ray")
    print(f"start of Ray on {cpus} CPUs, and of its workers: {time.perf_counter() - begin:.1f} s", flush=True)
    with tempfile.TemporaryDirectory() as name:
        for seconds in given.seconds:
            length = length_for(scenario, seconds)
            runs = max(2 * cpus, cpus * round(given.work / seconds))
            rates: dict[str, list[float]] = {"local": [], "ray": []}
            for _ in range(given.rounds):
                for engine, of in rates.items():
                    of.append(throughput(scenario, length, runs, engine, Path(name)))
            local, on_ray = (statistics.median(of) for of in rates.values())
            each = "; ".join(f"{engine} " + " ".join(f"{rate:.3f}" for rate in of) for engine, of in rates.items())
            print(
                f"runs of {cpus / local:.2f} s, {runs} a sweep: {local:.3f} runs/s on threads, {on_ray:.3f} on Ray: "
                f"Ray adds {100 * (local / on_ray - 1):.1f} % ({each})",
                flush=True,
            )
    ray.shutdown()


if __name__ == "__main__":
    main()
