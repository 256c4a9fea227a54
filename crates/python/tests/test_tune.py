"""Searches: goals, Pareto sets, continuation."""

import pytest

import mmtwin

pytest.importorskip("optuna")

LIMIT = "cgroup./box.memory.max"
SPACE = {LIMIT: "12MiB..26MiB:15", "kernel.sysctl.vm.swappiness": [10, 60, 100]}
GOAL = "max hot_cold_heap__accesses_per_second, memory.max minimal, overview.major_faults < 100000"


def test_the_smallest_limit_that_fits(small, tmp_path):
    output = tmp_path / "t.parquet"
    tuned = mmtwin.tune(small, SPACE, GOAL, runs=24, jobs=2, output=output)
    assert len(tuned.trials) == len({tuple(trial.values.values()) for trial in tuned.trials})
    assert 0 < len(tuned.sweep) <= 26 and len(mmtwin.read_sweep(output)) == len(tuned.sweep)
    best = tuned.best
    # One that is better in the first objective is worse in the second.
    assert all(a.objectives[0] >= b.objectives[0] and a.objectives[1] >= b.objectives[1] for a, b in zip(best, best[1:]))
    lines = str(tuned).splitlines()
    assert lines[0].startswith(f"Best of {len(tuned.trials)} trials") and LIMIT in lines[2]
    # The same seed and jobs, the same trials.
    again = mmtwin.tune(small, SPACE, GOAL, runs=24, jobs=2)
    assert [trial.values for trial in again.trials] == [trial.values for trial in tuned.trials]
    # More of it continues.
    more = mmtwin.tune(small, SPACE, GOAL, runs=30, jobs=2, output=output)
    assert [trial.values for trial in more.trials[: len(tuned.trials)]] == [trial.values for trial in tuned.trials]
    assert len(more.sweep) > len(tuned.sweep)


def test_seeds_are_repeated(small):
    tuned = mmtwin.tune(small, {LIMIT: ["16 MiB", "24 MiB"]}, "min overview.elapsed", runs=6, seeds=[1, 2, 3], jobs=1)
    assert len(tuned.trials) == 2 and len(tuned.sweep) == 6


def test_what_cannot_be_reached_is_said(small):
    tuned = mmtwin.tune(small, {LIMIT: ["16 MiB"]}, "min overview.elapsed, overview.elapsed < 1 ns", runs=2)
    assert not tuned.best and "none reaches the goal: no trial keeps all constraints" in str(tuned)


@pytest.mark.parametrize(
    ("goal", "message"),
    [
        ("memory.max < 3", "has no objective"),
        ("max", "expected max EXPR"),
        ("max a b", "cannot read 'b'"),
        ("max (a", "not closed"),
        ("max a, b", "expected max EXPR"),
        ("max a +", "missing at the end"),
        ("max overview.none", "no figure of the first run for 'max overview.none'"),
        ("max ?", "cannot read"),
    ],
)
def test_goals_that_cannot_be_read(small, goal, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        mmtwin.tune(small, {LIMIT: ["16 MiB"]}, goal, runs=1)


def test_ranges():
    from mmtwin._tune import _space

    def ordered(of):
        values, has_order = _space({"key": of})["key"]
        return len(values), has_order

    assert ordered("1MiB..1GiB") == (64, True)
    # Of whole numbers more would be the same twice.
    assert ordered("1..1000:log") == (16, True)
    assert ordered("0..10") == (11, True)
    assert ordered("0..10:3") == ordered([3, 2, 1]) == (3, True)
    assert ordered("never,always,madvise") == ordered([1, 3, 2]) == (3, False)
    with pytest.raises(ValueError, match="no two numbers of the same unit"):
        ordered("1MiB..3s")


def test_expressions():
    from mmtwin._goal import parse

    values = {"a.throughput": 10.0, "a.p99": 1.5e6, "x y": 2.0}
    (most, least), (below,) = parse("max throughput * 2 - (1 + 1), p99 < 2 ms, `x y` / 0 minimal")
    assert (most.maximal, most.value(values)) == (True, 18.0)
    assert (least.maximal, least.value(values)) == (False, None)
    assert below.excess(values) == -500_000.0
    with pytest.raises(ValueError, match="may be"):
        parse("max p99")[0][0].value({"a.p99": 1.0, "b.p99": 2.0})
