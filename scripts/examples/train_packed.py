"""Trains a causal language model on a file of bench export: train_packed.py BATCH.safetensors MODEL [OUT]

Needs torch, transformers and safetensors. docs/EXPORT.md describes the file.
"""
import sys

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch.nn.attention.flex_attention import create_block_mask
from transformers import AutoModelForCausalLM


def sees(b, s, q, k):
    """Whether place q of sequence s attends to place k; both broadcast."""
    block = b["block_ids"][b["sequence_offsets"][s] + q].long()
    seen = (b["block_start"][block] <= k) & (k <= q)
    for r in range(b["range_offsets"].diff().max()):  # the r-th range that each block sees, if it has so many
        at = b["range_offsets"][block] + r
        there, at = at < b["range_offsets"][block + 1], at.clamp(max=len(b["range_start"]) - 1)
        seen = seen | (there & (b["range_start"][at] <= k) & (k < b["range_end"][at]))
    return seen


def float_mask(b, s, n):
    """Visibility as transformers takes it with eager and sdpa attention: (1, 1, n, n), added to the scores."""
    place = torch.arange(n)
    return torch.where(sees(b, s, place[:, None], place[None, :]), 0.0, torch.finfo(torch.float32).min)[None, None]


def block_mask(b, s, n):
    """The same for a model with attn_implementation="flex_attention"; nothing of n times n is made."""
    return create_block_mask(lambda _batch, _head, q, k: sees(b, s, q, k), None, None, n, n, device="cpu")


def log_probs(model, b, s, mask=float_mask):
    """Log-probs of the actions of sequence s, each predicted in the state that it was sampled in."""
    tokens, actions = (slice(b[f"{kind}_offsets"][s], b[f"{kind}_offsets"][s + 1]) for kind in ("sequence", "action"))
    out = model(input_ids=b["ids"][None, tokens].long(), position_ids=b["positions"][None, tokens].long(),
                attention_mask=mask(b, s, tokens.stop - tokens.start))
    logits = out.logits[0, b["action_predict"][actions].long()].float()
    return logits.log_softmax(-1).gather(-1, b["action_id"][actions, None].long())[:, 0], actions


def ppo_loss(model, b, s, mask=float_mask, clip=0.2):
    """The clipped surrogate of sequence s, summed over actions. Without advantages in the file, the trajectories' rewards are taken."""
    new, actions = log_probs(model, b, s, mask)
    ratio = (new - b["action_log_prob"][actions]).exp()
    reward = b["trajectory_reward"].float()[b["action_trajectory"][actions].long()]
    advantage = b["action_advantage"][actions] if "action_advantage" in b else reward
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - clip, 1 + clip) * advantage).sum()


if __name__ == "__main__":
    try:
        batch = load_file(sys.argv[1])
    except (OSError, SafetensorError) as e:
        sys.exit(f"{sys.argv[1]}: not a file of bench export in safetensors: {e}")
    model = AutoModelForCausalLM.from_pretrained(sys.argv[2], dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    for s in range(len(batch["prefix_lengths"])):
        loss = ppo_loss(model, batch, s) / len(batch["action_id"])
        loss.backward()
        print(f"sequence {s}: loss {loss.item():.6g}")
    optimizer.step()
    if len(sys.argv) > 3:
        model.save_pretrained(sys.argv[3])
