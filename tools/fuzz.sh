#!/bin/sh
# Coverage-guided fuzzing of all targets in turn (libFuzzer on the stable toolchain; needs a C++ compiler).
#
#   FUZZ_SECONDS   seconds for each target, guided by coverage (600)
#   FUZZ_SWEEP     seconds for each target after that, without coverage and some ten times as many inputs (300)
#   FUZZ_TARGETS   targets, by name (all)
#   FUZZ_JOBS      targets at once (2)
#   FUZZ_DOCS=1    adds what was done to fuzz/results, a line for each run of a target, of which the table in
#                  docs/design/fuzzing.md is made
#
# Inputs that reach new code stay in target/fuzz/corpus, what crashes in target/fuzz/finds. A target that crashes is begun
# again until its time is up or it has crashed FUZZ_CRASHES times (10).
set -eu
cd "$(dirname "$0")/.."
: "${FUZZ_SECONDS:=600}" "${FUZZ_SWEEP:=300}" "${FUZZ_JOBS:=2}" "${FUZZ_CRASHES:=10}" "${CARGO:=cargo}"
export FUZZ_SECONDS FUZZ_SWEEP FUZZ_CRASHES
host=$(rustc -vV | sed -n 's/^host: //p')
# With a target named, the flags are for what runs and not for what builds it.
coverage="-C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4"
coverage="$coverage -C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table"
coverage="$coverage -C llvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS="$coverage" $CARGO build --profile fuzz -p mmtwin-fuzz --features engine --bin mmtwin-fuzz \
  --target "$host" --target-dir target/engine
$CARGO build --profile fuzz -p mmtwin-fuzz --bin mmtwin-sweep --target-dir target/engine
FUZZ_ENGINE="$PWD/target/engine/$host/fuzz/mmtwin-fuzz"
FUZZ_SWEEPER="$PWD/target/engine/fuzz/mmtwin-sweep"
FUZZ_OUT="$PWD/target/fuzz"
export FUZZ_ENGINE FUZZ_SWEEPER FUZZ_OUT
names=$(sed -n 's/^ *name: "\(.*\)",$/\1/p' fuzz/src/targets/mod.rs)
targets=${FUZZ_TARGETS:-$names}
mkdir -p "$FUZZ_OUT/finds" "$FUZZ_OUT/logs"
rm -rf "$FUZZ_OUT/results"
mkdir "$FUZZ_OUT/results"
echo "$targets" | tr ' ' '\n' | xargs -P "$FUZZ_JOBS" -n 1 tools/fuzz-target.sh
tools/fuzz-table.sh "$FUZZ_OUT/results"
if [ "${FUZZ_DOCS:-0}" = 1 ]; then
  mkdir -p fuzz/results
  for target in $targets; do cat "$FUZZ_OUT/results/$target" >> "fuzz/results/$target"; done
  tools/fuzz-table.sh fuzz/results > "$FUZZ_OUT/table.md"
  awk -v table="$FUZZ_OUT/table.md" '
    /^<!-- fuzz:end -->/ { skip = 0 }
    !skip { print }
    /^<!-- fuzz:begin -->/ { skip = 1; while ((getline line < table) > 0) print line }
  ' docs/design/fuzzing.md > "$FUZZ_OUT/fuzzing.md"
  cp "$FUZZ_OUT/fuzzing.md" docs/design/fuzzing.md
fi
# A find fails the run.
cat "$FUZZ_OUT"/results/* | awk '{ f += $5 } END { exit f > 0 }'
