#!/bin/sh
# Builds the Python package as a wheel, installs it into an environment of its own below target, and runs its tests, examples
# and notebooks. Nothing of the machine changes. Arguments are passed to pytest.
#
# The wheel is built in the tests' profile, which compiles in a part of a release's time; its twin is optimised there too.
# `maturin build --release -m crates/python/Cargo.toml` builds one for use.
set -eu
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0
environment=target/python-package
if ! command -v python3 >/dev/null; then
    echo "python-package: python3 is missing" >&2
    exit 1
fi
[ -x $environment/bin/python ] || python3 -m venv $environment
$environment/bin/pip install --quiet --disable-pip-version-check -r crates/python/requirements.txt
rm -rf target/wheels
PATH="$PWD/$environment/bin:$PATH"
export PATH
maturin build --profile dev --quiet --manifest-path crates/python/Cargo.toml --out target/wheels
pip install --quiet --disable-pip-version-check --force-reinstall --no-deps target/wheels/mmtwin-*.whl
ruff format --quiet --check crates/python
ruff check --quiet crates/python
mypy --config-file crates/python/pyproject.toml --cache-dir target/mypy crates/python/python/mmtwin
# The stubs are of the module that was built. From elsewhere: here it would find the sources.
(cd / && stubtest --ignore-missing-stub mmtwin._mmtwin)
# The tests compare with the command line of the same commit.
cargo build --quiet --bin mmtwin
MMTWIN_BIN="$PWD/target/debug/mmtwin" pytest -c crates/python/pyproject.toml crates/python/tests "$@"
