#!/usr/bin/env bash
# Compares the time of `queuescope analyze` with `tcpdump -r FILE -w /dev/null` on the same file, which only copies packets.
#
#   bench/analyze.sh [CAPTURE [RATE [PACKETS]]] [-- OPTIONS OF ANALYZE]
#
# CAPTURE (the demo's without one) is repeated with shifted addresses until it has PACKETS packets (10 million). Both
# commands run alternately, pinned to one core, RUNS (5) times each after a warm-up that also fills the page cache.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

given=()
while [[ $# -gt 0 && $1 != -- ]]; do given+=("$1"); shift; done
[[ $# -eq 0 ]] || shift
capture=${given[0]:-data/demo.pcap.xz}
rate=${given[1]:-20mbps}
packets=${given[2]:-10000000}
runs=${RUNS:-5}
core=${CORE:-$(($(nproc) - 1))}

main() {
  need tcpdump tcpdump
  need taskset util-linux
  build
  local file="$scratch/analyze.pcap"
  unpacked "$capture" | "$xtask" repeat - "$file" --packets "$packets"
  machine
  echo "file: $(stat -c %s "$file") bytes; rate $rate; core $core; $runs runs each, alternately"
  tcpdump_run "$file" >/dev/null
  analyze_run "$file" "$@" >/dev/null
  local times=()
  for ((run = 1; run <= runs; run++)); do
    times+=("tcpdump $(tcpdump_run "$file")" "analyze $(analyze_run "$file" "$@")")
    printf 'run %d: %s s, %s s\n' "$run" "${times[-2]}" "${times[-1]}"
  done
  local copy analysis
  copy=$(printf '%s\n' "${times[@]}" | median tcpdump)
  analysis=$(printf '%s\n' "${times[@]}" | median analyze)
  echo "median: tcpdump $copy s, analyze $analysis s"
  awk -v a="$analysis" -v c="$copy" -v n="$packets" \
    'BEGIN { printf "ratio: %.2f (target: at most 1.50); %.1f million packets a second\n", a / c, n / a / 1e6 }'
  [[ -n ${KEEP:-} ]] || rm -f "$file"
}

tcpdump_run() {
  seconds taskset -c "$core" tcpdump -n -r "$1" -w /dev/null
}

analyze_run() {
  local file=$1
  shift
  seconds taskset -c "$core" "$queuescope" analyze "$file" --rate "$rate" "$@"
}

# Runs a command and prints its time in seconds; its output is shown if it fails.
seconds() {
  local start end
  start=$(date +%s.%N)
  "$@" >"$scratch/output.txt" 2>&1 || { cat "$scratch/output.txt" >&2; fail "'$*' failed"; }
  end=$(date +%s.%N)
  awk -v s="$start" -v e="$end" 'BEGIN { printf "%.3f", e - s }'
}

median() {
  awk -v name="$1" '$1 == name { print $2 }' | sort -n |
    awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

main "$@"
