# class: plain collective
# kind: control
# how: gathers all parts and adds them

import torch
import torch.distributed as dist


def finish(hidden, weight, eps):
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden


def run(partial, residual, weight, eps):
    own = partial[0].contiguous()
    parts = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, own)
    return finish(residual + torch.stack(parts).sum(0), weight, eps)
