#!/usr/bin/env bash
# Compiles the probe, and notes of which source it is: a test compares, so that nobody needs a compiler to use it.
# Always with the same compiler, and without the name of this folder, so that the same source gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")"
clang-14 -O2 -g "-ffile-prefix-map=$PWD=." -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-function -c probe.bpf.c -o "${1:-probe.bpf.o}"
llvm-strip-14 -g "${1:-probe.bpf.o}"
[[ $# -gt 0 ]] || sha256sum act.h flow.h kernel.h probe.bpf.c sketch.h probe.bpf.o >probe.sums
