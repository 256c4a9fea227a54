#!/bin/sh
# Builds the Python package as a wheel, installs it into an environment of its own below target, and runs its tests, examples
# and notebooks. Of the machine nothing changes but Debian's python3 and python3-venv, which are installed and printed where
# they are missing. Where Ray has no wheel its tests are skipped, and say so. Arguments are passed to pytest.
#
# The wheel is built in the tests' profile, which compiles in a part of a release's time; its twin is optimised there too.
# `maturin build --release -m crates/python/Cargo.toml` builds one for use.
set -eu
cd "$(dirname "$0")/.."
export CARGO_INCREMENTAL=0
environment=target/python-package
say() { echo "python-package: $*"; }

# An environment with pip: Debian's python3 has no venv of its own.
make_environment() {
    rm -rf $environment
    python3 -m venv $environment </dev/null
}
if ! [ -x $environment/bin/pip ] && ! make_environment >target/python-package.log 2>&1; then
    own=$PWD/target/apt
    if ! command -v apt-get >/dev/null; then
        say "python3 with venv is missing and there is no apt-get" >&2
        exit 1
    fi
    . tools/packages.sh
    install python3 python3-venv
    make_environment
fi

# With more patience than a minute of a busy network.
fetch() { $environment/bin/pip install --quiet --disable-pip-version-check --no-input --retries 10 --timeout 60 "$@" </dev/null; }
grep -v '^ray==' crates/python/requirements.txt >target/python-requirements.txt
fetch -r target/python-requirements.txt
fetch "$(grep '^ray==' crates/python/requirements.txt)" || say "Ray cannot be installed here: its tests are skipped" >&2

rm -rf target/wheels
PATH="$PWD/$environment/bin:$PATH"
export PATH
maturin build --profile dev --quiet --manifest-path crates/python/Cargo.toml --out target/wheels
fetch --force-reinstall --no-deps target/wheels/mmtwin-*.whl
ruff format --quiet --check crates/python
ruff check --quiet crates/python
mypy --config-file crates/python/pyproject.toml --cache-dir target/mypy crates/python/python/mmtwin
# The stubs are of the module that was built. From elsewhere: here it would find the sources.
(cd / && stubtest --ignore-missing-stub mmtwin._mmtwin)
# The tests compare with the command line of the same commit: this gives that of `make test`, which is there already.
cargo test --workspace --test cli --no-run --quiet
MMTWIN_BIN="$PWD/target/debug/mmtwin" pytest -c crates/python/pyproject.toml crates/python/tests "$@" </dev/null
