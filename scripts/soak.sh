#!/usr/bin/env bash
# Runs tests again and again while every processor is kept busy: scripts/soak.sh TIMES PACKAGE TEST [FILTER...]
#
# TEST is a test binary of the package: `it`, with FILTERs such as `qdisc::`, or one that is alone in its process, such as `memory`. Prints each failure with its output, then how many runs failed; the
# exit status is 1 if any did. A run that leaves files in its temporary folder fails too. LOAD=3 sets the busy loops per
# processor.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ $# -lt 3 || ! $1 =~ ^[1-9][0-9]*$ ]]; then
  echo "usage: scripts/soak.sh TIMES PACKAGE TEST [FILTER...]" >&2
  exit 2
fi
times=$1 package=$2 test=$3
shift 3

built=$("${CARGO:-cargo}" test --locked -p "$package" --test "$test" --no-run --message-format=short 2>&1) || { echo "$built" >&2; exit 2; }
binary=$(sed -n 's/.*Executable .*(\(.*\))$/\1/p' <<<"$built")
# Tests run in their package's folder, as cargo runs them.
directory=$("${CARGO:-cargo}" metadata --no-deps --format-version 1 --locked |
  python3 -c 'import json, os, sys
for package in json.load(sys.stdin)["packages"]:
    if package["name"] == sys.argv[1]:
        print(os.path.dirname(package["manifest_path"]))' "$package")

# A copy: who compiles meanwhile changes nothing. Others than root may look for what tests put into the temporary folder.
place=$(mktemp -d) loops=()
trap 'kill "${loops[@]}" 2>/dev/null || true; rm -rf "$place"' EXIT
chmod 755 "$place"
mkdir "$place/tmp"
cp "$binary" "$place/"
binary=$place/${binary##*/}

for _ in $(seq $((${LOAD:-3} * $(nproc)))); do
  while :; do :; done &
  loops+=($!)
done

failed=0
for run in $(seq "$times"); do
  ok=true
  (cd "$directory" && TMPDIR=$place/tmp CARGO_MANIFEST_DIR=$directory "$binary" "$@") >"$place/output" 2>&1 || ok=false
  left=$(ls -A "$place/tmp")
  if [[ $ok == false || -n $left ]]; then
    failed=$((failed + 1))
    printf '== %s, run %d failed%s\n' "$test" "$run" "${left:+ and left $left}"
    cat "$place/output"
    rm -rf "$place"/tmp/*
  fi
done
printf '%s: %d runs, %d failed in %d s\n' "$test" "$times" "$failed" "$SECONDS"
[[ $failed == 0 ]]
