#!/usr/bin/env python3
"""Holds our decoder against Hugging Face's transformers, both ways.

    transformers_logits.py make DIR    write small random checkpoints with transformers, and its logits on fixed ids
    transformers_logits.py check DIR   load a checkpoint that this project wrote and compare logits
    transformers_logits.py gguf FILE   print what transformers makes of a GGUF chat model: logits and greedy continuations

`make` writes one folder a case under DIR: the checkpoint and logits.json, {"rows": [[id, ...], ...], "logits": [[[float, ...], ...], ...]}
(row, token, vocabulary), where the logits are those of a row's last tokens, as many as there are. model/testdata/transformers was made by it; TestTransformersLogits in model reads it.

`check` reads the same logits.json from DIR, beside the checkpoint, and prints the largest difference; with encodings.json,
{"texts": [...], "ids": [[...], ...]}, it compares the tokenizer too. It fails above 1e-4 or on another encoding. To make such a folder:

    MEMOPD_EXPORT=/tmp/export go test ./model -run TestExport

`gguf` prints {"rows": [{"ids": [id, ...], "at": [{"place", "top_ids", "top_logits", "columns", "logits"}, ...]}],
"greedy": [{"prompt": text, "context": [id, ...], "output": [id, ...]}]}: at some places of each row the largest logits and those of evenly
spread ids. model/testdata/smollm2.json was made by it of SmolLM2-135M-Instruct.Q4_1.gguf (scripts/assets.sh).

Needs torch, transformers and tokenizers; `gguf` also accelerate and gguf.
"""

import argparse
import json
import pathlib
import sys

import tokenizers
import torch
import transformers

TOLERANCE = 1e-4
TOKENS = 9  # whose logits are kept of a long row
COMMON = dict(vocab_size=40, hidden_size=16, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4, bos_token_id=2,
              eos_token_id=[3, 5], pad_token_id=0, max_position_embeddings=512)
LLAMA, QWEN2, QWEN3 = transformers.LlamaConfig, transformers.Qwen2Config, transformers.Qwen3Config
CASES = {
    "llama_tied": (LLAMA, dict(num_key_value_heads=4, tie_word_embeddings=True)),
    "llama_grouped_biases": (LLAMA, dict(num_key_value_heads=2, head_dim=6, attention_bias=True, mlp_bias=True, rms_norm_eps=1e-5,
                                         rope_parameters=dict(rope_type="default", rope_theta=500000.0))),
    "qwen2_tied": (QWEN2, dict(num_key_value_heads=1, tie_word_embeddings=True)),
    "qwen2_untied_parts": (QWEN2, dict(num_key_value_heads=2, rope_parameters=dict(rope_type="default", rope_theta=1000000.0))),
    "llama_bfloat16": (LLAMA, dict(num_key_value_heads=2)),
    "llama_rope_llama3": (LLAMA, dict(num_key_value_heads=2, head_dim=16, tie_word_embeddings=True, rope_parameters=dict(
        rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64))),
    "qwen3_tied": (QWEN3, dict(num_key_value_heads=2, head_dim=6, tie_word_embeddings=True)),
    "qwen3_untied_biases": (QWEN3, dict(num_key_value_heads=1, head_dim=4, attention_bias=True,
                                        rope_parameters=dict(rope_type="default", rope_theta=1000000.0))),
}


