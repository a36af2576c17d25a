#!/bin/sh
# Seconds of generation, prefill and an update on a SmolLM2-135M, ours beside transformers', one thread each, in alternating rounds:
# medians of CPU time, and how many times as fast ours is. Both should stand on one libtorch: build the Go side against the wheel of
# PYTHON as in torch/internal/ctorch's package comment. MEMOPD_LM names the model, a checkpoint folder or a .gguf; without it the
# weights are random.
#
#   PYTHON=python3 [MEMOPD_LM=model.gguf] scripts/peers/lm_speed.sh [rounds, default 3] [pattern of cases]
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-3} pattern=${2:-.} python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 MEMOPD_LM_SPEED=1

go test -c -o "$work/model.test" ./model
MEMOPD_LM_OUT=$work/lm "$work/model.test" -test.run 'TestExportLM$'
export MEMOPD_LM="$work/lm"
for _ in $(seq "$rounds"); do
  "$python" scripts/peers/lm_speed.py "$work/lm" "$pattern" 2>/dev/null | sed 's/^/python\t/' >> "$work/all"
  "$work/model.test" -test.run '^$' -test.bench "BenchmarkLM/$pattern" -test.benchtime 1x |
    awk '/^BenchmarkLM/ {
      split($1, path, "/"); name = path[2]; sub(/-[0-9]+$/, "", name)
      for (i = 3; i < NF; i += 2) { if ($(i+1) == "clock-s") clock = $i; if ($(i+1) == "cpu-s") cpu = $i }
      printf "go\t%s\t%s\t%s\n", name, clock, cpu }' >> "$work/all"
done

# A decode step is the time of 33 new tokens without that of the first, by 32.
awk -F '\t' '
  function median(key,   n, i, j, v, t) {
    n = count[key]
    for (i = 1; i <= n; i++) v[i] = sample[key, i]
    for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j-1] > v[j]; j--) { t = v[j]; v[j] = v[j-1]; v[j-1] = t }
    return n % 2 ? v[(n+1)/2] : (v[n/2] + v[n/2+1]) / 2
  }
  function line(name, ours, theirs) { printf "%-48s %10.4f %14.4f %7.2f\n", name, ours, theirs, theirs / ours }
  { key = $1 " " $2; sample[key, ++count[key]] = $4 + 0; if (!($2 in seen)) { seen[$2] = 1; names[++n] = $2 } }
  END {
    printf "%-48s %10s %14s %7s\n", "case", "Go CPU s", "transformers", "times"
    for (i = 1; i <= n; i++) {
      split(names[i], part, "/"); name = part[1]
      peer = name == "update_packed" ? "update_calls" : names[i]
      if (count["go " name] && count["python " peer]) line(names[i], median("go " name), median("python " peer))
      if (names[i] ~ /new33\//) {
        first = names[i]; sub(/new33/, "new1", first); own = name; sub(/new33/, "new1", own)
        line("  a decode step", (median("go " name) - median("go " own)) / 32, (median("python " names[i]) - median("python " first)) / 32)
      }
    }
  }' "$work/all"
