#!/usr/bin/env bash
# Fuzzes every target in turn: scripts/fuzz.sh [SECONDS_EACH] [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
shift || true
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || mapfile -t targets < <(cargo +nightly fuzz list)

for target in "${targets[@]}"; do
  echo "== $target, $seconds s"
  corpus=(fuzz/corpus/"$target")
  mkdir -p "${corpus[0]}"
  [[ ! -d fuzz/seeds/$target ]] || corpus+=(fuzz/seeds/"$target")
  # New inputs go to the first folder; the seeds are only read. Large captures are not where parsers break.
  cargo +nightly fuzz run "$target" "${corpus[@]}" -- -max_total_time="$seconds" -max_len=16384 -print_final_stats=1
done
