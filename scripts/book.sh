#!/usr/bin/env bash
# Builds the book in docs into target/book, and checks its links and those of all other Markdown. Without mdBook the sources are
# checked only, and a line `skipped: …` says so.
#
# --installed: whether a fitting mdBook is there. --install: builds one into target/tools, once (some 3.5 minutes of CPU time).
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
log=target/book.log
tools=target/tools

# Any mdBook 0.5 will do: one that the system has, or ours.
mdbook() {
  local program
  for program in "$tools/bin/mdbook" "$(command -v mdbook || true)"; do
    if [[ -x $program && $("$program" --version) == "mdbook v0.5."* ]]; then
      echo "$program"
      return
    fi
  done
  return 1
}

case ${1:-} in
  --installed) mdbook >/dev/null ;;
  --install)
    "${CARGO:-cargo}" install mdbook --version "$version" --locked --no-default-features --features search --root "$tools"
    ;;
  *)
    mkdir -p target
    rm -f "$log"
    if program=$(mdbook); then
      rm -rf target/book
      "$program" build 2>&1 | tee "$log"
      ! grep -qE '(WARN|ERROR)' "$log" || { echo "book: mdBook warns, see above" >&2; exit 1; }
      "${CARGO:-cargo}" xtask book target/book
    else
      "${CARGO:-cargo}" xtask book
      echo "skipped: book: mdbook is not installed" | tee "$log"
    fi
    ;;
esac
