#!/usr/bin/env bash
# Finds Go, a C++ compiler and libtorch, and writes .setup/env.sh, which the
# other scripts source before they call go. Quick when nothing has changed.
# It prints on stderr alone, so that a caller's stdout can be piped.
#
# libtorch is taken from, in this order:
#   1. $LIBTORCH: a folder with include/ and lib/ (a libtorch archive, or the
#      torch folder of a Python installation);
#   2. the torch that python3 imports (its CUDA build brings CUDA);
#   3. Debian's and Ubuntu's libtorch-dev with libopenblas0-pthread, installed
#      with apt where that needs no password. A missing compiler comes along.
# What cannot be installed is answered with the one line that does it, exit 1.
#
# MEMOPD_SYSROOT is for the tests: a folder that stands for / in the search for
# the system's libtorch.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
state=$root/.setup
sysroot=${MEMOPD_SYSROOT:-}
watched=() # files and folders whose change makes the result stale

say() { printf 'setup: %s\n' "$*" >&2; }

# fail REASON LINE: what is missing, and the one line that brings it.
fail() {
  say "$1"
  printf '  %s\n' "$2" >&2
  exit 1
}

# shellcheck source=scripts/lib/toolchain.sh
. "$root/scripts/lib/toolchain.sh"
# shellcheck source=scripts/lib/libtorch.sh
. "$root/scripts/lib/libtorch.sh"
# shellcheck source=scripts/lib/blas.sh
. "$root/scripts/lib/blas.sh"
# shellcheck source=scripts/lib/apt.sh
. "$root/scripts/lib/apt.sh"

# fingerprint FILE...: everything the result depends on, without running any
# of the tools. A file that vanished leaves its line out.
fingerprint() {
  printf '%s\n' "${LIBTORCH-}" "${CC-}" "${CXX-}" "${PYTHONPATH-}" "${VIRTUAL_ENV-}" \
    "${PYENV_VERSION-}" "$sysroot" "$(command -v go)" "$(command -v python3)" "$(command -v g++)" "$(processor)"
  stat -L -c '%n %s %Y' "$root/go.mod" "$root"/scripts/setup.sh "$root"/scripts/lib/*.sh "$@" 2>/dev/null || true
}

# fresh: nothing has changed since the last full run.
fresh() {
  [[ -f $state/env.sh && -f $state/stamp && -f $state/watched ]] || return 1
  mapfile -t watched <"$state/watched"
  [[ $(fingerprint "${watched[@]}") == "$(<"$state/stamp")" ]]
}

# write_env: .setup/env.sh, kept as it is when its content would not change,
# since its date tells scripts/bench to build anew.
write_env() {
  {
    echo "# Written by scripts/setup.sh: $libtorch_note"
    # shellcheck disable=SC2016 # for the shell that sources it to expand
    if [[ -n $go_folder ]]; then printf 'export PATH=%q:"$PATH"\n' "$go_folder"; fi
    libtorch_exports
    blas_exports
  } >"$state/env.sh.new"
  if cmp -s "$state/env.sh.new" "$state/env.sh"; then
    rm "$state/env.sh.new"
  else
    mv "$state/env.sh.new" "$state/env.sh"
  fi
}

main() {
  if fresh; then return; fi
  mkdir -p "$state"
  rm -f "$state/stamp"
  watched=()
  find_go
  if [[ -z ${LIBTORCH-} ]]; then find_python_torch; fi
  find_packages
  find_libtorch
  write_env
  printf '%s\n' "${watched[@]}" >"$state/watched"
  fingerprint "${watched[@]}" >"$state/stamp"
  say "$libtorch_note"
}

main "$@"
