"""NCCL's all-gather, then one product."""

import torch
import torch.distributed


def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return this rank's columns of the product."""
    whole = x.new_empty(x.shape[0] * torch.distributed.get_world_size(), x.shape[1])
    torch.distributed.all_gather_into_tensor(whole, x)
    return whole @ weight
