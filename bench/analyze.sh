#!/usr/bin/env bash
# Compares `queuescope analyze` with `tcpdump -r FILE -w /dev/null` on the same file, which only copies packets: wall time, and time of all
# processors (user and system, all threads).
#
#   bench/analyze.sh [CAPTURE [RATE [PACKETS]]] [-- OPTIONS OF ANALYZE]
#
# CAPTURE (the demo's without one) is repeated with shifted addresses until it has PACKETS packets (10 million). Both commands run
# alternately, RUNS (5) times each after a warm-up that also fills the page cache. CORES (such as 0, or 0,1) are the processors that both may
# use; all without it. bench/analyze-captures.md lists the captures of the target.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

given=()
while [[ $# -gt 0 && $1 != -- ]]; do given+=("$1"); shift; done
[[ $# -eq 0 ]] || shift
capture=${given[0]:-data/demo.pcap.xz}
rate=${given[1]:-20mbps}
packets=${given[2]:-10000000}
runs=${RUNS:-5}
cores=${CORES:-0-$(($(nproc --all) - 1))}

main() {
  need tcpdump tcpdump
  need taskset util-linux
  build
  local file="$scratch/analyze.pcap"
  unpacked "$capture" | "$xtask" repeat - "$file" --packets "$packets"
  machine
  echo "file: $(stat -c %s "$file") bytes; rate $rate; processors $cores; $runs runs each, alternately"
  tcpdump_run "$file" >/dev/null
  analyze_run "$file" "$@" >/dev/null
  local times=()
  for ((run = 1; run <= runs; run++)); do
    times+=("tcpdump $(tcpdump_run "$file")" "analyze $(analyze_run "$file" "$@")")
    printf 'run %d (wall, processors): %s s, %s s\n' "$run" "${times[-2]}" "${times[-1]}"
  done
  local what column
  for what in wall processors; do
    [[ $what == wall ]] && column=2 || column=3
    awk -v what="$what" -v n="$packets" \
      -v c="$(printf '%s\n' "${times[@]}" | median tcpdump $column)" \
      -v a="$(printf '%s\n' "${times[@]}" | median analyze $column)" \
      'BEGIN { printf "%s, medians: tcpdump %.3f s, analyze %.3f s, ratio %.2f; %.0f ns a packet\n", what, c, a, a / c, a / n * 1e9 }'
  done
  echo "targets: at most 1.00 times the wall time, and 1.50 times the time of processors"
  [[ -n ${KEEP:-} ]] || rm -f "$file"
}

tcpdump_run() {
  seconds taskset -c "$cores" tcpdump -n -r "$1" -w /dev/null
}

analyze_run() {
  local file=$1
  shift
  seconds taskset -c "$cores" "$queuescope" analyze "$file" --rate "$rate" "$@"
}

# Runs a command and prints its wall time, and user and system time, in seconds; its output is shown if it fails.
seconds() {
  local TIMEFORMAT='%R %U %S'
  { time "$@" >"$scratch/output.txt" 2>&1 || { cat "$scratch/output.txt" >&3; fail "'$*' failed" 2>&3; }; } 3>&2 2>&1 |
    awk '{ printf "%.3f %.3f", $1, $2 + $3 }'
}

median() {
  awk -v name="$1" -v column="$2" '$1 == name { print $column }' | sort -n |
    awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}

main "$@"
