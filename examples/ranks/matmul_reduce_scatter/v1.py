"""One product, then NCCL's reduce-scatter."""

import torch
import torch.distributed


def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return this rank's rows of the product."""
    whole = x @ weight
    y = whole.new_empty(whole.shape[0] // torch.distributed.get_world_size(), whole.shape[1])
    torch.distributed.reduce_scatter_tensor(y, whole)
    return y
