#!/bin/sh
# The first look: reports on a recording that ships with the sources and, where this machine lets it, records the
# machine for about three seconds while a file is written and read, and reports on that. Where a memory cgroup can be
# made, the reader runs in one of 32 MiB, so that there is something to reclaim. In target it leaves two pages, and of one
# of them the picture of README (docs/images/report.png) where chromium is installed.
# usage: tools/demo.sh [MMTWIN]
set -eu
cd "$(dirname "$0")/.."
mmtwin=${1:-target/release/mmtwin}
sample=tests/data/host-6.18.dat

say() { printf '\n== %s\n' "$1"; }
run() { printf '$ %s\n' "$*"; "$@"; }

say "a recording of Linux 6.18: a program in a cgroup of 64 MiB reads a file of 256 MiB, twice"
run "$mmtwin" report "$sample"

say "the first of its 18,410 events, as the kernel prints them"
run "$mmtwin" script "$sample" | head -n 6

mkdir -p target
dir=$(mktemp -d target/demo.XXXXXX)
cgroup=
cleanup() { rm -rf "$dir"; [ -z "$cgroup" ] || rmdir "$cgroup" 2>/dev/null || true; }
trap cleanup EXIT
trap 'exit 1' INT TERM

say "a page: PostgreSQL in a cgroup of 48 MiB"
page=target/report.html
picture=target/report.png
run "$mmtwin" report tests/verdicts/host-pg-small.tar.zst --format html -f -o "$page"
# As root it has no sandbox.
if [ "$(id -u)" = 0 ]; then sandbox=--no-sandbox; else sandbox=--disable-gpu; fi
if ! command -v chromium >/dev/null; then
    echo "no picture of it: chromium is not installed"
elif timeout 60 chromium --headless --disable-gpu "$sandbox" --hide-scrollbars --window-size=1400,1150 \
    --force-device-scale-factor=0.7 --virtual-time-budget=5000 --user-data-dir="$dir/browser" \
    --screenshot="$picture" "file://$PWD/$page" >/dev/null 2>&1; then
    echo "$page, and what it looks like: $picture"
else
    echo "no picture of it: chromium failed"
fi

say "what this machine allows"
# Its status says whether everything is there; the demo goes on with what is.
run "$mmtwin" doctor || true

# Pages of a file in tmpfs cannot be reclaimed without swap: there the reader would be killed in a small cgroup.
if [ "$(stat -f -c %T "$dir")" != tmpfs ]; then
    for mount in /sys/fs/cgroup/memory /sys/fs/cgroup; do
        try=$mount/mmtwin-demo-$$
        mkdir "$try" 2>/dev/null || continue
        for limit in memory.limit_in_bytes memory.max; do
            [ ! -e "$try/$limit" ] || { echo 32M >"$try/$limit" && cgroup=$try; }
        done
        [ -z "$cgroup" ] || break
        rmdir "$try" 2>/dev/null || true
    done
fi

cat >"$dir/load.sh" <<'LOAD'
[ -z "$2" ] || echo $$ >"$2/cgroup.procs"
end=$(($(date +%s) + 3))
while [ "$(date +%s)" -lt "$end" ]; do
    dd if=/dev/zero of="$1" bs=1M count=96 conv=fsync 2>/dev/null
    cat "$1" >/dev/null
done
LOAD
if [ -n "$cgroup" ]; then
    say "this machine for three seconds, while a program in a cgroup of 32 MiB writes and reads a file of 96 MiB"
else
    say "this machine for three seconds, while a program writes and reads a file of 96 MiB"
fi
run "$mmtwin" record -o "$dir/demo.mmt" -I 500ms -- sh "$dir/load.sh" "$dir/file" "$cgroup"
run "$mmtwin" report "$dir/demo.mmt"
run "$mmtwin" report "$dir/demo.mmt" --format html -f -o target/here.html

say "next: $mmtwin record -- YOUR COMMAND, then $mmtwin report mmtwin.mmt; $mmtwin --help has the rest"