def randomise(model, generator):
    """Weights large enough that attention is peaked; biases and norms away from 0 and 1."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            if p.dim() == 2:
                p.copy_(noise * (1.0 if "embed" in name else 1.5 / p.shape[1] ** 0.5))
            else:
                p.copy_(noise * 0.3 + ("norm" in name))


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def logits_of(model, rows):
    with torch.no_grad():
        return [model(torch.tensor([row])).logits[0].float() for row in rows]


def make_case(folder, name, index):
    kind, settings = CASES[name]
    config = kind(**COMMON, **settings)
    generator = torch.Generator().manual_seed(index)
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    randomise(model, generator)
    if name.endswith("bfloat16"):
        model = model.bfloat16()
    model.save_pretrained(folder, max_shard_size="8KB" if name.endswith("parts") else "1GB")
    if name == "llama_bfloat16":
        # As transformers 4 wrote it: the base of the rotary positions on its own.
        path = folder / "config.json"
        old = json.loads(path.read_text())
        old.pop("rope_parameters")
        old["torch_dtype"] = old.pop("dtype")
        path.write_text(json.dumps(dict(old, rope_theta=10000.0, rope_scaling=None), indent=2) + "\n")
    rows = [torch.randint(0, config.vocab_size, (n,), generator=generator).tolist() for n in (1, 9, 300)]
    logits = [[[float("%.6g" % v) for v in token] for token in row[-TOKENS:].tolist()] for row in logits_of(load(folder), rows)]
    (folder / "logits.json").write_text(json.dumps(dict(rows=rows, logits=logits), separators=(",", ":")) + "\n")


def make(root):
    for index, name in enumerate(CASES):
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        make_case(folder, name, index)
        print(f"{name}: {sum(f.stat().st_size for f in folder.iterdir())} bytes")


def check(folder):
    model = load(folder)
    case = json.loads((folder / "logits.json").read_text())
    worst = max((a[-len(b):] - torch.tensor(b)).abs().max().item() for a, b in zip(logits_of(model, case["rows"]), case["logits"], strict=True))
    print(f"{model.config.model_type}: {len(case['rows'])} rows, largest difference of a logit {worst:.2e}")
    ok = worst <= TOLERANCE
    encodings = folder / "encodings.json"
    if encodings.exists():
        tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        cases = json.loads(encodings.read_text())
        for text, want in zip(cases["texts"], cases["ids"], strict=True):
            got = tokenizer.encode(text, add_special_tokens=False).ids
            if got != want:
                ok = False
                print(f"{text!r}: tokenizers gives {got}, we gave {want}")
        print(f"{len(cases['texts'])} texts encoded")
    return ok


# No digits: transformers reads the pre-tokenizer of these files without the step that splits them.
QUESTIONS = ["Why is the sky blue?", "Write a short story about a lighthouse keeper and his cat.", "What is the capital of France?"]
TEXT = "The treaty was signed in the spring, after both houses had agreed to it; its text was lost in a fire. " * 12
OUTPUT = 128  # tokens of a greedy continuation


def chat(question):
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def slices(logits):
    """Some places of a row's logits (tokens, V)."""
    out = []
    for place in sorted({0, len(logits) // 3, len(logits) // 2, len(logits) - 1}):
        top = logits[place].topk(20)
        columns = list(range(5, logits.shape[1], 4099))
        out.append(dict(place=place, top_ids=top.indices.tolist(), top_logits=[float("%.7g" % v) for v in top.values], columns=columns,
                        logits=[float("%.7g" % v) for v in logits[place][columns]]))
    return out


def gguf(path):
    where = dict(pretrained_model_name_or_path=path.parent, gguf_file=path.name)
    model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    encode = lambda text: tokenizer.encode(text, add_special_tokens=False)
    rows = [encode(chat(QUESTIONS[0])), encode(TEXT), [9]]
    out = dict(rows=[dict(ids=ids, at=slices(logits)) for ids, logits in zip(rows, logits_of(model, rows), strict=True)], greedy=[])
    for question in QUESTIONS:
        context = encode(chat(question))
        ids = model.generate(torch.tensor([context]), attention_mask=torch.ones(1, len(context), dtype=torch.long), do_sample=False,
                             max_new_tokens=OUTPUT, repetition_penalty=1.0)[0].tolist()
        out["greedy"].append(dict(prompt=question, context=context, output=ids[len(context):]))
        print(tokenizer.decode(ids), file=sys.stderr)
    print(json.dumps(out, separators=(",", ":")))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["make", "check", "gguf"])
    parser.add_argument("dir", type=pathlib.Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.mode == "make":
        make(args.dir)
    elif args.mode == "gguf":
        gguf(args.dir)
    elif not check(args.dir):
        sys.exit(1)


if __name__ == "__main__":
    main()
