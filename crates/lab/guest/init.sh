#!/bin/sh
# The guest's first process: sets the kernel up as the scenario says, runs the agent in it, and turns the guest off.
# What it says of itself are lines `mmtwin-lab: ...` on the console; the last one is how it ended.
export PATH=/bin HOME=/
out=/recording/out

say() { echo "mmtwin-lab: $*"; }

finish() { # kind number message-file
    [ ! -e "$3" ] || tail -c 4000 "$3" | while IFS= read -r line || [ -n "$line" ]; do say "| $line"; done
    say "end $1 $2"
    poweroff -f
}

fail() {
    echo "$*" >/lab/message
    finish set-up 0 /lab/message
}

need() { "$@" >/lab/message 2>&1 || finish set-up 0 /lab/message; }

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
need mount -t tmpfs tmpfs /tmp
mkdir -p /dev/shm
need mount -t tmpfs tmpfs /dev/shm
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
case $(cat /lab/cgroup) in
v1)
    mount -t tmpfs tmpfs /sys/fs/cgroup && mkdir /sys/fs/cgroup/memory
    need mount -t cgroup -o memory cgroup /sys/fs/cgroup/memory
    ;;
*)
    need mount -t cgroup2 cgroup2 /sys/fs/cgroup
    echo +memory >/sys/fs/cgroup/cgroup.subtree_control
    ;;
esac

while read -r module; do
    need insmod "/lab/modules/$module.ko"
done </lab/modules.order

wait_for() {
    tries=0
    while [ ! -b "$1" ]; do
        [ $tries -lt 100 ] || fail "$1 did not appear"
        sleep 0.1
        tries=$((tries + 1))
    done
}

delayed=0
while read -r purpose device target; do
    wait_for "$device"
    if [ -n "$target" ]; then
        # shellcheck disable=SC2086 # name and parameters
        need dm-delay "$purpose" "$device" $target
        device=/dev/dm-$delayed
        delayed=$((delayed + 1))
        wait_for "$device"
    fi
    case $purpose in
    recording) need mount -t ext4 -o dax,noatime,no_prefetch_block_bitmaps "$device" /recording ;;
    files) need mount -t ext4 "$device" /data ;;
    swap)
        need mkswap "$device"
        need swapon "$device"
        ;;
    esac
done </lab/devices

while read -r path value; do
    if [ -e "$path" ]; then
        read -r now <"$path"
        [ "$now" = "$value" ] || echo "$value" >"$path" || fail "$path does not take $value"
    else
        say "no $path"
    fi
done </lab/settings

# They cost nothing until somebody records them.
if [ -e /lab/probes ]; then
    cat /lab/probes >/sys/kernel/tracing/kprobe_events || fail "the kernel does not take its probes"
fi

# Runs of different seeds begin at different times.
sleep "$(cat /lab/wait)"

read -r uptime _ </proc/uptime
say "running $uptime"
mkdir $out
cd /data || fail "no /data"
MMTWIN_ARM=lab /agent /scenario.json $out --files /data >/dev/null 2>/lab/message
status=$?
read -r uptime _ </proc/uptime
say "sending $uptime"
free=$(stat -f -c '%a' /recording)
[ "$free" -gt 16 ] || finish full 0 /lab/message
# 5: a process was killed because memory ran out, which is a result.
case $status in
0 | 5) ;;
*) finish workload $status /lab/message ;;
esac
# A process that the agent left behind may hold it.
cd / && umount /recording 2>/dev/null || sync
finish done 0 /lab/message
