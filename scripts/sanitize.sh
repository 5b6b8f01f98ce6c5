#!/bin/bash
# The log's tests, in which all of its unsafe code runs, under the address and the thread sanitizer of a nightly toolchain.
set -euo pipefail
cd "$(dirname "$0")/.."

host=$(rustc +nightly -vV | sed -n 's/^host: //p')
run() {
  cargo +nightly test -p queuescope-log --target "$host" --target-dir target/sanitize "$@"
}

RUSTFLAGS=-Zsanitizer=address run --lib
RUSTFLAGS=-Zsanitizer=address run --test it -- log:: queries:: triggers:: stress:: release:: release_stress::

# The standard library is not instrumented, so the thread sanitizer does not see what that hands from thread to thread, and
# reports it. What counts is whether it reports records that are read while they are written.
reports=$(mktemp)
trap 'rm -f "$reports"' EXIT
TSAN_OPTIONS=exitcode=0 RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" run --test it -- stress:: release_stress:: 2>&1 |
  tee "$reports" | grep "^test " || true
if [ "$(grep -c "^test result: ok" "$reports")" = 1 ] && ! grep -q "Rows>::write" "$reports"; then
  echo "sanitize: records are not read while they are written"
else
  cat "$reports"
  exit 1
fi
