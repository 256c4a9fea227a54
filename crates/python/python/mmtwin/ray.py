"""Sweeps and reports on Ray: tasks of whole runs, or of whole recordings, on many machines. `python -m mmtwin.ray` is what
`mmtwin sweep --engine ray` starts.

The driver plans and checks everything, sends each worker what a run needs (the scenario's text, overrides, seed), and
keeps each finished run in the journal of the output, in its own process. So the bytes of the output are those of a sweep on
one machine, and a driver that was killed is continued by the same call. A worker of another version is refused, and so is
one on which a preset or bundle that the scenario names by a path has another content.

Of recordings a worker reads those that it is sent the paths of, so they are where all machines see them, and sends back
what a report on many has of each.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import ray

from ._mmtwin import VERSION, Error, SweepError, read_task, run_task

# Seconds of work that a task should have: what Ray adds to each is some milliseconds.
WORK = 2.0
# Most runs of a task.
LARGEST = 256
# How often Ray starts a task again whose node or worker died, and how often a run is sent again after that.
TRIES = 3


# What workers do, by its name.
DO: dict[str, Callable[..., bytes]] = {"run": run_task, "read": read_task}


class Work(Protocol):
    """Parts of one kind, each of which is done once: a `Driver` has the runs of a sweep, a `Reading` recordings."""

    @property
    def planned_runs(self) -> int:
        """How many parts there are."""

    @property
    def done(self) -> int:
        """How many have been done."""

    def missing(self) -> list[int]:
        """Numbers of those that have not."""

    def task(self, at: int) -> tuple[Any, ...]:
        """What a worker needs for one."""

    def add(self, at: int, given: bytes, /) -> None:
        """Keeps what a worker gave."""

    def add_failed(self, at: int, reason: str) -> None:
        """Keeps why one could not be done."""


def _do(version: str, what: str, tasks: list[tuple[Any, ...]]) -> tuple[list[bytes], float]:
    """Does parts on a worker: what each gave, and the seconds that they took."""
    if version != VERSION:
        raise SweepError(f"worker {socket.gethostname()} has {VERSION}, the driver {version}: install the same on all")
    begin = time.perf_counter()
    try:
        given = [DO[what](*task) for task in tasks]
    except Error as error:
        raise type(error)(f"worker {socket.gethostname()}: {error}") from None
    return given, time.perf_counter() - begin


def run_missing(
    work: Work,
    *,
    what: str = "run",
    address: str | None = None,
    in_flight: int | None = None,
    progress: Callable[[int, int], object] | None = None,
    num_cpus: float = 1,
    memory: int | None = None,
) -> None:
    """Does what is missing of a sweep (`what="run"`) or of recordings (`"read"`).

    `address`: of the cluster, as `ray.init` takes it; not used if Ray runs already. `in_flight`: most tasks at a time,
    twice the cluster's CPUs if it is not given. `num_cpus` and `memory` (bytes): what Ray reserves for a task. Runs and
    recordings of a node that died are sent again; one whose worker's memory ran out again and again is a row, or a
    recording that could not be read, with that reason.

    Raises `SweepError` if a worker has another version; `Error` if it cannot do what it is sent.
    """
    began = not ray.is_initialized()
    if began:
        ray.init(address=address, log_to_driver=False, include_dashboard=False if address is None else None)
    try:
        _Sending(work, what, in_flight, progress, num_cpus, memory).all()
    finally:
        if began:
            ray.shutdown()


class _Sending:
    """Tasks that are under way."""

    def __init__(
        self,
        work: Work,
        what: str,
        in_flight: int | None,
        progress: Callable[[int, int], object] | None,
        num_cpus: float,
        memory: int | None,
    ) -> None:
        self.work, self.what = work, what
        self.in_flight, self.progress, self.num_cpus = in_flight, progress, num_cpus
        # Ray starts a task again whose node or worker died.
        reserved: dict[str, Any] = {"num_cpus": num_cpus, **({"memory": memory} if memory else {})}
        self.remote = ray.remote(max_retries=TRIES, **reserved)(_do)
        self.waiting = deque(work.missing())
        self.sent: dict[Any, list[int]] = {}
        self.tries: dict[int, int] = {}
        # Seconds of a run, as the last tasks had them.
        self.seconds: float | None = None

    def all(self) -> None:
        """Sends and receives until nothing is missing."""
        of = self.work.planned_runs
        self.tell(of)
        try:
            while self.waiting or self.sent:
                self.send()
                ready, _ = ray.wait(list(self.sent), num_returns=1, timeout=1.0)
                for task in ready:
                    self.receive(task, self.sent.pop(task))
                    self.tell(of)
        finally:
            for task in self.sent:
                ray.cancel(task, force=True)

    def tell(self, of: int) -> None:
        """Says how far it is."""
        if self.progress:
            self.progress(self.work.done, of)

    def places(self) -> int:
        """How many tasks run at a time: nodes come and go."""
        return max(1, int(ray.cluster_resources().get("CPU", 1) / max(self.num_cpus, 0.01)))

    def size(self, places: int) -> int:
        """Runs of the next task: enough work, but so that the last ones are shared by all places."""
        wanted = 1 if self.seconds is None else int(WORK / max(self.seconds, 1e-4))
        return max(1, min(wanted, LARGEST, len(self.waiting) // (2 * places)))

    def send(self) -> None:
        """Sends as many tasks as there is room for."""
        if not self.waiting:
            return
        places = self.places()
        while self.waiting and len(self.sent) < (self.in_flight or 2 * places):
            runs = [self.waiting.popleft() for _ in range(min(self.size(places), len(self.waiting)))]
            task = self.remote.remote(VERSION, self.what, [self.work.task(at) for at in runs])
            self.sent[task] = runs

    def receive(self, task: Any, runs: list[int]) -> None:
        """Keeps what a task gave."""
        try:
            given, seconds = ray.get(task)
        except ray.exceptions.RayTaskError as error:
            # The worker's own exception, such as that of another version; a package that is missing there is one too.
            kind = type(error.cause) if isinstance(error.cause, Error) else SweepError
            raise kind(str(error.cause if error.cause else error)) from None
        except ray.exceptions.RayError as error:
            self.again(runs, f"{type(error).__name__}: {str(error).splitlines()[0]}")
            return
        self.seconds = seconds / len(runs)
        for at, ran in zip(runs, given, strict=True):
            self.work.add(at, ran)

    def again(self, runs: Sequence[int], reason: str) -> None:
        """Sends runs again, each alone, so that the one that is too large is found."""
        self.seconds = None
        for at in runs:
            self.tries[at] = self.tries.get(at, 0) + 1
            if self.tries[at] < TRIES:
                self.waiting.append(at)
            else:
                self.work.add_failed(at, f"{reason}, {TRIES} times")


def _seeds(text: str) -> list[int]:
    if ".." in text:
        first, last = (int(part) for part in text.split("..", 1))
        return list(range(first, last + 1))
    return [int(part) for part in text.split(",")]


def main(arguments: Sequence[str] | None = None) -> int:
    """What `mmtwin sweep --engine ray` starts: writes the output, and prints nothing but progress."""
    from ._mmtwin import Driver, Scenario
    from ._sweep import finish

    parser = argparse.ArgumentParser(prog="python3 -m mmtwin.ray", description="A sweep on Ray.")
    parser.add_argument("scenario")
    parser.add_argument("--set", action="append", default=[], dest="sets", metavar="KEY=VALUES")
    parser.add_argument("--cases", metavar="FILE")
    parser.add_argument("--paired", action="store_true")
    parser.add_argument("--seeds", type=_seeds, default=[])
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("-f", "--force", action="store_true")
    parser.add_argument("--address", help="of the cluster; without it one on this machine is started")
    parser.add_argument("--in-flight", type=int, metavar="N", help="most tasks at a time")
    given = parser.parse_args(arguments)

    def progress(done: int, of: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{given.scenario}: {done} of {of} runs", end="\n" if done == of else "", file=sys.stderr)

    try:
        driver = Driver(
            Scenario.load(given.scenario),
            given.output,
            sets=given.sets,
            cases=given.cases,
            paired=given.paired,
            seeds=given.seeds,
            force=given.force,
        )
        finish(driver, "ray", None, progress, {"address": given.address, "in_flight": given.in_flight})
    except KeyboardInterrupt:
        return 130
    except (Error, OSError, ConnectionError) as error:
        print(f"mmtwin: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
