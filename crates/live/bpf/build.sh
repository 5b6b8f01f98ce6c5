#!/usr/bin/env bash
# Compiles the programs, and notes of which source they are: a test compares, so that nobody needs a compiler to use them.
# CLANG and LLVM_STRIP name other programs than those of version 14.
# Always with the same compiler, and without the name of this folder, so that the same source gives the same bytes.
set -euo pipefail
cd "$(dirname "$0")"
to=${1:-.}
for source in *.bpf.c; do
	name=${source%.c}
	"${CLANG:-clang-14}" -O2 -g "-ffile-prefix-map=$PWD=." -target bpf -mcpu=v3 -Wall -Wextra -Werror -Wno-unused-function \
		-c "$source" -o "$to/$name.o"
	"${LLVM_STRIP:-llvm-strip-14}" -g "$to/$name.o"
done
[[ $to != . ]] || sha256sum -- *.c *.h *.o >probe.sums
