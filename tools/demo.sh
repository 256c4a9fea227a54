#!/bin/sh
# The first look: reports on a recording that ships with the sources and, where this machine lets it, records the
# machine for about three seconds while a file is written and read, and reports on that. Where a memory cgroup can be
# made, the reader runs in one of 32 MiB, so that there is something to reclaim. Nothing is left behind.
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

say "what this machine allows"
# Its status says whether everything is there; the demo goes on with what is.
run "$mmtwin" doctor || true

mkdir -p target
dir=$(mktemp -d target/demo.XXXXXX)
cgroup=
cleanup() { rm -rf "$dir"; [ -z "$cgroup" ] || rmdir "$cgroup" 2>/dev/null || true; }
trap cleanup EXIT
trap 'exit 1' INT TERM

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

say "next: $mmtwin record -- YOUR COMMAND, then $mmtwin report mmtwin.mmt; $mmtwin --help has the rest"
