"""A tiny GPT's training step on random tokens, to be traced: every step is a range named `step`.

python examples/trace_gpt.py --steps 5 --layers 4 --width 256 --heads 4 --batch 8 --context 256
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import record_function


class Block(nn.Module):
    """Attention and a feed-forward net, each behind a norm and beside a skip connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.mix = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, context, width) to the same."""
        x = x + self.attention(self.norms[0](x))
        return x + self.feed_forward(self.norms[1](x))

    def attention(self, x: Tensor) -> Tensor:
        """Causal attention over the context."""
        batch, context, width = x.shape
        parts = self.queries_keys_values(x).view(batch, context, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.mix(mixed.transpose(1, 2).reshape(batch, context, width))


class GPT(nn.Module):
    """Tokens to logits."""

    def __init__(self, given: argparse.Namespace) -> None:
        super().__init__()
        self.tokens = nn.Embedding(given.vocabulary, given.width)
        self.places = nn.Embedding(given.context, given.width)
        self.blocks = nn.Sequential(*(Block(given.width, given.heads) for _ in range(given.layers)))
        self.norm = nn.LayerNorm(given.width)
        self.head = nn.Linear(given.width, given.vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, context) to (batch, context, vocabulary)."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places(places))))


def options() -> argparse.Namespace:
    """Sizes from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    sizes = {"steps": 5, "layers": 4, "width": 256, "heads": 4, "batch": 8, "context": 256, "vocabulary": 8192}
    for name, default in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()


def main() -> None:
    """Train for some steps."""
    given = options()
    torch.manual_seed(0)
    model = GPT(given).to(given.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    loss = torch.zeros(())
    for _ in range(given.steps):
        with record_function("step"):
            batch = torch.randint(given.vocabulary, (given.batch, given.context + 1)).to(given.device)
            with torch.autocast(given.device, torch.bfloat16, enabled=given.device == "cuda"):
                logits = model(batch[:, :-1])
                loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    print(f"loss {loss.item():.3f} after {given.steps} steps")  # noqa: T201


if __name__ == "__main__":
    main()
