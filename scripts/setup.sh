#!/usr/bin/env bash
# Installs what is missing: a C compiler (for zstd and liblzma), a new enough Rust and, with `test`, rustfmt, clippy, a C++ compiler
# (for the fuzz targets), mdBook (for the book) and Python with venv (for the Python package); without the last two, their checks are skipped.
# What is there is left alone. With NO_INSTALL=1 nothing is installed; what to install is said instead.
set -euo pipefail
cd "$(dirname "$0")/.."

need_rust=$(awk -F'"' '/^rust-version/ { print $2; exit }' Cargo.toml)
wanted=${1:-build}

main() {
  command -v cc >/dev/null || install_packages 'a C compiler' build-essential
  if ! new_enough_rust; then
    install_rust
    hash -r
    new_enough_rust || fail "Rust was installed, but 'cargo' is still $(rust_version); look at 'rustup show'."
  fi
  if [[ $wanted == test ]]; then
    cargo fmt --version >/dev/null 2>&1 || add_component rustfmt
    command -v c++ >/dev/null || install_packages 'a C++ compiler' build-essential
    cargo clippy --version >/dev/null 2>&1 || add_component clippy
    scripts/book.sh --installed || install_mdbook
    scripts/python.sh --installed || install_python
  fi
}

rust_version() {
  { cargo --version 2>/dev/null || true; } | awk '{ print $2 }'
}

new_enough_rust() {
  local have
  have=$(rust_version)
  [[ -n $have && $(printf '%s\n' "$need_rust" "$have" | sort -V | head -n1) == "$need_rust" ]]
}

install_rust() {
  local have
  have=$(rust_version)
  say "Rust $need_rust or newer is missing${have:+ (there is $have)}."
  allowed || fail "Install it from https://rustup.rs, then run this again."
  if ! command -v rustup >/dev/null; then
    if [[ -n $(apt-cache policy rustup 2>/dev/null | grep -v '(none)' | grep Candidate) ]] && root true 2>/dev/null; then
      install_packages 'rustup' rustup
    else
      command -v curl >/dev/null || install_packages 'curl' curl ca-certificates
      say "Installing Rust for this user by https://sh.rustup.rs"
      curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
        sh -s -- -y --no-modify-path --profile minimal --component rustfmt,clippy ||
        fail "Rust could not be installed. Install Rust $need_rust or newer from https://rustup.rs, then run this again."
      return
    fi
  fi
  rustup toolchain install stable --profile minimal --component rustfmt,clippy ||
    fail "rustup could not install the stable toolchain. Install Rust $need_rust or newer, then run this again."
  rustup default stable
}

add_component() {
  say "$1 is missing."
  allowed && command -v rustup >/dev/null && rustup component add "$1" && return
  fail "Install it by 'rustup component add $1' (or your system's package), then run this again."
}

# That it cannot be had is no reason to end: only the book is not built then.
install_mdbook() {
  say "mdBook is missing; installing it into target/tools"
  if allowed; then scripts/book.sh --install || say "mdBook could not be installed; the book will not be built."; else
    say "Install it by 'scripts/book.sh --install'; without it the book is not built."
  fi
}

# Without it, only the Python package is not tested.
install_python() {
  if allowed && command -v apt-get >/dev/null && root true 2>/dev/null; then
    # In a subshell, which a failure ends.
    (install_packages 'Python with venv' python3-venv) && scripts/python.sh --installed && return
  fi
  say "Python 3.11 with venv is missing; the Python package will not be tested."
}

install_packages() {
  local what=$1
  shift
  say "$what is missing; it is in the packages: $*"
  allowed && command -v apt-get >/dev/null && root true 2>/dev/null ||
    fail "Install it, on Debian by 'sudo apt-get install $*', then run this again."
  root apt-get update -q || say "The list of packages could not be brought up to date; trying the one that is there."
  root env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@" ||
    fail "Install $*, then run this again."
}

# As root, without asking for a password.
root() {
  if [[ $(id -u) == 0 ]]; then "$@"; else sudo -n "$@"; fi
}

allowed() {
  [[ -z ${NO_INSTALL:-} ]]
}

say() {
  echo "setup: $*" >&2
}

fail() {
  say "$*"
  exit 2
}

main
