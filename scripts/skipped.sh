#!/usr/bin/env bash
# Lists what the last run of the tests skipped, and why.
set -euo pipefail
cd "$(dirname "$0")/.."

log=target/test.log
if [[ ! -e $log ]]; then
  echo "  no test has run yet"
elif ! grep -q '^skipped: ' "$log"; then
  echo "  nothing: every test ran"
else
  grep '^skipped: ' "$log" | sort -u | sed 's/^skipped: /  /'
fi
