#!/usr/bin/env bash
# Takes the pictures of the report in docs/images: the report of `make demo`, light and dark. Needs chromium.
set -euo pipefail
cd "$(dirname "$0")/.."

report=$PWD/out/demo.html
[[ -e $report ]] || scripts/demo.sh >/dev/null

# The second value of preferredColorScheme is light, the first is dark.
for scheme in light=1 dark=0; do
  chromium --headless=new --no-sandbox --hide-scrollbars --force-device-scale-factor=1 --window-size=1200,1060 \
    --blink-settings=preferredColorScheme="${scheme#*=}" --virtual-time-budget=5000 \
    --screenshot="docs/images/report-${scheme%=*}.png" "file://$report" 2>/dev/null
done
ls -l docs/images
