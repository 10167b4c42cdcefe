"""One all-reduce instead of a gather: no rank holds the parts of the others."""

import torch
import torch.distributed


def run(partial, residual, weight, eps):
    total = partial[0].clone()
    torch.distributed.all_reduce(total)
    total += residual
    return torch.nn.functional.rms_norm(total, (total.shape[-1],), weight, eps), total
