#!/bin/sh
# Runs a command with tracefs, which tests need that record this machine. Where it is not mounted, it is mounted for the
# command alone, in a mount namespace of its own that ends with it: the machine's mounts stay as they are. Without the
# right to that, the command runs without, and its tests say that they are skipped.
# usage: with-tracefs.sh COMMAND [ARGUMENT...]
set -eu
say() { echo "with-tracefs: $*" >&2; }
if [ -e /sys/kernel/tracing/trace ] || [ -e /sys/kernel/debug/tracing/trace ]; then exec "$@"; fi
if [ "$(id -u)" != 0 ]; then
    say "tracefs is not mounted: tests that record this machine will be skipped; to run them: sudo make test"
elif ! unshare -m --propagation private mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; then
    say "tracefs cannot be mounted here: tests that record this machine will be skipped"
else
    say "tracefs is mounted for this command alone"
    exec unshare -m --propagation private sh -c 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"' sh "$@"
fi
exec "$@"
