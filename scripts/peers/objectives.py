"""Reference numbers for train's objectives, by PyTorch's own functions.

    python3 scripts/peers/objectives.py > train/testdata/objectives.json

Each case holds inputs, values, and the gradients that autograd gives. Nothing
here follows our formulas where PyTorch has a function of its own: KL is
torch.distributions.kl_divergence, entropy is Categorical.entropy, log-probs are
Categorical.log_prob.
"""

import json
import sys

import torch
from torch.distributions import Categorical, kl_divergence


def policy_case(seed, actions, vocabulary, temperature, clip):
    g = torch.Generator().manual_seed(seed)
    logits = torch.randn(actions, vocabulary, generator=g, dtype=torch.float64, requires_grad=True)
    teacher_logits = 2 * torch.randn(actions, vocabulary, generator=g, dtype=torch.float64)
    ids = torch.randint(vocabulary, (actions,), generator=g)
    advantages = torch.randn(actions, generator=g, dtype=torch.float64)
    student = Categorical(logits=logits / temperature)
    teacher = Categorical(logits=teacher_logits / temperature)
    behaviour = (student.log_prob(ids) + 0.4 * torch.randn(actions, generator=g, dtype=torch.float64)).detach()

    log_probs = student.log_prob(ids)
    ratio = torch.exp(log_probs - behaviour)
    surrogate = -torch.min(ratio * advantages, torch.clamp(ratio, 1 - clip, 1 + clip) * advantages)
    reverse_kl = kl_divergence(student, teacher)
    entropy = student.entropy()

    def gradient(value):
        return torch.autograd.grad(value, logits, retain_graph=True)[0].flatten().tolist()

    return {
        "temperature": temperature, "clip": clip, "vocabulary": vocabulary,
        "logits": logits.flatten().tolist(), "teacher_logits": teacher_logits.flatten().tolist(),
        "ids": ids.tolist(), "advantages": advantages.tolist(), "behaviour": behaviour.tolist(),
        "log_probs": log_probs.tolist(), "entropy": entropy.tolist(), "reverse_kl": reverse_kl.tolist(),
        "surrogate": surrogate.sum().item(), "approx_kl": ((ratio - 1) - (log_probs - behaviour)).sum().item(),
        "surrogate_gradient": gradient(surrogate.sum()), "entropy_gradient": gradient(entropy.sum()),
        "reverse_kl_gradient": gradient(reverse_kl.sum()),
    }


def value_case(seed, actions, clip):
    g = torch.Generator().manual_seed(seed)
    values = torch.randn(actions, generator=g, dtype=torch.float64, requires_grad=True)
    old = values.detach() + 0.3 * torch.randn(actions, generator=g, dtype=torch.float64)
    returns = torch.randn(actions, generator=g, dtype=torch.float64)
    plain = torch.nn.functional.mse_loss(values, returns, reduction="none")
    clipped = torch.nn.functional.mse_loss(old + torch.clamp(values - old, -clip, clip), returns, reduction="none")
    loss = 0.5 * torch.max(plain, clipped).sum()
    loss.backward()
    return {
        "clip": clip, "values": values.tolist(), "old": old.tolist(), "returns": returns.tolist(),
        "loss": loss.item(), "clipped": int((clipped > plain).sum()), "gradient": values.grad.tolist(),
    }


def main():
    json.dump({
        "torch": torch.__version__,
        "policy": [policy_case(1, 12, 7, 1.0, 0.2), policy_case(2, 9, 5, 0.7, 0.1), policy_case(3, 6, 11, 1.5, 0.3)],
        "value": [value_case(4, 12, 0.2), value_case(5, 8, 0.05)],
    }, sys.stdout)
    print()


if __name__ == "__main__":
    main()
