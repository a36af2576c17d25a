# shellcheck shell=bash
# What scripts/bench and scripts/test share. Needs $root.

# locked COMMAND...: one at a time in this checkout, so that two terminals do
# not install or build the same thing at once.
locked() {
  mkdir -p "$root/.setup"
  (
    if command -v flock >/dev/null; then flock 9; fi
    "$@" 9>&-
  ) 9>"$root/.setup/lock"
}

# load_env: set-up, then its environment.
load_env() {
  locked "$root/scripts/setup.sh" >&2 || exit 1
  # shellcheck source=/dev/null
  . "$root/.setup/env.sh"
}

# stale BINARY: something that goes into it is newer: any file or folder (one
# that lost a file has a new date) but what git ignores and docs, the set-up,
# or the commit that is recorded in it.
stale() {
  local newer
  [[ -x $1 && ! $root/.setup/env.sh -nt $1 && ! $root/.git/logs/HEAD -nt $1 ]] || return 0
  newer=$(find "$root" -mindepth 1 \
    \( -path "$root/.*" -o -path "$root/bin" -o -path "$root/runs" -o -path "$root/data" -o -path "$root/docs" \) -prune \
    -o -newer "$1" -print -quit)
  [[ -n $newer ]]
}

# build_bench: bin/bench, when stale. A running one keeps its own copy.
build_bench() {
  local binary=$root/bin/bench vcs=()
  if ! stale "$binary"; then return; fi
  echo "building bin/bench (the C++ part takes a while the first time)" >&2
  mkdir -p "$root/bin"
  # A checkout that git refuses to read must not stop the build.
  git -C "$root" rev-parse HEAD >/dev/null 2>&1 || vcs=(-buildvcs=false)
  touch "$root/.setup/started"
  (cd "$root" && go build "${vcs[@]}" -o bin/bench.new ./bench) >&2
  touch -r "$root/.setup/started" "$binary.new" # what changed during the build is newer
  mv "$binary.new" "$binary"
}
