"""Which limit a container needs: eight limits in one call, then a search: python sweep.py."""

import importlib.util
from pathlib import Path

import mmtwin

ROOT = Path(__file__).resolve().parents[3]
LIMIT = "cgroup./box.memory.max"


def main() -> None:
    path = ROOT / "scenarios/guide/container-limit.toml"
    scenario = mmtwin.Scenario.load(path, {"process.server.phase.work.duration": "1 s"})
    sweep = mmtwin.sweep(scenario, {LIMIT: "400MiB..680MiB:4"}, output="limits.parquet", force=True)
    print(sweep)
    print(sweep.curve("memory.max"))
    if importlib.util.find_spec("optuna"):
        goal = "max hot_cold_heap__accesses_per_second, memory.max minimal"
        print(mmtwin.tune(scenario, {LIMIT: "400MiB..680MiB:8"}, goal, runs=6, output="search.parquet", force=True))


if __name__ == "__main__":
    main()
