#!/usr/bin/env bash
# Measures the peak memory of `queuescope analyze` on a capture of at least 5 GB with more than 50 million flows.
#
#   bench/memory.sh CAPTURE [RATE [BYTES]] [-- OPTIONS OF ANALYZE]
#
# CAPTURE is repeated with shifted addresses until it has BYTES bytes (6.3e9); a capture with many flows in few bytes
# gives the most flows. It goes through a pipe unless ON_DISK=1. Prints the number of flows; check that it is large enough.
set -euo pipefail
source "$(dirname "$0")/lib.sh"

given=()
while [[ $# -gt 0 && $1 != -- ]]; do given+=("$1"); shift; done
[[ $# -eq 0 ]] || shift
[[ ${#given[@]} -gt 0 ]] || fail "which capture? for example the demo's: $0 data/demo.pcap.xz 20mbps"
capture=${given[0]}
rate=${given[1]:-10mbps}
bytes=${given[2]:-6300000000}

main() {
  need /usr/bin/time time
  build
  machine
  local start file=-
  if [[ -n ${ON_DISK:-} ]]; then
    file="$scratch/memory.pcap"
    unpacked "$capture" | "$xtask" repeat - "$file" --bytes "$bytes"
  fi
  start=$SECONDS
  if [[ $file == - ]]; then
    unpacked "$capture" | "$xtask" repeat - - --bytes "$bytes" | measured "$file" "$@"
  else
    measured "$file" "$@"
    rm -f "$file"
  fi
  head -n 40 "$scratch/output.txt"
  awk '/Maximum resident/ { printf "peak resident memory: %.1f MB (target: under 200 MB)\n", $NF * 1024 / 1e6 }' \
    "$scratch/time.txt"
  echo "took $((SECONDS - start)) s"
}

measured() {
  local file=$1
  shift
  /usr/bin/time -v -o "$scratch/time.txt" "$queuescope" analyze "$file" --rate "$rate" "$@" >"$scratch/output.txt"
}

main "$@"
