"""Reference numbers for train's objectives, by PyTorch's own functions.

    python3 scripts/peers/objectives.py > train/testdata/objectives.json

Each case holds inputs, values, and the gradients that autograd gives. Nothing
here follows our formulas where PyTorch has a function of its own: KL is
torch.distributions.kl_divergence, entropy is Categorical.entropy, log-probs are
Categorical.log_prob. The KL over the student's top k ids is that of two Categoricals
of k + 1 outcomes, the last one all other ids; the estimate by sampled tokens has the
gradient of k2 (http://joschu.net/blog/kl-approx.html) under the ratio.
"""

import json
import sys

import torch
from torch.distributions import Categorical, kl_divergence


def coarse(distribution, ids):
    """The distribution of k ids (n, k) and of all others as one outcome."""
    inside = distribution.probs.gather(-1, ids)
    outside = distribution.probs.scatter(-1, ids, 0).sum(-1, keepdim=True)
    return Categorical(probs=torch.cat([inside, outside], -1))


def policy_case(seed, actions, vocabulary, temperature, clip, top_k):
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
    top = student.probs.detach().topk(top_k, -1).indices
    top_k_kl = kl_divergence(coarse(student, top), coarse(teacher, top))
    difference = log_probs - teacher.log_prob(ids)
    k1 = (ratio * difference).detach()
    k2 = ratio.detach() * 0.5 * difference.square()

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
        "top_k": top_k, "top_k_kl": top_k_kl.tolist(), "top_k_kl_gradient": gradient(top_k_kl.sum()),
        "sampled_kl": k1.tolist(), "sampled_kl_gradient": gradient(k2.sum()),
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
        "policy": [policy_case(1, 12, 7, 1.0, 0.2, 3), policy_case(2, 9, 5, 0.7, 0.1, 1), policy_case(3, 6, 11, 1.5, 0.3, 4)],
        "value": [value_case(4, 12, 0.2), value_case(5, 8, 0.05)],
    }, sys.stdout)
    print()


if __name__ == "__main__":
    main()
