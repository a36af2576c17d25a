#!/bin/sh
# Microseconds an operator from Go beside PyTorch's Python front end, one thread each, in alternating rounds: medians and ratios (below 1: Go
# is quicker). Both should stand on one libtorch, so that only the front ends differ: build the Go side against the wheel of PYTHON as in
# torch/internal/ctorch's package comment. It prints the versions.
#
#   PYTHON=python3 scripts/peers/torch_ops.sh [rounds, default 5] [seconds a case, default 0.2]
set -eu
cd "$(dirname "$0")/../.."
rounds=${1:-5} seconds=${2:-0.2} python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

go test -c -o "$work/torch.test" ./torch
echo "Go: libtorch $("$work/torch.test" -test.run 'TestRuntime$' -test.v | sed -n 's/.*libtorch version: //p' | head -1)" \
     "| Python: torch $("$python" -c 'import torch; print(torch.__version__)') | rounds: $rounds"
for _ in $(seq "$rounds"); do
  "$python" scripts/peers/torch_ops.py "$seconds" | sed 's/^/python\t/' >> "$work/all"
  "$work/torch.test" -test.run '^$' -test.bench BenchmarkOps -test.benchtime "${seconds}s" |
    awk '/^BenchmarkOps/ {
      split($1, path, "/"); name = path[2]; sub(/-[0-9]+$/, "", name)
      for (i = 3; i < NF; i += 2) { if ($(i+1) == "µs/op") clock = $i; if ($(i+1) == "cpu-µs/op") cpu = $i }
      printf "go\t%s\t%s\t%s\n", name, clock, cpu }' >> "$work/all"
done

awk -F '\t' '
  function median(key,   n, i, j, v, t) {
    n = count[key]
    for (i = 1; i <= n; i++) v[i] = sample[key, i]
    for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j-1] > v[j]; j--) { t = v[j]; v[j] = v[j-1]; v[j-1] = t }
    return n % 2 ? v[(n+1)/2] : (v[n/2] + v[n/2+1]) / 2
  }
  function add(key, x) { sample[key, ++count[key]] = x + 0 }
  { add($1 " " $2 " clock", $3); add($1 " " $2 " cpu", $4); if (!($2 in seen)) { seen[$2] = 1; names[++n] = $2 } }
  END {
    printf "%-26s %12s %12s %7s   %12s %12s %7s\n", "operator", "Go µs", "Python µs", "ratio", "Go CPU µs", "Py CPU µs", "ratio"
    for (i = 1; i <= n; i++) {
      name = names[i]
      if (!count["go " name " clock"] || !count["python " name " clock"]) { print name ": measured on one side only"; failed = 1; continue }
      a = median("go " name " clock"); b = median("python " name " clock"); c = median("go " name " cpu"); d = median("python " name " cpu")
      printf "%-26s %12.2f %12.2f %7.2f   %12.2f %12.2f %7.2f\n", name, a, b, a/b, c, d, c/d
      clocks += log(a/b); cpus += log(c/d)
    }
    printf "%-26s %12s %12s %7.2f   %12s %12s %7.2f\n", "geometric mean", "", "", exp(clocks/n), "", "", exp(cpus/n)
    exit failed
  }' "$work/all"
