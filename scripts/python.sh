#!/usr/bin/env bash
# Builds the Python package, installs it into an environment of its own in target, and checks it: pytest with the examples of its
# documentation, mypy, stubtest, and pyright if it can be had. Output is also in target/python.log.
#
# It needs Python 3.11 with venv, and pip's access to PyPI; without them it prints a line `skipped: ...` and passes. The wheel has the profile
# of tests: `maturin build --release` in python builds one to publish. With --installed, the exit status alone states whether there is such
# a Python.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}
log=$root/target/python.log
environment=$root/target/python-package
# The oldest Python that the package supports comes first: a wheel for it must work with later ones.
pythons=(python3.11 python3.12 python3.13 python3.14 python3)
needed=('maturin==1.16.*' 'pytest>=8' 'mypy>=1.18')
# Libraries that take results over. Their tests are skipped without them.
optional=(matplotlib numpy polars pyarrow pandas tqdm basedpyright)

main() {
  mkdir -p target
  : >"$log"
  local python
  python=$(find_python) || { skip 'Python 3.11 with venv is not installed'; exit 0; }
  if ! install_tools "$python"; then
    skip 'maturin is not installed, and pip cannot install it'
    exit 0
  fi
  check 2>&1 | tee -a "$log"
}

# The first Python that is new enough and can make environments.
find_python() {
  local python
  for python in "${pythons[@]}"; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$python"
      return
    fi
  done
  return 1
}

install_tools() {
  local pip=$environment/bin/pip
  [[ -x $pip ]] && "$environment/bin/python" -c 'import maturin, pytest, mypy' 2>/dev/null && return
  [[ -z ${NO_INSTALL:-} ]] || return 1
  "$1" -m venv --clear "$environment" && "$pip" install -q --disable-pip-version-check "${needed[@]}" || return 1
  for package in "${optional[@]}"; do
    "$pip" install -q --disable-pip-version-check "$package" || echo "python: $package could not be installed" >&2
  done
}

# Options of cargo: dependencies have the profile of the tests, and are shared with them. Crates that are compiled for the wheel alone, because their
# features differ, are not optimised.
profile() {
  local crate
  for crate in queuescope queuescope-{analysis,archive,ingest,log,meter,p4,python,recording,report,run,scenario,sim,table}; do
    printf -- '--config\nprofile.dev.package.%s.opt-level=0\n' "$crate"
  done
}

check() {
  local bin=$environment/bin wheels=$root/target/wheels options
  mapfile -t options < <(profile)
  rm -rf "$wheels"
  export CARGO_TARGET_DIR=$target
  (cd python && "$bin/maturin" build --profile dev --locked "${options[@]}" --interpreter "$bin/python" --out "$wheels")
  "$bin/pip" install -q --disable-pip-version-check --force-reinstall --no-deps "$wheels"/queuescope-*.whl
  # Elsewhere, so that the installed package is tested and not the sources.
  cd "$(mktemp -d)"
  "$bin/pytest" -q -p no:cacheprovider -c "$root/python/pyproject.toml" --rootdir "$root/python" "$root/python/tests"
  "$bin/mypy" --config-file "$root/python/pyproject.toml" -p queuescope
  "$bin/python" -m mypy.stubtest queuescope._queuescope --allowlist "$root/python/stubtest.txt" --ignore-unused-allowlist
  if [[ -x $bin/basedpyright ]]; then
    "$bin/basedpyright" --project "$root/python/pyproject.toml" --pythonpath "$bin/python"
  else
    echo 'skipped: python: basedpyright is not installed'
  fi
}

skip() {
  echo "skipped: python: $1" | tee -a "$log"
}

if [[ ${1:-} == --installed ]]; then find_python >/dev/null; else main; fi
