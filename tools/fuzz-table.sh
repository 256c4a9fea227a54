#!/bin/sh
# The table of a folder of results, a file for each target: sums over its lines. `tools/fuzz-table.sh FOLDER`.
set -eu
cd "$(dirname "$0")/.."
echo "| target | what | inputs | accepted | seconds | inputs/s | edges | finds |"
echo "|---|---|--:|--:|--:|--:|--:|--:|"
for target in $(sed -n 's/^ *name: "\(.*\)",$/\1/p' fuzz/src/targets/mod.rs); do
  [ -f "$1/$target" ] || continue
  what=$(sed -n "/^ *name: \"$target\",\$/{n;s/^ *what: \"\\(.*\\)\",\$/\\1/p}" fuzz/src/targets/mod.rs)
  awk -v target="$target" -v what="$what" '
    { n += $1; taken += $2; s += $3; edges = $4 > edges ? $4 : edges; finds += $5 }
    END {
      percent = n ? 100 * taken / n : 0
      printf "| `%s` | %s | %d | %.0f %% | %d | %.0f | %d | %d |\n", target, what, n, percent, s, s ? n / s : 0, edges, finds
    }' "$1/$target"
done
cat "$1"/* | awk '{ n += $1; s += $3; f += $5 } END { printf "| all | | %d | | %d | %.0f | | %d |\n", n, s, s ? n / s : 0, f }'
