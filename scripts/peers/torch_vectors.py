"""Makes torch/testdata: numbers of PyTorch that the Go tests of torch hold against.

    python3 scripts/peers/torch_vectors.py [folder, default torch/testdata]

adamw.json: parameters after each of some steps of torch.optim.AdamW, two groups, a learning rate that changes, one parameter
without a gradient at some steps; python.safetensors: a file of Hugging Face's writer; ops.json: operators whose rules are easily mistaken.
Needs torch and safetensors.
"""
import json
import pathlib
import sys

import torch
from safetensors.torch import save_file


def numbers(t):
    """Shape and row-major values."""
    return {"shape": list(t.shape), "values": t.detach().double().flatten().tolist()}


def adamw():
    """Steps of AdamW with every gradient and every parameter after the step, in float32."""
    torch.manual_seed(1)
    config = {"beta1": 0.9, "beta2": 0.95, "eps": 1e-8}
    shapes, decays = [(3, 4), (5,), (2, 2)], [0.1, 0.1, 0.0]
    params = [torch.randn(s).requires_grad_(True) for s in shapes]
    start = [numbers(p) for p in params]
    optimizer = torch.optim.AdamW(
        [{"params": params[:2], "weight_decay": 0.1}, {"params": params[2:], "weight_decay": 0.0}],
        lr=1e-2, betas=(config["beta1"], config["beta2"]), eps=config["eps"])
    steps = []
    for i in range(8):
        lr = 1e-2 * (1 - i / 10)
        grads, scale = [], 10.0 ** (i % 4 - 2)
        for j, p in enumerate(params):
            lacks = j == 1 and i in (2, 5)
            p.grad = None if lacks else torch.randn_like(p) * scale
            grads.append(None if lacks else numbers(p.grad))
        norm = torch.nn.utils.clip_grad_norm_(params, 1.0).item()
        for group in optimizer.param_groups:
            group["lr"] = lr
        optimizer.step()
        clipped = [None if p.grad is None else numbers(p.grad) for p in params]
        steps.append({"lr": lr, "grads": grads, "norm": norm, "clipped": clipped, "params": [numbers(p) for p in params]})
    return {"torch": torch.__version__, "config": config, "decays": decays, "clip": 1.0, "start": start, "steps": steps}


def attention(q, k, v, **kw):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, **kw)


def ops():
    """Inputs, outputs and the gradient of sum(output * weights) for operators, in float64."""
    torch.manual_seed(2)
    F = torch.nn.functional
    q, k, v = (torch.randn(2, 3, 4, dtype=torch.float64) for _ in range(3))
    seen = torch.tensor([[True, False, True], [True, True, False], [False, True, True]])
    logits, targets = torch.randn(4, 5, dtype=torch.float64), torch.tensor([1, -100, 4, 0])
    cases = {
        "sdpa": ([q, k, v], lambda a, b, c: attention(a, b, c)),
        "sdpa_causal": ([q, k, v], lambda a, b, c: attention(a, b, c, is_causal=True)),
        "sdpa_mask": ([q, k, v], lambda a, b, c: attention(a, b, c, attn_mask=seen)),
        "cross_entropy_mean": ([logits], lambda x: F.cross_entropy(x, targets)),
        "cross_entropy_none": ([logits], lambda x: F.cross_entropy(x, targets, reduction="none")),
        "rms_norm": ([logits, torch.randn(5, dtype=torch.float64)], lambda x, w: F.rms_norm(x, (5,), w, 1e-6)),
        "gelu": ([logits], F.gelu),
        "std": ([logits], lambda x: x.std()),
        "logsumexp": ([logits], lambda x: x.logsumexp(-1)),
    }
    out = {}
    for name, (inputs, f) in cases.items():
        inputs = [t.detach().clone().requires_grad_(True) for t in inputs]
        y = f(*inputs)
        w = torch.randn_like(y)
        (y * w).sum().backward()
        out[name] = {"inputs": [numbers(t) for t in inputs], "output": numbers(y), "weights": numbers(w), "grads": [numbers(t.grad) for t in inputs]}
    return out


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "torch/testdata")
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    (folder / "adamw.json").write_text(json.dumps(adamw()) + "\n")
    (folder / "ops.json").write_text(json.dumps(ops()) + "\n")
    save_file({
        "f32": torch.arange(6, dtype=torch.float32).view(2, 3), "f16": torch.tensor([0.5, -2, 65504], dtype=torch.float16),
        "bf16": torch.tensor([0.5, -2, 256], dtype=torch.bfloat16), "i64": torch.tensor([-7, 1 << 40]),
        "bool": torch.tensor([True, False]), "scalar": torch.tensor(3.25),
    }, folder / "python.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    main()
