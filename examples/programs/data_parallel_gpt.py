"""Training step of a GPT on several ranks, each with a batch of its own: replicated or sharded parameters.

`--parallel ddp` replicates the parameters by DistributedDataParallel, `fsdp2` shards them by `fully_shard`, block
by block. `none` is the same step in one process; with `--shares 4` it takes the batches of four ranks one after
the other, which has the losses of four ranks. The blocks are compiled, and products are in bfloat16 on a GPU.

Tokens are numbers that go up by the same stride in a row, so that there is something to learn.

torchrun --nproc_per_node 2 examples/programs/data_parallel_gpt.py --parallel fsdp2 --steps 5
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

SIZES = {
    "cpu": {"layers": 2, "width": 64, "heads": 4, "batch": 4, "context": 64, "vocabulary": 512},
    "cuda": {"layers": 12, "width": 768, "heads": 12, "batch": 16, "context": 1024, "vocabulary": 50304},
}
"""Sizes by device: for tests on a CPU, of GPT-2 small on a GPU. The batch is that of a rank."""

MODES = ("none", "ddp", "fsdp2")

_DISTINCT = 256
"""Number of different tokens in the data."""


def options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse sizes from the command line; those not given depend on the device."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallel", choices=MODES, default="ddp")
    parser.add_argument("--shares", type=int, default=1, help="batches of a rank in each step")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--eager", action="store_true", help="compile nothing")
    for name in SIZES["cpu"]:
        parser.add_argument(f"--{name}", type=int)
    arguments = parser.parse_args(words)
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
        return functional.rms_norm(x, x.shape[-1:], self.weight.to(x.dtype), 1e-6)


class Block(nn.Module):
    """Causal attention and a feed-forward network, each after a norm and with a skip connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([RMSNorm(width), RMSNorm(width)])
        self.queries_keys_values = nn.Linear(width, 3 * width, bias=False)
        self.mix = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Map (batch, context, width) to (batch, context, width)."""
        parts = self.queries_keys_values(self.norms[0](x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.mix(mixed.transpose(1, 2).flatten(2))
        return x + self.feed_forward(self.norms[1](x))


class GPT(nn.Module):
    """Model from tokens to logits."""

    def __init__(self, arguments: argparse.Namespace, dtype: torch.dtype) -> None:
        super().__init__()
        width = arguments.width
        self.dtype = dtype
        self.tokens = nn.Embedding(arguments.vocabulary, width)
        self.positions = nn.Embedding(arguments.context, width)
        self.blocks = nn.ModuleList(Block(width, arguments.heads) for _ in range(arguments.layers))
        self.norm = RMSNorm(width)
        self.head = nn.Linear(width, arguments.vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map (batch, context) to (batch, context, vocabulary)."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = (self.tokens(tokens) + self.positions(positions)).to(self.dtype)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def loss_of(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross entropy of logits (batch, context, vocabulary) and targets (batch, context)."""
    return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


class Training:
    """A model with its optimizer on the device of this rank; the same parameters whatever the mode."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Build the model; with `ddp` and `fsdp2` the ranks know each other already."""
        self.arguments = arguments
        self.device = local_device(arguments.device)
        on_gpu = self.device.type == "cuda"
        self._dtype = torch.bfloat16 if on_gpu else torch.float32
        self._loss_of = loss_of if arguments.eager else torch.compile(loss_of, dynamic=False)
        self._first_share = dist.get_rank() if arguments.parallel != "none" else 0
        torch.manual_seed(0)
        model = GPT(arguments, self._dtype).to(self.device)
        if not arguments.eager:
            for index, block in enumerate(model.blocks):
                model.blocks[index] = torch.compile(block, dynamic=False)  # one compilation serves all of them
        self.model = self._distribute(model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=on_gpu or None)

    def step(self, number: int) -> Tensor:
        """Train on the batches of step `number`, and return the loss of this rank."""
        shares = self.arguments.shares
        losses = []
        for share in range(shares):
            tokens = self._draw_tokens(number, self._first_share + share)
            with torch.autocast(self.device.type, self._dtype, enabled=self._dtype != torch.float32):
                logits = self.model(tokens[:, :-1])
            loss = self._loss_of(logits, tokens[:, 1:])
            (loss / shares).backward()
            losses.append(loss.detach())
        self.optimizer.step()
        self.optimizer.zero_grad()
        return torch.stack(losses).mean()

    def _distribute(self, model: GPT) -> nn.Module:
        if self.arguments.parallel == "none":
            return model
        if self.arguments.parallel == "ddp":
            torch._dynamo.config.optimize_ddp = False  # the blocks are compiled one by one, nothing is left to cut
            return DistributedDataParallel(
                model,
                device_ids=[self.device.index] if self.device.type == "cuda" else None,
                gradient_as_bucket_view=True,
                static_graph=True,
            )
        mesh = dist.device_mesh.init_device_mesh(self.device.type, (dist.get_world_size(),))
        policy = MixedPrecisionPolicy(param_dtype=self._dtype, reduce_dtype=torch.float32)
        for block in model.blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy)
        return fully_shard(model, mesh=mesh, mp_policy=policy)

    def _draw_tokens(self, step: int, share: int) -> Tensor:
        """Return the tokens (batch, context + 1) that a rank trains on in a step."""
        batch, context = self.arguments.batch, self.arguments.context
        generator = torch.Generator(self.device).manual_seed(1000 * step + share)
        start = torch.randint(_DISTINCT, (batch, 1), generator=generator, device=self.device)
        stride = torch.randint(1, 9, (batch, 1), generator=generator, device=self.device)
        return (start + stride * torch.arange(context + 1, device=self.device)) % _DISTINCT


def local_device(kind: str) -> torch.device:
    """Return the device of this rank: the GPU that has its number on this host, or the CPU."""
    return torch.device(kind, int(os.environ.get("LOCAL_RANK", "0"))) if kind == "cuda" else torch.device(kind)


def join_ranks(kind: str) -> None:
    """Have the ranks that torchrun started know each other: by NCCL on GPUs, by Gloo on a CPU."""
    device = local_device(kind)
    if kind == "cuda":
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    else:
        dist.init_process_group("gloo")


def main() -> None:
    """Train for several steps, each rank on data of its own."""
    arguments = options()
    if arguments.parallel != "none":
        join_ranks(arguments.device)
    training = Training(arguments)
    for number in range(arguments.steps):
        loss = training.step(number)
        if number % 10 == 0 and int(os.environ.get("RANK", "0")) == 0:
            print(f"step {number}: loss {loss.item():.3f}", flush=True)  # noqa: T201
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
