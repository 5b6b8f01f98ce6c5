#!/usr/bin/env bash
# Builds and tests the crate in crates/sim/tests/extension, which is outside the workspace and depends on its crates by path.
# It takes the workspace's versions of all dependencies, so that nothing is downloaded that the workspace does not need.
set -euo pipefail
cd "$(dirname "$0")/.."

crate=crates/sim/tests/extension
cp Cargo.lock "$crate/Cargo.lock"
CARGO_TARGET_DIR=$PWD/target/extension "${CARGO:-cargo}" test --manifest-path "$crate/Cargo.toml"
