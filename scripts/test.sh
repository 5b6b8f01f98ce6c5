#!/usr/bin/env bash
# Every check, each with how long it took. All of them run, so that one run shows everything that is wrong;
# the exit status is 1 if any failed.
set -uo pipefail
cd "$(dirname "$0")/.."

make=${1:-make}
checks=(fmt floors circles orphans prose licences clippy doc book fuzz-check extension unit python)
summary=()
failed=0

for check in "${checks[@]}"; do
  printf '\n== %s\n' "$check"
  SECONDS=0
  if "$make" --no-print-directory "$check"; then result=ok; else result=FAILED failed=1; fi
  summary+=("$(printf '  %-10s %-6s %4d s' "$check" "$result" "$SECONDS")")
done

printf '\n== skipped\n'
scripts/skipped.sh
scripts/skipped.sh --required || failed=1
printf '\n== summary\n'
printf '%s\n' "${summary[@]}"
scripts/unit.sh --totals
exit "$failed"
