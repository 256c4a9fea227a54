"""The simulated kernel beside stored runs of real ones."""

import pytest

import mmtwin


def test_a_cell_is_judged(root):
    fidelity = mmtwin.fidelity(root / "scenarios/fidelity", ["pages-one"], kernel="6.1")
    assert {(name, kernel) for name, kernel, _ in fidelity.cells} == {("pages-one", "6.1")}
    assert str(fidelity).startswith("# Fidelity")
    assert dict(fidelity.csv) and "pages-one on 6.1" in fidelity.details
    with pytest.raises(KeyError, match="no scenario none"):
        mmtwin.fidelity(root / "scenarios/fidelity", ["none"])
