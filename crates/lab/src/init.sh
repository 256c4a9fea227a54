#!/bin/sh
# The guest's first process: sets the kernel up as the scenario says, runs the agent, and writes what it left into the
# memory that the host reads. Every step is a line `mmtwin-lab: ...` on the console.
export PATH=/bin HOME=/
out=/recording/out

say() { echo "mmtwin-lab: $*"; }

# The first page is how it ended, written last: KIND NUMBER, and a message. The archive follows.
finish() { # kind number message-file
    { echo "mmtwin-lab $1 $2"; [ ! -e "$3" ] || tail -c 3900 "$3"; } >/lab/end
    dd if=/lab/end of=/dev/mem bs=4096 count=1 seek=$((begin / 4096)) conv=sync,notrunc 2>/dev/null
    say "end"
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
read -r begin room </lab/room
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

while read -r purpose device; do
    tries=0
    while [ ! -b "$device" ]; do
        [ $tries -lt 100 ] || fail "$device did not appear"
        sleep 0.1
        tries=$((tries + 1))
    done
    case $purpose in
    recording) need mount -t ext4 -o dax "$device" /recording ;;
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

read -r uptime _ </proc/uptime
say "running $uptime"
mkdir $out
cd /data || fail "no /data"
MMTWIN_ARM=lab /agent /scenario.json $out >/dev/null 2>/lab/message
status=$?
read -r uptime _ </proc/uptime
say "sending $uptime"
[ $status = 0 ] || finish workload $status /lab/message

du -sk $out >/lab/size
read -r kib _ </lab/size
size=$((kib * 1024 + 1048576))
if [ $size -gt "$room" ]; then
    finish full $size /lab/none
fi
tar -cf - -C $out . | dd of=/dev/mem bs=4096 seek=$((begin / 4096 + 1)) conv=notrunc 2>/dev/null
finish done 0 /lab/message
