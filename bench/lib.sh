# What the measurements share; sourced, not run.

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
scratch=${BENCH_DIR:-target/bench}
mkdir -p "$scratch"

fail() {
  echo "$(basename "$0"): $*" >&2
  exit 2
}

need() {
  command -v "$1" >/dev/null || fail "$1 is missing; on Debian it is in the package $2"
}

build() {
  cargo build --release --locked --quiet -p queuescope-cli -p xtask
  queuescope=${CARGO_TARGET_DIR:-target}/release/queuescope
  xtask=${CARGO_TARGET_DIR:-target}/release/xtask
}

# unpacked CAPTURE: its bytes as a plain pcap file, on standard output.
unpacked() {
  case $1 in
    *.xz) xz -dc "$1" ;;
    *.zst) zstd -dcq "$1" ;;
    *.gz) gzip -dc "$1" ;;
    *) cat "$1" ;;
  esac
}

machine() {
  echo "machine: $(awk -F': ' '/^model name/ { print $2; exit }' /proc/cpuinfo), $(nproc) cores, $(uname -sr)"
  echo "commit: $(git describe --always --dirty 2>/dev/null || echo unknown)"
}
