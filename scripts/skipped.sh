#!/usr/bin/env bash
# Lists what the last run of the tests, of the book's checks and of those of the Python package skipped, and why. With --required, lists only what was skipped
# for want of a program or package that $QUEUESCOPE_REQUIRE names (tshark,chromium,...), and fails if there is any.
set -euo pipefail
cd "$(dirname "$0")/.."

logs=(target/test.log target/book.log target/python.log)

skips() {
  { cat "${logs[@]}" 2>/dev/null || true; } | grep '^skipped: ' | sort -u
}

required() {
  local names
  names=$(tr -s ', ' '|' <<<"${QUEUESCOPE_REQUIRE:-}" | sed 's/^|//; s/|$//')
  [[ -n $names ]] && skips | grep -E "(there is no|no program) ([a-z]+ )*($names)\b|\b($names) is not installed"
}

if [[ ${1:-} == --required ]]; then
  if required | sed 's/^skipped: /  skipped, although it is required here: /' | grep .; then exit 1; fi
elif [[ ! -e ${logs[0]} ]]; then
  echo "  no test has run yet"
else
  skips | sed 's/^skipped: /  /' | grep . || echo "  nothing: every test ran"
fi
