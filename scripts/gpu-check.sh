#!/usr/bin/env bash
# Checks this project on a CUDA device, in at most 8 minutes on one H200: parity
# with the CPU, RCE in f32 and bf16 on random weights of Qwen2.5-3B, tokens a second
# of decoding and of updates and their share of what bf16 products reach, peak
# memory, and a few steps of training in f32 and bf16.
#
#   scripts/gpu-check.sh [FOLDER]         builds where it runs, which takes Go there
#   scripts/gpu-check.sh --build          builds .setup/gpu/bench.gz, to be carried to
#                                         a machine without Go, against the same libtorch:
#                                         $LIBTORCH, or the torch that python3 imports
#   scripts/gpu-check.sh --run [FOLDER]   runs what --build made
#   scripts/gpu-check.sh --dry [FOLDER]   the same steps on the CPU with a small model
#
# FOLDER (runs/gpu-check) gets check.json, check.txt, memory.csv, train-*.log and
# summary.json.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
# shellcheck source=scripts/lib/build.sh
. "$root/scripts/lib/build.sh"
# For libtorch.sh, as in setup.sh.
# shellcheck disable=SC2034
state=$root/.setup sysroot="" oldest_libtorch=""
# shellcheck source=scripts/lib/libtorch.sh
. "$root/scripts/lib/libtorch.sh"
carried=$root/.setup/gpu

fail() {
  printf 'gpu-check: %s\n' "$*" >&2
  exit 1
}

# torch_folder: $LIBTORCH, else the torch that python3 imports.
torch_folder() {
  watched=()
  if [[ -z ${LIBTORCH-} ]]; then find_python_torch; fi
  echo "${LIBTORCH:-$python_torch}"
}

# build: a stripped program and the libtorch that it is for.
build() {
  local torch
  load_env
  torch=$(torch_folder)
  [[ -n $torch ]] || fail "no torch to build against: pip install torch, or set LIBTORCH"
  mkdir -p "$carried"
  (cd "$root" && go build -buildvcs=false -ldflags='-s -w' -o "$carried/bench" ./bench)
  gzip -9 -f "$carried/bench"
  header_version "$torch" >"$carried/libtorch"
  echo "gpu-check: $carried/bench.gz for libtorch $(<"$carried/libtorch"), $(du -h "$carried/bench.gz" | cut -f 1)"
}

# unpack: the carried program, if the libtorch here is the one that it is for.
unpack() {
  local torch version
  [[ -f $carried/bench.gz ]] || fail "no Go here and no $carried/bench.gz: run scripts/gpu-check.sh --build where Go is"
  torch=$(torch_folder)
  [[ -n $torch ]] || fail "python3 has no torch here: pip install torch==$(<"$carried/libtorch")"
  version=$(header_version "$torch")
  [[ $version == "$(<"$carried/libtorch")" ]] ||
    fail "bench.gz is for libtorch $(<"$carried/libtorch"), here is $version: build against that one, or pip install torch==$(<"$carried/libtorch")"
  gzip -dc "$carried/bench.gz" >"$out/bench"
  chmod +x "$out/bench"
  bench=$out/bench
  export LD_LIBRARY_PATH=$torch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# watch_memory: the device's memory in use, in MiB, twice a second.
watch_memory() {
  command -v nvidia-smi >/dev/null || return 0
  nvidia-smi --query-gpu=name,memory.used,memory.total --format=csv,noheader,nounits -lms 500 >"$out/memory.csv" &
  watcher=$!
  trap 'kill "$watcher" 2>/dev/null || true' EXIT
}

# checks DEVICE SHAPE_FLAG...: all parts. One that fails does not end the others.
checks() {
  local device=$1 dtype
  shift
  status=0
  timeout 360 "$bench" check-device --device "$device" --out "$out/check.json" "$@" 2>"$out/check.log" | tee "$out/check.txt" || status=1
  for dtype in f32 bf16; do
    rm -rf "$out/run-$dtype"
    if timeout 60 "$bench" train --preset smoke --steps 2 --checkpoint-every 2 --device "$device" --dtype "$dtype" --critic decoder \
      --gradient-checkpointing --offload-frozen --logits-per-chunk 64 --data "$out/data" --out "$out/run-$dtype" >"$out/train-$dtype.log" 2>&1; then
      echo "training in $dtype: $(tail -n 3 "$out/run-$dtype"/smoke/memopd/seed-*/metrics.jsonl | grep -o '"rce/p99[^,]*' | tail -n 2 | tr '\n' ' ')"
    else
      echo "training in $dtype FAILED, see $out/train-$dtype.log"
      status=1
    fi
  done
}

# summary: what everything came to, as JSON and on the terminal.
summary() {
  local peak=null name=null
  if [[ -s $out/memory.csv ]]; then
    peak=$(awk -F ', ' '$2 > p { p = $2 } END { print p + 0 }' "$out/memory.csv")
    name="\"$(head -n 1 "$out/memory.csv" | cut -d , -f 1)\""
  fi
  printf '{"device": %s, "peak_memory_mib": %s, "seconds": %d, "ok": %s}\n' \
    "$name" "$peak" "$SECONDS" "$([[ $status == 0 ]] && echo true || echo false)" | tee "$out/summary.json"
}

mode=all
case ${1-} in
  --build | --run | --dry)
    mode=${1#--}
    shift
    ;;
  -*) fail "unknown option $1; see the head of $0" ;;
esac
out=$(mkdir -p "${1:-$root/runs/gpu-check}" && cd "${1:-$root/runs/gpu-check}" && pwd)
bench=$root/bin/bench

if [[ $mode == build ]]; then
  build
  exit
fi
if [[ $mode == run ]] || ! command -v go >/dev/null; then
  unpack
else
  load_env
  locked build_bench
fi
if [[ $mode == dry ]]; then
  checks cpu --shape mini/student --prefix-tokens 20 --calls 3 --response-tokens 12 --observation-tokens 15 \
    --rows 1,3 --context-tokens 40 --new-tokens 4 --repeats 1 --logits-per-chunk 16
else
  watch_memory
  checks cuda
fi
summary
exit "$status"
