#!/usr/bin/env bash
# Lists what the last run of the tests skipped, and why. With --required, lists only what was skipped for want of a program or
# package that $QUEUESCOPE_REQUIRE names (tshark,chromium,...), and fails if there is any.
set -euo pipefail
cd "$(dirname "$0")/.."

log=target/test.log

required() {
  local names
  names=$(tr -s ', ' '|' <<<"${QUEUESCOPE_REQUIRE:-}" | sed 's/^|//; s/|$//')
  [[ -n $names && -e $log ]] &&
    grep '^skipped: ' "$log" | sort -u | grep -E "(there is no|no program) ([a-z]+ )*($names)\b|\b($names) is not installed"
}

if [[ ${1:-} == --required ]]; then
  if required | sed 's/^skipped: /  skipped, although it is required here: /' | grep .; then exit 1; fi
elif [[ ! -e $log ]]; then
  echo "  no test has run yet"
elif ! grep -q '^skipped: ' "$log"; then
  echo "  nothing: every test ran"
else
  grep '^skipped: ' "$log" | sort -u | sed 's/^skipped: /  /'
fi
