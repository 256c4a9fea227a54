#!/bin/sh
# One target for FUZZ_SECONDS with coverage, then for FUZZ_SWEEP without. What each did is a line of
# $FUZZ_OUT/results/TARGET: inputs, accepted, seconds, edges, finds.
set -eu
target=$1
corpus="$FUZZ_OUT/corpus/$target"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$corpus" "$scratch/seeds" "$scratch/tmp"
# Readers unpack archives into temporary files: in memory if there is a file system for that.
if [ -d /dev/shm ]; then
  shm=$(mktemp -d /dev/shm/fuzz.XXXXXX)
  trap 'rm -rf "$scratch" "$shm"' EXIT
  export TMPDIR="$shm"
fi
regressions="fuzz/regressions/$target"
[ -d "$regressions" ] || regressions=
begun=$(date +%s)
inputs=0 accepted=0 edges=0 finds=0
while left=$((FUZZ_SECONDS - $(date +%s) + begun)); [ "$left" -gt 0 ] && [ "$finds" -lt "$FUZZ_CRASHES" ]; do
  status=0
  rm -f "$scratch/counts"
  # Hangs and memory are watched by the program itself, in CPU time and by allocation; these limits are behind those.
  MMTWIN_FUZZ_TARGET=$target MMTWIN_FUZZ_SEEDS="$scratch/seeds" MMTWIN_FUZZ_COUNTS="$scratch/counts" \
    "$FUZZ_ENGINE" "$corpus" "$scratch/seeds" $regressions -max_total_time="$left" -timeout=600 -rss_limit_mb=2048 \
    -max_len=262144 -artifact_prefix="$FUZZ_OUT/finds/$target-" -use_value_profile="${FUZZ_VALUE_PROFILE:-0}" -print_final_stats=1 \
    > "$scratch/log" 2>&1 || status=$?
  cp "$scratch/log" "$FUZZ_OUT/logs/$target.log"
  read -r more taken < "$scratch/counts" || more=0 taken=0
  # The last line of libFuzzer has more of the inputs than the counts, which are written once a second.
  last=$(sed -n 's/^#\([0-9]*\)\t.* cov: \([0-9]*\) .*/\1 \2/p' "$scratch/log" | tail -n 1)
  inputs=$((inputs + more)) accepted=$((accepted + taken))
  [ -z "$last" ] || edges=${last#* }
  [ "$status" -eq 0 ] && break
  finds=$((finds + 1))
  cp "$scratch/log" "$FUZZ_OUT/finds/$target-$finds.log"
done
echo "$inputs $accepted $(($(date +%s) - begun)) $edges $finds" > "$FUZZ_OUT/results/$target"
begun=$(date +%s)
if [ "$FUZZ_SWEEP" -gt 0 ]; then
  "$FUZZ_SWEEPER" "$target" "$FUZZ_SWEEP" "$((begun * 1000000))" "$FUZZ_OUT/finds" "$corpus" $regressions \
    2> "$FUZZ_OUT/logs/$target-sweep.log" >> "$FUZZ_OUT/results/$target" ||
    echo "0 0 $(($(date +%s) - begun)) 0 1" >> "$FUZZ_OUT/results/$target"
fi
awk -v target="$target" '{ n += $1; taken += $2; finds += $5 } END { print target ": " n " inputs, " taken " accepted, " finds + 0 " finds" }' \
  "$FUZZ_OUT/results/$target"
