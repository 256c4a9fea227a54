"""What the tests have in common: the repository, its program, and a small scenario."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

SMALL = """
title = "24 MiB of which a fifth is used most"
[machine]
distance = [[10]]
[[machine.node]]
cpus = "0"
memory = "96 MiB"
[machine.swap]
size = "64 MiB"
latency = "100 us"
bandwidth = "500 MB/s"
[kernel]
release = "6.1"
thp = "never"
[[cgroup]]
name = "/box"
[[process]]
name = "server"
cgroup = "/box"
[[process.region]]
name = "heap"
size = "24 MiB"
populate = true
[[process.phase]]
name = "work"
duration = "1 s"
[[process.phase.access]]
region = "heap"
pattern = "hot-cold"
hot = "20 %"
access_share = "95 %"
write = 0.3
think = "20 us"
[run]
sample = "100 ms"
"""


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def trace() -> Path:
    return ROOT / "tests/data/host-6.18.dat"


@pytest.fixture
def program() -> str:
    """The command line's program of the same build; `make python` says where it is."""
    program = os.environ.get("MMTWIN_BIN")
    if not program:
        pytest.skip("MMTWIN_BIN does not say where the program is")
    return program


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path
