"""Decoding with a small transformer, a token per step, with a fixed-size KV cache, under `reduce-overhead`.

python examples/programs/decode_compiled.py --steps 20
warpsmith program analyze examples/programs/decode_compiled.py --step decode_step
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import record_function

SIZES = {
    "cpu": {"layers": 2, "width": 64, "heads": 4, "batch": 2, "context": 64, "vocabulary": 256},
    "cuda": {"layers": 16, "width": 1024, "heads": 16, "batch": 8, "context": 1024, "vocabulary": 32000},
}
"""Sizes by device: for tests on a CPU, of a small language model on a GPU."""

DTYPES = {"cpu": torch.float32, "cuda": torch.bfloat16}
"""Data type of weights, cache and activations by device; scores are in float32."""


def options() -> argparse.Namespace:
    """Parse sizes from the command line; those not given depend on the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=20)
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


class Layer(nn.Module):
    """Attention over the cache and a gated feed-forward network, for one new token per sequence."""

    def __init__(self, width: int, heads: int, batch: int, context: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([RMSNorm(width), RMSNorm(width)])
        self.queries_keys_values = nn.Linear(width, 3 * width, bias=False)
        self.mix = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(batch, heads, context, width // heads), persistent=False)

    def forward(self, x: Tensor, position: Tensor, mask: Tensor) -> Tensor:
        """Map (batch, width) to (batch, width); write the cache at `position`, read it where `mask` is true."""
        x = x + self.attention(self.norms[0](x), position, mask)
        normed = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))

    def attention(self, x: Tensor, position: Tensor, mask: Tensor) -> Tensor:
        """Attend from the new token to all tokens in the cache."""
        batch, width = x.shape
        query, key, value = self.queries_keys_values(x).view(batch, 3, self.heads, 1, -1).unbind(1)
        self.keys.index_copy_(2, position, key)
        self.values.index_copy_(2, position, value)
        mixed = functional.scaled_dot_product_attention(query, self.keys, self.values, attn_mask=mask)
        return self.mix(mixed.reshape(batch, width))


class Decoder(nn.Module):
    """Model from the last token of each sequence to the logits of the next one."""

    def __init__(self, layers: int, width: int, heads: int, batch: int, context: int, vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads, batch, context) for _ in range(layers))
        self.norm = RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor, position: Tensor) -> Tensor:
        """Map (batch,) tokens at one position (1,) to (batch, vocabulary)."""
        x = self.tokens(tokens) + self.positions(position)
        mask = (torch.arange(self.positions.num_embeddings, device=tokens.device) <= position).unsqueeze(0)
        for layer in self.layers:
            x = layer(x, position, mask)
        return self.head(self.norm(x))


arguments = options()
device = torch.device(arguments.device)
sizes = (
    arguments.layers,
    arguments.width,
    arguments.heads,
    arguments.batch,
    arguments.context,
    arguments.vocabulary,
)
model = Decoder(*sizes).to(device, DTYPES[device.type]).eval()
model.compile(mode="reduce-overhead")
tokens = torch.zeros(arguments.batch, dtype=torch.long, device=device)
position = torch.zeros(1, dtype=torch.long, device=device)


@torch.no_grad()
def decode_step() -> Tensor:
    """Decode the next token of each sequence; return the mean log-probability. Restart once the cache is full."""
    scores = torch.log_softmax(model(tokens, position).float(), dim=-1)
    best = scores.max(dim=-1)
    tokens.copy_(best.indices)
    position.add_(1).remainder_(arguments.context)
    return best.values.mean()


def main() -> None:
    """Decode several tokens."""
    for _ in range(arguments.steps):
        with record_function("step"):
            score = decode_step()
    print(f"{arguments.steps} tokens, the last with log-probability {score.item():.3f}")  # noqa: T201


if __name__ == "__main__":
    main()
