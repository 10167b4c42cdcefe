"""Training step of a GPT on random tokens, in bfloat16 under `torch.compile`.

Handwritten norm and attention, and AdamW with its defaults.

python examples/programs/train_gpt_compiled.py --steps 5
warpsmith program analyze examples/programs/train_gpt_compiled.py --step train_step
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import record_function

SIZES = {
    "cpu": {"layers": 2, "width": 64, "heads": 4, "batch": 4, "context": 64, "vocabulary": 512},
    "cuda": {"layers": 12, "width": 768, "heads": 12, "batch": 16, "context": 1024, "vocabulary": 50304},
}
"""Sizes by device: for tests on a CPU, of GPT-2 small on a GPU."""


def options() -> argparse.Namespace:
    """Parse sizes from the command line; those not given depend on the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=5)
    for name in SIZES["cpu"]:
        parser.add_argument(f"--{name}", type=int)
    arguments = parser.parse_args()
    for name, size in SIZES[arguments.device].items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, size)
    return arguments


class RMSNorm(nn.Module):
    """Normalization of rows to a root mean square of one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., width) to (..., width)."""
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    """Causal attention, written out as products and a softmax."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.queries_keys_values = nn.Linear(
            width, 3 * width, bias=False
        )  # a bias of the keys would have no gradient
        self.mix = nn.Linear(width, width)
        self.register_buffer("future", torch.ones(context, context, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, context, width) to (batch, context, width)."""
        batch, context, width = x.shape
        parts = self.queries_keys_values(x).view(batch, context, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.mix(mixed.transpose(1, 2).reshape(batch, context, width))


class Block(nn.Module):
    """Attention and a feed-forward network, each after a norm and with a skip connection."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([RMSNorm(width), RMSNorm(width)])
        self.attention = Attention(width, heads, context)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, context, width) to (batch, context, width)."""
        x = x + self.attention(self.norms[0](x))
        return x + self.feed_forward(self.norms[1](x))


class GPT(nn.Module):
    """Model from tokens to logits."""

    def __init__(self, layers: int, width: int, heads: int, context: int, vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads, context) for _ in range(layers)))
        self.norm = RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (batch, context) to (batch, context, vocabulary)."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.positions(positions))))


arguments = options()
device = torch.device(arguments.device)
model = GPT(arguments.layers, arguments.width, arguments.heads, arguments.context, arguments.vocabulary).to(device)
model.compile()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)


def train_step() -> Tensor:
    """Train on a fresh batch, and return its loss."""
    batch = torch.randint(arguments.vocabulary, (arguments.batch, arguments.context + 1)).to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        logits = model(batch[:, :-1])
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def main() -> None:
    """Train for several steps."""
    for number in range(arguments.steps):
        with record_function("step"):
            loss = train_step()
        print(f"step {number}: loss {loss.item():.3f}")  # noqa: T201


if __name__ == "__main__":
    main()
