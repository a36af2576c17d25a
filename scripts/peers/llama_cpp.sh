#!/usr/bin/env bash
# A teacher for a try: llama.cpp serves SmolLM2-135M-Instruct on this machine, and
# bench data sft asks it for 5 tasks. It is far too small a teacher: most, if not all, of what it
# writes is rejected, and the counts by filter are what is to be seen.
#
#   pip install 'llama-cpp-python[server]'      in a venv of its own; it compiles C++, some ten minutes on a core
#   PYTHON=venv/bin/python scripts/peers/llama_cpp.sh DATA [flags of bench data sft]
#
# DATA is a folder of bench data build with tasks of q1 for training. The model is
# that of scripts/assets.sh, or MODEL (a GGUF file); TOKENIZER is the student's, by
# default the model's. PORT is 18124 unless set.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
assets=${MEMOPD_ASSETS:-$root/.setup/assets}
python=${PYTHON:-python3}
port=${PORT:-18124}
data=${1:?usage: scripts/peers/llama_cpp.sh DATA [flags of bench data sft]}
shift
shopt -s nullglob
found=("$assets"/SmolLM2-135M-Instruct/*.gguf)
model=${MODEL:-${found[0]:-}}
if [[ ! -f $model ]]; then
  echo "no GGUF model: run scripts/assets.sh, or set MODEL" >&2
  exit 1
fi
"$python" -c 'import llama_cpp.server' || { echo "$python lacks llama-cpp-python[server]: pip install it, or set PYTHON" >&2; exit 1; }

work=$(mktemp -d)
"$python" -m llama_cpp.server --model "$model" --model_alias smollm2 --host 127.0.0.1 --port "$port" \
  --n_ctx 4096 --n_threads 1 --n_threads_batch 1 >"$work/server.log" 2>&1 &
server=$!
# shellcheck disable=SC2317 # the trap calls it
stop() {
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  rm -rf "$work"
}
trap stop EXIT

# bench itself waits for a server that does not answer yet, but not for one that died.
for _ in $(seq 120); do
  if ! kill -0 "$server" 2>/dev/null; then
    cat "$work/server.log" >&2
    exit 1
  fi
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then break; fi
  sleep 0.5
done

"$root/scripts/bench" data sft --server "http://127.0.0.1:$port" --server-kind openai --tokenizer "${TOKENIZER:-$model}" \
  --data "$data" --horizon q1 --tasks 5 --attempts 1 --requests 1 --seed 1 \
  --response-tokens 64 --document-words 40 --turns-per-question 3 --out "$data/sft/llama-cpp.jsonl" "$@"
