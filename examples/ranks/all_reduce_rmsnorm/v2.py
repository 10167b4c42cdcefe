"""One all-reduce instead of a gather: no rank holds the parts of the others."""

import torch
import torch.distributed


def run(
    partial: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this rank's results; `partial` has the shape (1, rows, cols)."""
    total = partial[0].clone()
    torch.distributed.all_reduce(total)
    total += residual
    return torch.nn.functional.rms_norm(total, (total.shape[-1],), weight, eps), total
