"""The examples, the notebooks, and the blocks of the documents run."""

import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

HERE = ROOT / "crates/python"


@pytest.mark.parametrize("example", sorted(path.name for path in (HERE / "examples").glob("*.py")))
def test_examples(example, tmp_path):
    ran = subprocess.run([sys.executable, HERE / "examples" / example], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


@pytest.mark.parametrize("notebook", sorted(path.name for path in (HERE / "notebooks").glob("*.ipynb")))
def test_notebooks(notebook, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    read = nbformat.read(HERE / "notebooks" / notebook, as_version=4)
    assert all(not cell.get("outputs") for cell in read.cells), "outputs are not kept"
    nbclient.NotebookClient(read, timeout=300, resources={"metadata": {"path": HERE / "notebooks"}}).execute()


def blocks():
    """The Python blocks of documents, each with all before it in the same file."""
    for name in ["README.md", "docs/howto/python.md", "crates/python/README.md"]:
        found = re.findall(r"^```python\n(.*?)^```", (ROOT / name).read_text(), re.S | re.M)
        assert found, f"{name} has no block"
        yield pytest.param("".join(found), id=name)


@pytest.mark.parametrize("code", list(blocks()))
def test_blocks(code, tmp_path):
    shutil.copy(ROOT / "tests/data/host-6.18.dat", tmp_path / "trace.dat")
    (tmp_path / "recordings").mkdir()
    shutil.copy(ROOT / "tests/verdicts/host-cp.tar.zst", tmp_path / "recordings")
    shutil.copy(ROOT / "scenarios/guide/container-limit.toml", tmp_path / "s.toml")
    # Runs of a second are enough to see that it works.
    text = (tmp_path / "s.toml").read_text()
    (tmp_path / "s.toml").write_text(re.sub(r'^duration = ".*"', 'duration = "1 s"', text, flags=re.M))
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, f"{code}\n{ran.stderr}"
