#!/usr/bin/env python3
"""Loss and weight gradients of packed batches by PyTorch and transformers, through scripts/examples/train_packed.py.

    packed_torch.py JOBS.json

JOBS.json is a list of {"batch", "model", "out": paths, "loss": "nll" or "ppo", "attention": "eager", "sdpa" or "flex_attention"};
`out` then holds `log_probs` of all actions (for "nll"), `loss` (a mean over them) and `grad.NAME` of each weight, q, k, v and gate, up stacked as
this project stores them. flex_attention has no backward pass on a CPU and gives the loss alone (TORCHDYNAMO_DISABLE=1 saves compiling it).
"""

import importlib.util
import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

EXAMPLE = pathlib.Path(__file__).parent.parent / "examples" / "train_packed.py"
STACKED = {"qkv_proj": ("q_proj", "k_proj", "v_proj"), "gate_up_proj": ("gate_proj", "up_proj")}


def example():
    spec = importlib.util.spec_from_file_location("train_packed", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def stacked(grads):
    """Gradients by this project's names."""
    out = {}
    for name, grad in grads.items():
        for whole, parts in STACKED.items():
            for part in parts:
                if f".{part}." in name:
                    name = name.replace(part, whole)
        out[name] = grad if name not in out else torch.cat([out[name], grad])
    return out


def run(packed, job):
    batch = load_file(job["batch"])
    model = transformers.AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32, attn_implementation=job["attention"])
    flex = job["attention"] == "flex_attention"
    mask = packed.block_mask if flex else packed.float_mask
    total, log_probs = 0.0, []
    with torch.set_grad_enabled(not flex):
        for s in range(len(batch["prefix_lengths"])):
            if job["loss"] == "ppo":
                loss = packed.ppo_loss(model, batch, s, mask)
            else:
                log_probs.append(packed.log_probs(model, batch, s, mask)[0])
                loss = -log_probs[-1].sum()
            loss = loss / len(batch["action_id"])
            if not flex:
                loss.backward()
            total += loss.item()
    grads = stacked({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    log_probs = torch.cat(log_probs).detach() if log_probs else torch.empty(0)
    save_file({"loss": torch.tensor(total, dtype=torch.float64), "log_probs": log_probs, **{f"grad.{name}": g.contiguous() for name, g in grads.items()}}, job["out"])
    print(f"{job['attention']}: {job['loss']} {total:.8g}, gradients of {len(grads)} weights")


def main():
    torch.set_num_threads(1)
    packed = example()
    for job in json.loads(pathlib.Path(sys.argv[1]).read_text()):
        run(packed, job)


if __name__ == "__main__":
    main()
