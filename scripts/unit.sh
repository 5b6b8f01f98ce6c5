#!/usr/bin/env bash
# Runs all tests of the workspace and keeps their output in target/test.log. With --totals, counts the results in it and repeats
# what each failed test printed, because the end of a long output is the part that is kept and read.
#
# A test that cannot run here (a tool or the larger data is absent) says so by a line `skipped: <test>: <reason>` on
# its standard error and passes; --show-output brings that line out.
set -euo pipefail
cd "$(dirname "$0")/.."

log=target/test.log

totals() {
  awk '/^test result: / { for (i = 1; i < NF; i++) { if ($(i+1) ~ /^passed/) passed += $i; if ($(i+1) ~ /^failed/) failed += $i
                                                   if ($(i+1) ~ /^ignored/) ignored += $i } }
       END { printf "  tests: %d passed, %d failed, %d ignored\n", passed, failed, ignored }' "$log"
}

# What the tests that failed printed, 40 lines of each at most. --show-output prints the output of the others in the same form.
failures() {
  awk 'NR == FNR { if ($1 == "test" && $NF == "FAILED") failed[$2] = 1; next }
       /^---- .* ----$/ { lines = ($2 in failed) ? 40 : 0; delete failed[$2] }
       /^(failures|successes):$/ { lines = 0 }
       lines-- > 0 { print "  " $0 }
       END { for (test in failed) print "  " test " failed without output" }' "$log" "$log"
}

if [[ ${1:-} == --totals ]]; then
  if [[ -e $log ]]; then failures; totals; else echo "  tests: none ran"; fi
  exit
fi
mkdir -p target
rm -f "$log"
# The same cases of every property each time, so that a run says something about the code and not about luck; `make
# properties` draws others.
export PROPTEST_RNG_SEED="${PROPTEST_RNG_SEED:-8033}"
# Colours would hide the lines that are looked for; the pipe keeps cargo's exit status.
CARGO_TERM_COLOR=never "${CARGO:-cargo}" test --workspace --features queuescope/full --locked --no-fail-fast -- --show-output 2>&1 | tee "$log"
