#!/usr/bin/env bash
# Composes demo.pcap.xz from four captures: data/make-demo.sh FOLDER_WITH_THE_FOUR_CAPTURES
#
# What is cut from each, and when in the demo it starts, stands in the four lines at the end; README.md says where the
# captures come from. Needs xz, tshark, editcap and mergecap. Two runs give the same packets.
set -euo pipefail

from=$1
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
zero='' # epoch time at which the demo starts, from the first part

# part NAME START LENGTH AT SNAPLEN: seconds START to START + LENGTH of capture NAME, moved to second AT of the demo.
part() {
  local name=$1 start=$2 length=$3 at=$4 snaplen=$5 first
  xz -dc "$from/$name.pcap.xz" >"$work/whole.pcap"
  first=$(tshark -r "$work/whole.pcap" -c 1 -T fields -e frame.time_epoch 2>/dev/null)
  editcap -F nsecpcap -A "$(add "$first" "$start")" -B "$(add "$first" "$start" "$length")" \
    "$work/whole.pcap" "$work/cut.pcap"
  zero=${zero:-$(add "$first" "$start")}
  editcap -F nsecpcap -t "$(add "$zero" "$at" "-$first" "-$start")" -s "$snaplen" \
    "$work/cut.pcap" "$work/part-$name.pcap"
}

add() {
  printf '%s\n' "$@" | awk '{ sum += $1 } END { printf "%.6f", sum }'
}

part l4s-skype-fqcodel 22 8 0 54
part l4s-cubic-fqcodel-wifi 0 2 1.5 96
part mlab-ndt-20210721 0 1.5 3.2 96
part zeek-echo-1000flows 1.9 0.4 6.6 96
mergecap -F nsecpcap -w "$work/demo.pcap" "$work"/part-*.pcap
xz -9e --threads=1 -c "$work/demo.pcap" >"$here/demo.pcap.xz"
