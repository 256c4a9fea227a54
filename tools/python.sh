#!/bin/sh
# Python packages whose readers the exports are tested with, in target/python. Nothing of the machine changes.
set -eu
cd "$(dirname "$0")/.."
say() { echo "python: $*"; }
if ! command -v python3 >/dev/null; then
    say "python3 is missing: the tests with Python packages will be skipped" >&2
    exit 0
fi
for package in prometheus-client==0.26.0 perfetto==0.59.1; do
    [ -x target/python/bin/python ] || python3 -m venv target/python
    say "$package"
    target/python/bin/pip install --quiet --disable-pip-version-check "$package"
done
