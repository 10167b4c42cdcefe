"""Decoding with a small transformer, one token a step, over a KV cache of a fixed size, in eager PyTorch.

On a GPU each step launches hundreds of kernels that take microseconds: the host is what it waits for.

python examples/programs/decode.py --steps 20
warpsmith program analyze examples/programs/decode.py --step decode_step
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
"""On a CPU for tests, on a GPU those of a small language model."""

DTYPES = {"cpu": torch.float32, "cuda": torch.bfloat16}
"""What weights, cache and activations are held in; scores are in float32."""


def options() -> argparse.Namespace:
    """Sizes from the command line; what is not given depends on the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=20)
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


class Layer(nn.Module):
    """Attention over the cache and a gated feed-forward net, for one new token a sequence."""

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

    def forward(self, x: Tensor, place: Tensor, seen: Tensor) -> Tensor:
        """(batch, width) to the same; writes the cache at `place`, reads it where `seen`."""
        x = x + self.attention(self.norms[0](x), place, seen)
        normed = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(normed)) * self.up(normed))

    def attention(self, x: Tensor, place: Tensor, seen: Tensor) -> Tensor:
        """Attention of the new token to all that is in the cache."""
        batch, width = x.shape
        query, key, value = self.queries_keys_values(x).view(batch, 3, self.heads, 1, -1).unbind(1)
        self.keys.index_copy_(2, place, key)
        self.values.index_copy_(2, place, value)
        mixed = functional.scaled_dot_product_attention(query, self.keys, self.values, attn_mask=seen)
        return self.mix(mixed.reshape(batch, width))


class Decoder(nn.Module):
    """The last token of each sequence to the logits of the next one."""

    def __init__(self, layers: int, width: int, heads: int, batch: int, context: int, vocabulary: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads, batch, context) for _ in range(layers))
        self.norm = RMSNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Tensor, place: Tensor) -> Tensor:
        """(batch,) tokens at one place (1,) to (batch, vocabulary)."""
        x = self.tokens(tokens) + self.places(place)
        seen = (torch.arange(self.places.num_embeddings, device=tokens.device) <= place).unsqueeze(0)
        for layer in self.layers:
            x = layer(x, place, seen)
        return self.head(self.norm(x))


given = options()
device = torch.device(given.device)
sizes = (given.layers, given.width, given.heads, given.batch, given.context, given.vocabulary)
model = Decoder(*sizes).to(device, DTYPES[device.type]).eval()
tokens = torch.zeros(given.batch, dtype=torch.long, device=device)
place = torch.zeros(1, dtype=torch.long, device=device)


@torch.no_grad()
def decode_step() -> Tensor:
    """The next token of each sequence; their mean log-probability. Begins again where the cache is full."""
    scores = torch.log_softmax(model(tokens, place).float(), dim=-1)
    best = scores.max(dim=-1)
    tokens.copy_(best.indices)
    place.add_(1).remainder_(given.context)
    return best.values.mean()


def main() -> None:
    """Decode some tokens."""
    for _ in range(given.steps):
        with record_function("step"):
            score = decode_step()
    print(f"{given.steps} tokens, the last with log-probability {score.item():.3f}")  # noqa: T201


if __name__ == "__main__":
    main()
