"""PyTorch's product and reduce-scatter over symmetric memory, which overlaps products of chunks with copies."""

import torch
import torch.distributed
import torch.distributed._symmetric_memory


def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return this rank's rows of the product."""
    group = torch.distributed.group.WORLD.group_name
    return torch.ops.symm_mem.fused_matmul_reduce_scatter(x, weight, "sum", 0, group).contiguous()
