"""A GPT's training step on random tokens as a first version is written.

Float32, norm and attention by hand, AdamW as it comes.

python examples/programs/train_gpt.py --steps 5
warpsmith program analyze examples/programs/train_gpt.py --step train_step
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
"""On a CPU for tests, on a GPU those of GPT-2 small."""


def options() -> argparse.Namespace:
    """Sizes from the command line; what is not given depends on the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=5)
    for name in SIZES["cpu"]:
        parser.add_argument(f"--{name}", type=int)
    given = parser.parse_args()
    for name, size in SIZES[given.device].items():
        if getattr(given, name) is None:
            setattr(given, name, size)
    return given


class RMSNorm(nn.Module):
    """Scales rows to a root mean square of one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        """(..., width) to the same."""
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


class Attention(nn.Module):
    """Causal attention, written out."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.queries_keys_values = nn.Linear(width, 3 * width, bias=False)  # a key's would have no gradient
        self.mix = nn.Linear(width, width)
        self.register_buffer("ahead", torch.ones(context, context, dtype=torch.bool).triu(1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, context, width) to the same."""
        batch, context, width = x.shape
        parts = self.queries_keys_values(x).view(batch, context, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
        scores = scores.masked_fill(self.ahead[:context, :context], float("-inf"))
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.mix(mixed.transpose(1, 2).reshape(batch, context, width))


class Block(nn.Module):
    """Attention and a feed-forward net, each behind a norm and beside a skip connection."""

    def __init__(self, width: int, heads: int, context: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([RMSNorm(width), RMSNorm(width)])
        self.attention = Attention(width, heads, context)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, context, width) to the same."""
        x = x + self.attention(self.norms[0](x))
        return x + self.feed_forward(self.norms[1](x))


class GPT(nn.Module):
    """Tokens to logits."""

    def __init__(self, layers: int, width: int, heads: int, context: int, vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        self.blocks = nn.Sequential(*(Block(width, heads, context) for _ in range(layers)))
        self.norm = RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, context) to (batch, context, vocabulary)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places(places))))


given = options()
device = torch.device(given.device)
model = GPT(given.layers, given.width, given.heads, given.context, given.vocabulary).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)


def train_step() -> Tensor:
    """One step on a fresh batch; its loss."""
    batch = torch.randint(given.vocabulary, (given.batch, given.context + 1)).to(device)
    logits = model(batch[:, :-1])
    loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def main() -> None:
    """Train for some steps."""
    for number in range(given.steps):
        with record_function("step"):
            loss = train_step()
        print(f"step {number}: loss {loss.item():.3f}")  # noqa: T201


if __name__ == "__main__":
    main()
