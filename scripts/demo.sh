#!/usr/bin/env bash
# Builds the command without the papers' experiments, analyses the capture in data/ and says where the HTML report is.
set -euo pipefail
cd "$(dirname "$0")/.."

capture=data/demo.pcap.xz
report=out/demo.html
arguments=(analyze "$capture" --rate 20mbps --html "$report")

"${CARGO:-cargo}" build --profile demo --locked -p queuescope-cli --no-default-features
mkdir -p out
printf '\n$ queuescope %s\n\n' "${arguments[*]}"
"${CARGO_TARGET_DIR:-target}/demo/queuescope" "${arguments[@]}"
printf '\nThe report: file://%s/%s (open it in a browser; it needs no network)\n' "$PWD" "$report"
