"""Seconds of generation, prefill and an update through transformers: the same cases, under the same names, as BenchmarkLM in
model/lm_speed_test.go. lm_speed.sh compares the two.

    python3 scripts/peers/lm_speed.py CHECKPOINT [pattern]

Prints a line a case: name, seconds by the clock, seconds of CPU time. Before all, one short generation warms up; then each case runs once,
the update twice.
"""
import re
import sys
import time

import torch
import transformers


def ids(rows, tokens):
    return torch.randint(20, 40000, (rows, tokens), generator=torch.Generator().manual_seed(1))


def generate(model, rows, context, tokens, cache):
    model.generate(ids(rows, context), attention_mask=torch.ones(rows, context, dtype=torch.int64), do_sample=False, min_new_tokens=tokens,
                   max_new_tokens=tokens, cache_implementation=cache, pad_token_id=0, eos_token_id=None, disable_compile=True)


def prefill(model, rows, tokens):
    with torch.no_grad():
        model(input_ids=ids(rows, tokens), use_cache=True, logits_to_keep=1)


def update(model, rows, length, output):
    """Forward, cross entropy of the last `output` tokens of each row, backward; the head sees those alone."""
    x = ids(rows, length)
    hidden = model.model(input_ids=x, use_cache=False).last_hidden_state[:, length - output - 1:-1]
    logits = model.lm_head(hidden).flatten(0, 1)
    torch.nn.functional.cross_entropy(logits, x[:, length - output:].flatten()).backward()
    model.zero_grad(set_to_none=True)


def cases(model):
    for rows, context in (1, 32), (16, 32), (64, 32), (16, 256):
        for tokens in 1, 33:
            for cache in "dynamic", "static":
                name = f"generate_rows{rows}_context{context}_new{tokens}"
                yield f"{name}/{cache}", lambda r=rows, c=context, t=tokens, k=cache: generate(model, r, c, t, k)
    yield "prefill_2x512", lambda: prefill(model, 2, 512)
    for name in "update_calls_first", "update_calls":
        yield name, lambda: update(model, 10, 200, 40)


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
    pattern = re.compile(sys.argv[2] if len(sys.argv) > 2 else "")
    generate(model, 1, 32, 2, "dynamic")
    for name, run in cases(model):
        if not pattern.search(name):
            continue
        start, cpu = time.perf_counter(), time.process_time()
        run()
        print(f"{name}\t{time.perf_counter() - start:.4f}\t{time.process_time() - cpu:.4f}", flush=True)


if __name__ == "__main__":
    main()
