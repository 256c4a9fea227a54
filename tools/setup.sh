#!/bin/sh
# Installs what the tests and benchmarks compare mmtwin with: trace-cmd, and the kernel's Perl post-processing script
# out of Debian's kernel source packages (kept under target/, never committed). Each package that is installed is
# printed; nothing else of the machine changes. Without root or packages it says what is missing; the tests that need it
# then say that they are skipped.
set -eu
cd "$(dirname "$0")/.."
oracle=target/oracle
mkdir -p "$oracle"
say() { echo "setup: $*"; }

if ! command -v apt-get >/dev/null; then
    for command in trace-cmd perl xz; do
        command -v "$command" >/dev/null || say "$command is missing and there is no apt-get: its tests will be skipped" >&2
    done
    exit 0
fi
own=$PWD/target/apt
. tools/packages.sh

need() { # command package
    command -v "$1" >/dev/null || install "$2" || say "$1 is missing (package $2): its tests will be skipped" >&2
}
need trace-cmd trace-cmd
need perl perl-base
need xz xz-utils
need strace strace
need chromium chromium

script=Documentation/trace/postprocess/trace-vmscan-postprocess.pl
for release in 6.12; do
    to="$oracle/trace-vmscan-postprocess-$release.pl"
    [ -s "$to" ] && continue
    package="linux-source-$release"
    rm -f "$oracle/$package"_*.deb
    if (cd "$oracle" && download "$package"); then
        # The script is near the begin; what unpacks the rest is ended, which dpkg-deb reports.
        dpkg-deb --fsys-tarfile "$oracle/$package"_*.deb 2>/dev/null | tar -xO "./usr/src/$package.tar.xz" |
            xz -dc | tar -xO --occurrence=1 "$package/$script" >"$to.part" && mv "$to.part" "$to"
        rm -f "$oracle/$package"_*.deb
    else
        say "could not fetch $package: the comparison with its script will be skipped" >&2
    fi
done
