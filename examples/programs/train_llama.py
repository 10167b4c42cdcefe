"""Training step of a Llama on random tokens under torch.compile, loss included.

RMSNorm, rotary positions on pairs of neighbours, four query heads to a head of keys and values, SwiGLU, no bias,
and fused AdamW. On a GPU products are in bfloat16.

python examples/programs/train_llama.py --steps 5
warpsmith program regions examples/programs/train_llama.py --step train_step
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional

SIZES = {
    "cpu": {"layers": 2, "width": 128, "heads": 4, "batch": 4, "context": 128, "vocabulary": 2048},
    "cuda": {"layers": 8, "width": 2048, "heads": 16, "batch": 8, "context": 1024, "vocabulary": 32000},
}
"""Sizes by device: for tests on a CPU, of a small model on a GPU."""


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


def rotary_angles(context: int, head: int) -> Tensor:
    """Return the angle of each position and pair, (context, head / 2)."""
    return torch.outer(torch.arange(context), 10000.0 ** (-torch.arange(0, head, 2) / head))


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate each pair of neighbours of (batch, context, heads, head) by the angle of its position."""
    even, odd = x.unflatten(-1, (-1, 2)).unbind(-1)
    cosine, sine = cosine[:, None], sine[:, None]
    return torch.stack([even * cosine - odd * sine, even * sine + odd * cosine], -1).flatten(-2)


GROUP = 4
"""Query heads that share a head of keys and values; `heads` is a multiple of it."""


class Block(nn.Module):
    """Attention and SwiGLU, each after a norm and with a skip connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.split = (heads, heads // GROUP, heads // GROUP)
        self.norms = nn.ModuleList([nn.RMSNorm(width, eps=1e-6), nn.RMSNorm(width, eps=1e-6)])
        self.queries_keys_values = nn.Linear(width, width + 2 * width // GROUP, bias=False)
        self.mix = nn.Linear(width, width, bias=False)
        self.gate_up = nn.Linear(width, 8 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """Map (batch, context, width) to (batch, context, width)."""
        x = x + self.attention(self.norms[0](x), cosine, sine)
        gate, up = self.gate_up(self.norms[1](x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)

    def attention(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        """Attend causally within each sequence."""
        query, key, value = self.queries_keys_values(x).unflatten(-1, (sum(self.split), -1)).split(self.split, 2)
        parts = (rotate(query, cosine, sine), rotate(key, cosine, sine), value)
        mixed = functional.scaled_dot_product_attention(
            *(part.transpose(1, 2) for part in parts), is_causal=True, enable_gqa=True
        )
        return self.mix(mixed.transpose(1, 2).flatten(-2))


class Llama(nn.Module):
    """Model from tokens to the loss of the next token."""

    def __init__(self, layers: int, width: int, heads: int, context: int, vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.head = nn.Linear(width, vocabulary, bias=False)
        angles = rotary_angles(context, width // heads)
        self.register_buffer("cosine", angles.cos(), persistent=False)
        self.register_buffer("sine", angles.sin(), persistent=False)

    def forward(self, batch: Tensor) -> Tensor:
        """Return the mean loss of a batch of tokens, (batch, context + 1)."""
        x = self.tokens(batch[:, :-1])
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        return functional.cross_entropy(self.head(self.norm(x)).flatten(0, 1), batch[:, 1:].flatten())


arguments = options()
device = torch.device(arguments.device)
model = Llama(arguments.layers, arguments.width, arguments.heads, arguments.context, arguments.vocabulary).to(
    device
)
model.compile()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)


def train_step() -> Tensor:
    """Train on a fresh batch, and return its loss."""
    batch = torch.randint(arguments.vocabulary, (arguments.batch, arguments.context + 1)).to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        loss: Tensor = model(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def main() -> None:
    """Train for several steps."""
    for number in range(arguments.steps):
        print(f"step {number}: loss {train_step().item():.3f}")  # noqa: T201


if __name__ == "__main__":
    main()
