"""Training of a deep perceptron on several ranks, written as a first version would be.

Each parameter has a bucket of its own, each step searches for unused parameters though there are none, and each
micro-batch reduces all gradients.

torchrun --nproc_per_node 2 examples/programs/data_parallel.py --steps 5
warpsmith program analyze --command "torchrun --nproc_per_node 2 examples/programs/data_parallel.py"
"""

from __future__ import annotations

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SIZES = {
    "cpu": {"width": 48, "layers": 12, "batch": 16},
    "cuda": {"width": 4096, "layers": 24, "batch": 512},
}
"""Sizes by device: for tests on a CPU, of 1.6 GB of parameters on a GPU."""


def options() -> argparse.Namespace:
    """Parse sizes from the command line; those not given depend on the device."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--micro-batches", type=int, default=2)
    for name in SIZES["cpu"]:
        parser.add_argument(f"--{name}", type=int)
    arguments = parser.parse_args()
    for name, size in SIZES[arguments.device].items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, size)
    return arguments


def main() -> None:
    """Train for several steps, each rank on data of its own."""
    arguments = options()
    device = torch.device(arguments.device, int(os.environ["LOCAL_RANK"]) if arguments.device == "cuda" else None)
    if arguments.device == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if arguments.device == "cuda" else "gloo")
    torch.manual_seed(0)
    width = arguments.width
    layers = [nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(arguments.layers)]
    model = DistributedDataParallel(
        nn.Sequential(*layers).to(device),
        bucket_cap_mb=0.001,
        find_unused_parameters=True,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = torch.Generator(device).manual_seed(dist.get_rank())
    for step in range(arguments.steps):
        for _ in range(arguments.micro_batches):
            x = torch.randn(arguments.batch, width, generator=data, device=device)
            loss = (model(x) - x).square().mean() / arguments.micro_batches
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 1000 == 0 and dist.get_rank() == 0:
            print(f"step {step}: loss {loss.item() * arguments.micro_batches:.3f}")  # noqa: T201
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
