#!/bin/sh
# The flight recorder under load: 100,000 events per second for FLIGHT_SECONDS (an hour), FLIGHT_SIZE (64M) of them kept.
# Fails if the ring is more than 5 % larger than that, the recorder takes more than 3 % of a CPU (user and system time),
# events are lost, or a recording takes longer than 2 s to be written. Needs root and perl.
# usage: flight.sh PROGRAM
set -eu
program=$(realpath "$1")
seconds=${FLIGHT_SECONDS:-3600}
size=${FLIGHT_SIZE:-64M}
rate=${FLIGHT_RATE:-100000}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/mmtwin-flight.XXXXXX")
recorder= load=
trap 'kill $recorder $load 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
flight=$scratch/flight

"$program" record --flight "$size" -o "$flight" -e raw_syscalls:sys_enter --max-dumps 100 2>"$scratch/log" &
recorder=$!
for _ in $(seq 100); do
    if grep -q 'a recording of now' "$scratch/log"; then break; fi
    kill -0 $recorder || { cat "$scratch/log" >&2; exit 1; }
    sleep 0.1
done

# System calls, so many every 10 ms; what is late is made up for.
perl -e '
    use Time::HiRes qw(time sleep);
    my ($seconds, $rate) = @ARGV;
    my ($start, $done) = (time, 0);
    while ((my $passed = time - $start) < $seconds) {
        my $due = int($passed * $rate);
        for (; $done < $due; $done++) { getppid }
        sleep 0.01;
    }' "$seconds" "$rate" &
load=$!

# Clock ticks of the recorder, user and system: fields 14 and 15, counted behind the name.
ticks() { sed 's/.*) //' /proc/$recorder/stat | { read -r _ _ _ _ _ _ _ _ _ _ _ user system _; echo $((user + system)); }; }
now() { date +%s%N; }
bytes() { du -s --block-size=1 "$flight/segments" | cut -f 1; }
case $size in
*G) limit=$((${size%G} << 30)) ;;
*M) limit=$((${size%M} << 20)) ;;
*) echo "FLIGHT_SIZE: expected a number with M or G" >&2; exit 1 ;;
esac
failed=0
miss() { echo "flight.sh: $*" >&2; failed=1; }

largest=0 slowest=0 snaps=0 last=0 began=$(now) ticks_began=$(ticks)
snap() {
    start=$(now)
    "$program" snap "$flight" >"$scratch/name"
    took=$((($(now) - start) / 1000000))
    dump=$(cat "$scratch/name")
    snaps=$((snaps + 1))
    if [ $took -gt $slowest ]; then slowest=$took; fi
    # Reading it is not the recorder's work, and its size is bounded by the ring.
    "$program" report "$dump" --max-lost 0 >"$scratch/report" || miss "$dump has lost events"
    rm -r "$dump"
}
while kill -0 $load 2>/dev/null; do
    sleep 2
    there=$(bytes)
    if [ "$there" -gt $largest ]; then largest=$there; fi
    passed=$((($(now) - began) / 1000000000))
    # Some six recordings, one of them when the ring is full.
    if [ $passed -ge $((last + seconds / 6)) ] && [ $passed -lt "$seconds" ]; then
        snap
        last=$passed
    fi
done
snap
used=$(($(ticks) - ticks_began)) elapsed=$((($(now) - began) / 1000000))
hundredths=$((used * 100000 * 100 / $(getconf CLK_TCK) / elapsed))
memory=$(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$recorder/status)
kill -TERM $recorder
wait $recorder || true
recorder=
summary=$(tail -n 1 "$scratch/log")
sed 's/^/    /' "$scratch/log"

printf '%-34s %d MiB of %s (limit %d)\n' "largest ring" $((largest >> 20)) "$size" $((limit * 105 / 100 >> 20))
printf '%-34s %d.%02d %% of one CPU (limit 3), %d MiB of memory\n' "recorder, with recordings" \
    $((hundredths / 100)) $((hundredths % 100)) $((memory >> 10))
printf '%-34s %d ms of %d (limit 2000)\n' "slowest recording" $slowest $snaps
[ $largest -le $((limit * 105 / 100)) ] || miss "the ring was larger than $size and 5 %"
[ $hundredths -le 300 ] || miss "the recorder took more than 3 % of a CPU"
[ $slowest -le 2000 ] || miss "a recording took longer than 2 s"
case $summary in *'none lost'*) ;; *) miss "events were lost: $summary" ;; esac
exit $failed
