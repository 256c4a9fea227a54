#!/bin/sh
# Installs what the tests and benchmarks compare mmtwin with: trace-cmd, and the kernel's Perl post-processing script
# out of Debian's kernel source packages (kept under target/, never committed). Without root or packages it says what
# is missing; the tests that need it then say that they are skipped.
set -eu
cd "$(dirname "$0")/.."
oracle=target/oracle
mkdir -p "$oracle"

root() { if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo -n "$@"; else return 1; fi; }

updated=
install() { # command package
    command -v "$1" >/dev/null && return
    if ! command -v apt-get >/dev/null; then echo "setup: $1 is missing and there is no apt-get: its tests will be skipped" >&2; return; fi
    [ -n "$updated" ] || root apt-get -qq update || true
    updated=1
    root apt-get -qq install -y --no-install-recommends "$2" >/dev/null 2>&1 ||
        echo "setup: could not install $2: its tests will be skipped" >&2
}
install trace-cmd trace-cmd
install perl perl-base
install xz xz-utils
install strace strace

script=Documentation/trace/postprocess/trace-vmscan-postprocess.pl
for release in 6.12; do
    to="$oracle/trace-vmscan-postprocess-$release.pl"
    [ -s "$to" ] && continue
    package="linux-source-$release"
    [ -n "$updated" ] || root apt-get -qq update || true
    updated=1
    rm -f "$oracle/$package"_*.deb
    if (cd "$oracle" && apt-get -qq download "$package" >/dev/null 2>&1); then
        dpkg-deb --fsys-tarfile "$oracle/$package"_*.deb | tar -xO "./usr/src/$package.tar.xz" |
            xz -dc | tar -xO "$package/$script" >"$to.part" && mv "$to.part" "$to"
        rm -f "$oracle/$package"_*.deb
    else
        echo "setup: could not fetch $package: the comparison with its script will be skipped" >&2
    fi
done

# Tests that record this machine need tracefs; mounting it needs root and is undone by nobody because it is where every
# tracing tool expects it.
if [ ! -e /sys/kernel/tracing/trace ] && [ ! -e /sys/kernel/debug/tracing/trace ]; then
    root mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null ||
        echo "setup: tracefs is not mounted: tests that record this machine will be skipped" >&2
fi
