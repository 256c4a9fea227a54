"""What a smaller limit costs a container: python what_if.py [SCENARIO]."""

import sys
from pathlib import Path

import mmtwin

ROOT = Path(__file__).resolve().parents[3]


def main() -> None:
    path = sys.argv[1] if len(sys.argv) > 1 else ROOT / "scenarios/guide/container-limit.toml"
    base = mmtwin.Scenario.load(path, {"process.server.phase.work.duration": "2 s"})
    less = base.override({"cgroup./box.memory.max": "480 MiB"})
    runs = {"no limit": mmtwin.run(base), "480 MiB": mmtwin.run(less)}
    for name, run in runs.items():
        print(name, run.status, f"{run.report.figures()['overview.major_faults']:,} major faults")
        for finding in run.report.findings[:1]:
            print("   ", finding.sentence)
    # A fault says where it is and what would be right.
    try:
        base.override({"cgroup./box.memory.maxx": "480 MiB"})
    except mmtwin.ScenarioError as error:
        print([(fault.key, fault.message) for fault in error.faults])
    print(mmtwin.compare(runs))


if __name__ == "__main__":
    main()
