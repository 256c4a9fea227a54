"""The best values of a scenario's keys, searched with Optuna over the same runs as a sweep."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._goal import Constraint, GoalError, Objective, parse
from ._mmtwin import Driver, Scenario, Sweep, expand, known, number
from ._sweep import run_missing, seed_list, word

# Most values of a range that does not say how many.
STEPS = 64
# Suggestions in a row that were tried before, after which nothing new is to be expected.
REPEATED = 50


@dataclass(frozen=True)
class Trial:
    """Values that were tried, and what they gave."""

    # By key, as `--set` takes them.
    values: dict[str, str]
    # Of each objective, the median over the seeds; empty: a run did not reach its end, or a figure is not known.
    objectives: list[float]
    # By how much constraints do not hold, above 0.
    excess: list[float]
    # Why it has no objectives.
    reason: str | None

    @property
    def feasible(self) -> bool:
        """It has its figures, and all constraints hold."""
        return bool(self.objectives) and all(excess <= 0 for excess in self.excess)


@dataclass(frozen=True)
class Tuned:
    """What a search found. `str(tuned)` is a sentence and a table of the best trials."""

    # No other trial is better in one objective and as good in all others; best in the first objective first.
    best: list[Trial]
    # All, in their order.
    trials: list[Trial]
    # All runs, as the Parquet file has them.
    sweep: Sweep
    objectives: list[Objective]

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def tune(
    scenario: Scenario | str | os.PathLike[str],
    space: Mapping[str, str | Iterable[Any]],
    goal: str,
    *,
    runs: int = 100,
    seconds: float | None = None,
    seeds: int | Iterable[int] | None = None,
    output: str | os.PathLike[str] | None = None,
    force: bool = False,
    jobs: int | None = None,
    engine: str = "local",
    sampler_seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
    **options: Any,
) -> Tuned:
    """Searches values of keys for which a goal is reached best.

    `space`: by key a range (`"256MiB..1GiB"`, `"1..1000:20:log"`) or a list of values. `goal`: objectives and constraints
    over the figures of a run (`Report.figures`, columns of a sweep) and the keys, such as
    `"max hot_cold_heap__accesses_per_second, overview.major_faults < 100, memory.max minimal"`; the syntax is in
    `mmtwin._goal`. Numbers are in the smallest unit of their kind: bytes, ns, pages/s, B/s, Hz.

    The budget is `runs`, and `seconds` if given. With several `seeds` each trial runs with all of them, and the median
    counts. Every run is a row of `output`, a Parquet file as of `sweep`; the same call continues one that ended early.
    `jobs`, `engine`, `progress` and `options` are those of `sweep`: so many trials are suggested at a time, and the same
    `sampler_seed`, `jobs` and budget in runs give the same trials.

    Raises `ValueError` for a goal or range that cannot be read, or a name in the goal that no run has; else as `sweep`.
    """
    objectives, constraints = parse(goal)
    scenario = scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tune.parquet") if output is None else Path(output)
        search = _Search(scenario, _space(space), objectives, constraints, seed_list(seeds) or [scenario.seed], path, force)
        width = jobs or len(os.sched_getaffinity(0))
        run = _engine(engine, width, options)
        try:
            search.all(run, width, runs, seconds, sampler_seed, progress)
        except KeyboardInterrupt:
            search.driver.finish()
            raise
        return search.found()


def _space(space: Mapping[str, str | Iterable[Any]]) -> dict[str, tuple[list[str], bool]]:
    """By key its values, and whether they have an order."""
    found = {}
    for key, of in space.items():
        values = _values(of) if isinstance(of, str) else [word(value) for value in of]
        numbers = [number(value) for value in values]
        rising = [value for value in numbers if value is not None]
        found[key] = (values, len(values) > 2 and numbers in (sorted(rising), sorted(rising, reverse=True)))
    return found


def _values(text: str) -> list[str]:
    """The values of a text; a range that does not say how many has as many as differ, and at most `STEPS`."""
    ends, *rest = text.split(":")
    if ".." not in ends or rest not in ([], ["log"]):
        return expand(text)
    for steps in range(STEPS, 2, -1):
        try:
            return expand(":".join([ends, str(steps), *rest]))
        except ValueError:
            continue
    return expand(":".join([ends, "2", *rest]))


def _engine(engine: str, width: int, options: dict[str, Any]) -> Callable[[Driver, list[int]], None]:
    """What runs runs of a driver and adds them."""

    def local(driver: Driver, runs: list[int]) -> None:
        with ThreadPoolExecutor(width) as pool:
            waiting = {pool.submit(driver.run_one, at): at for at in runs}
            try:
                while waiting:
                    # In short waits, so that Ctrl-C is seen.
                    done, _ = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
                    for future in done:
                        at, ran = waiting.pop(future), future.result()
                        # None: it was stopped, and something else is being raised.
                        if ran is not None:
                            driver.add(at, ran)
            except BaseException:
                driver.halt()
                pool.shutdown(cancel_futures=True)
                raise

    if engine == "local":
        if options:
            raise TypeError(f"the local engine has no option {', '.join(options)}")
        return local
    return lambda driver, runs: run_missing(driver, engine, None, None, options)


class _Search:
    def __init__(
        self,
        scenario: Scenario,
        space: dict[str, tuple[list[str], bool]],
        objectives: list[Objective],
        constraints: list[Constraint],
        seeds: list[int],
        output: Path,
        force: bool,
    ) -> None:
        self.space, self.objectives, self.constraints, self.seeds = space, objectives, constraints, seeds
        self.trials: dict[tuple[str, ...], Trial] = {}
        before = [] if force else list(dict.fromkeys(tuple(case) for case, _ in known(output)))
        cases = [list(case) for case in before]
        self.driver = Driver.of_cases(scenario, output, list(space), cases, seeds=seeds, force=force)
        # What an earlier call tried: missing seeds of its last trial are run with the first new ones.
        self.before = before

    def all(
        self,
        run: Callable[[Driver, list[int]], None],
        width: int,
        runs: int,
        seconds: float | None,
        sampler_seed: int,
        progress: Callable[[int, int], object] | None,
    ) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        # Several trials are asked for at a time, so they must not all be the same: constant_liar.
        sampler = optuna.samplers.TPESampler(seed=sampler_seed, constant_liar=True)
        direction = optuna.study.StudyDirection
        directions = [direction.MAXIMIZE if of.maximal else direction.MINIMIZE for of in self.objectives]
        study = optuna.create_study(sampler=sampler, directions=directions)
        run(self.driver, self.driver.missing())
        for case in self.before:
            self.judge(case, self.driver.extend([list(case)], self.seeds))
            self.tell_before(study, case)
        began, repeated = time.monotonic(), 0
        # Trials at a time: as many as keep all CPUs at work.
        batch = max(1, -(-width // len(self.seeds)))
        while self.driver.done < runs and repeated < REPEATED:
            if seconds is not None and time.monotonic() - began > seconds:
                break
            asked = []
            for _ in range(batch):
                trial = study.ask()
                case = tuple(self.suggest(trial, key) for key in self.space)
                repeated = repeated + 1 if case in self.trials else 0
                asked.append((trial, case, self.driver.extend([list(case)], self.seeds)))
            missing = set(self.driver.missing())
            run(self.driver, sorted({at for _, _, places in asked for at in places} & missing))
            for trial, case, places in asked:
                self.judge(case, places)
                self.tell(study, trial, case)
            if progress:
                progress(self.driver.done, runs)

    def suggest(self, trial: Any, key: str) -> str:
        """The value of a key that a trial is to try."""
        values, ordered = self.space[key]
        if len(values) == 1:
            return values[0]
        at = trial.suggest_int(key, 0, len(values) - 1) if ordered else trial.suggest_categorical(key, range(len(values)))
        return values[at]

    def judge(self, case: tuple[str, ...], places: list[int]) -> None:
        """Notes what a case gave."""
        rows = [self.driver.row(at) for at in places]
        ended = [row for row in rows if row["status"] in ("completed", "time_up")]
        reasons = [f"{row['status']}: {row['reason']}" for row in rows if row not in ended]
        of_keys = {key: known for key, value in zip(self.space, case) if (known := number(value)) is not None}

        def median(of: Callable[[dict[str, Any]], float | None]) -> float | None:
            return _median(of({**row, **of_keys}) for row in ended)

        objectives = [] if reasons else [median(objective.value) for objective in self.objectives]
        excess = [] if reasons else [median(constraint.excess) for constraint in self.constraints]
        if not reasons and None in (*objectives, *excess):
            self.check_names(ended, of_keys)
            reasons.append("a figure of the goal is not known of it")
        of_case = dict(zip(self.space, case, strict=True))
        self.trials[case] = (
            Trial(of_case, [], [], reasons[0])
            if reasons
            else Trial(of_case, [v for v in objectives if v is not None], [v for v in excess if v is not None], None)
        )

    def check_names(self, rows: list[dict[str, Any]], of_keys: dict[str, float]) -> None:
        """Says which part of the goal no trial can have, if this is the first."""
        if self.trials:
            return
        parts = [(objective.text, objective.value) for objective in self.objectives]
        parts += [(constraint.text, constraint.excess) for constraint in self.constraints]
        wrong = [text for text, of in parts if all(of({**row, **of_keys}) is None for row in rows)]
        if wrong:
            raise GoalError(f"no figure of the first run for {wrong[0]!r}: Report.figures of a run lists them")

    def tell(self, study: Any, trial: Any, case: tuple[str, ...]) -> None:
        """Tells the study what a trial gave."""
        import optuna

        of = self.trials[case]
        if not of.objectives:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            return
        for constraint, excess in zip(self.constraints, of.excess, strict=True):
            trial.set_constraint(constraint.text, excess)
        study.tell(trial, of.objectives)

    def tell_before(self, study: Any, case: tuple[str, ...]) -> None:
        """The same of what an earlier call tried."""
        import optuna

        of = self.trials[case]
        inside = all(value in values for value, (values, _) in zip(case, self.space.values(), strict=True))
        if not of.objectives or not inside:
            return
        parameters: dict[str, int] = {}
        distributions: dict[str, optuna.distributions.BaseDistribution] = {}
        for value, (key, (values, ordered)) in zip(case, self.space.items(), strict=True):
            if len(values) > 1:
                parameters[key] = values.index(value)
                distributions[key] = (
                    optuna.distributions.IntDistribution(0, len(values) - 1)
                    if ordered
                    else optuna.distributions.CategoricalDistribution(range(len(values)))
                )
        study.add_trial(
            optuna.trial.create_trial(
                params=parameters,
                distributions=distributions,
                values=of.objectives,
                constraints={one.text: excess for one, excess in zip(self.constraints, of.excess, strict=True)},
            )
        )

    def found(self) -> Tuned:
        trials = list(self.trials.values())
        feasible = [trial for trial in trials if trial.feasible]
        signs = [-1 if objective.maximal else 1 for objective in self.objectives]
        costs = {id(trial): [sign * value for sign, value in zip(signs, trial.objectives)] for trial in feasible}

        def beaten(trial: Trial) -> bool:
            own = costs[id(trial)]
            others = (costs[id(other)] for other in feasible)
            return any(all(a <= b for a, b in zip(other, own)) and other != own for other in others)

        best = sorted((trial for trial in feasible if not beaten(trial)), key=lambda trial: costs[id(trial)])
        return Tuned(best, trials, self.driver.finish(), self.objectives)


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _lines(tuned: Tuned) -> list[str]:
    """A sentence, and a table of the best trials."""
    tried, best = len(tuned.trials), tuned.best
    if not best:
        why = next((trial.reason for trial in tuned.trials if trial.reason), "no trial keeps all constraints")
        return [f"{tried} trials, and none reaches the goal: {why}."]
    values = ", ".join(f"{key}={value}" for key, value in best[0].values.items())
    figures = ", ".join(f"{of.text}: {_figure(v)}" for of, v in zip(tuned.objectives, best[0].objectives, strict=True))
    kept = sum(trial.feasible for trial in tuned.trials)
    sentence = f"Best of {tried} trials ({kept} keep all constraints): {values} ({figures})."
    if len(best) > 1:
        sentence += f" {len(best)} trials are best, each in its own way:"
    header = [*best[0].values, *(of.text for of in tuned.objectives)]
    rows: list[Sequence[str]] = [header]
    rows += [[*trial.values.values(), *map(_figure, trial.objectives)] for trial in best]
    widths = [max(len(row[at]) for row in rows) for at in range(len(header))]
    table = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return [sentence, "", *table]
