"""Scenarios: reading, overrides, faults with their place."""

import pytest
import tomllib
from conftest import SMALL

import mmtwin


def test_faults_have_file_line_and_key(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text(SMALL.replace('size = "24 MiB"', 'size = "much"').replace("write = 0.3", "write = 0.3\nwrong = 1"))
    with pytest.raises(mmtwin.ScenarioError) as raised:
        mmtwin.Scenario.load(path)
    faults = raised.value.faults
    lines = path.read_text().splitlines()
    assert [lines[fault.line - 1].split(" ")[0] for fault in faults] == ["size", "wrong"]
    assert [fault.key for fault in faults] == [
        "process.server.region.heap.size",
        "process.server.phase.work.access.0.wrong",
    ]
    assert faults[0].file == str(path)
    assert all(fault.text in str(raised.value) for fault in faults)


def test_faults_of_overrides_have_the_key(small):
    with pytest.raises(mmtwin.ScenarioError) as raised:
        mmtwin.Scenario.load(small, {"kernel.sysctl.vm.swappines": 10})
    (fault,) = raised.value.faults
    assert (fault.file, fault.line, fault.key) == ("--set 1", None, "kernel.sysctl.vm.swappines")
    with pytest.raises(mmtwin.ScenarioError):
        mmtwin.Scenario.load(small).override(["kernel.thp=often"])
    with pytest.raises(TypeError, match="a dictionary of keys and values, or a list"):
        mmtwin.Scenario.load(small, 7)
    with pytest.raises(FileNotFoundError):
        mmtwin.Scenario.load("none.toml")


def test_overrides(small):
    scenario = mmtwin.Scenario.load(small)
    other = scenario.override({"kernel.sysctl.vm.swappiness": 10, "run.seed": 7}).override({"kernel.thp": "never"})
    assert (scenario.seed, other.seed) == (1, 7)
    assert other.overrides == ["kernel.sysctl.vm.swappiness=10", "run.seed=7", "kernel.thp=never"]
    assert other.to_dict()["kernel"]["sysctl"]["vm.swappiness"] == 10
    assert scenario.hash != other.hash
    assert all(isinstance(note, str) for note in scenario.validate())


def test_a_dictionary_is_a_scenario():
    values = tomllib.loads(SMALL)
    scenario = mmtwin.Scenario.from_dict(values)
    assert scenario.hash == mmtwin.Scenario.parse(SMALL).hash
    values["process"][0]["region"][0]["size"] = "much"
    with pytest.raises(mmtwin.ScenarioError) as raised:
        mmtwin.Scenario.from_dict(values)
    assert raised.value.faults[0].key == "process.server.region.heap.size"
    with pytest.raises(ValueError, match="no such value"):
        mmtwin.Scenario.from_dict({"title": None})


def test_what_the_twin_has_no_model_of_is_refused(small):
    scenario = mmtwin.Scenario.load(small, {"process.server.phase.work.duration": "300 h", "run.sample": "1 h"})
    with pytest.raises(mmtwin.ScenarioError, match="the longest is 10 days"):
        scenario.validate()
    with pytest.raises(mmtwin.ScenarioError, match="the longest is 10 days"):
        mmtwin.run(scenario)
