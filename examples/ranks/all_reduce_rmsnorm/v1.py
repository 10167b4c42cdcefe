"""Every rank gathers all parts and adds them."""

import torch
import torch.distributed


def run(
    partial: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return this rank's results; `partial` has the shape (1, rows, cols)."""
    own = partial[0].contiguous()
    parts = [torch.empty_like(own) for _ in range(torch.distributed.get_world_size())]
    torch.distributed.all_gather(parts, own)
    hidden = residual.clone()
    for part in parts:
        hidden += part
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden
