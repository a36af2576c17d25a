"""Microseconds an operator through PyTorch's Python front end: the same cases, under the same names, as BenchmarkOps in
torch/bench_test.go. Prints one line a case: name, microseconds by the clock, microseconds of CPU time (which another program on the
machine does not lengthen as much). torch_ops.sh compares the two.

    python3 scripts/peers/torch_ops.py [seconds a case, default 0.2]
"""
import sys
import time

import torch


def measure(op, seconds):
    """Microseconds a call, by the clock and of CPU time: the calls of a run are doubled until it lasts for `seconds`."""
    n = 8
    while True:
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(n):
            op()
        spent, cpu = time.perf_counter() - start, time.process_time() - cpu
        if spent >= seconds:
            return spent / n * 1e6, cpu / n * 1e6
        n *= 2


def cases():
    """(name, whether gradients are recorded, what runs)."""
    x, y = torch.rand(4, 4), torch.rand(4, 4)
    big, ids = torch.rand(512, 512), torch.arange(32)
    rows, weight, bias = torch.rand(64, 256), torch.rand(256, 256), torch.rand(256)
    table = torch.rand(1000, 256)
    xg = x.clone().requires_grad_(True)
    F = torch.nn.functional
    return [
        ("add_4x4", False, lambda: x.add(y)),
        ("add_4x4_grad", True, lambda: xg.add(y)),
        ("mul_scalar_4x4", False, lambda: x.mul(0.5)),
        ("matmul_4x4", False, lambda: x.matmul(y)),
        ("matmul_4x4_grad", True, lambda: xg.matmul(y)),
        ("add_matmul_sum_backward", True, lambda: xg.add(y).matmul(y).sum().backward()),
        ("slice", False, lambda: x[1:3]),
        ("view", False, lambda: x.view(2, 8)),
        ("transpose", False, lambda: x.transpose(0, 1)),
        ("sum_dim", False, lambda: x.sum(-1, keepdim=True)),
        ("cat", False, lambda: torch.cat([x, y], 0)),
        ("softmax_4x4", False, lambda: x.softmax(-1)),
        ("embedding_32x256", False, lambda: F.embedding(ids, table)),
        ("linear_silu_64x256", False, lambda: F.silu(F.linear(rows, weight, bias))),
        ("add_inplace", False, lambda: x.add_(y, alpha=1e-9)),
        ("item", False, lambda: bias[0].item()),
        ("shape", False, lambda: x.shape),
        ("matmul_512", False, lambda: big.matmul(big)),
    ]


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for name, grad, op in cases():
        with torch.set_grad_enabled(grad):
            clock, cpu = measure(op, seconds)
            print(f"{name}\t{clock:.3f}\t{cpu:.3f}", flush=True)


if __name__ == "__main__":
    main()
