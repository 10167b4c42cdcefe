# class: point to point
# kind: control
# how: each rank sends its part to every other one

import torch
import torch.distributed as dist


def finish(hidden, weight, eps):
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden


def others():
    return [rank for rank in range(dist.get_world_size()) if rank != dist.get_rank()]


def run(partial, residual, weight, eps):
    own = partial[0].contiguous()
    parts = {rank: torch.empty_like(own) for rank in others()}
    messages = [dist.P2POp(dist.isend, own, rank) for rank in others()]
    messages += [dist.P2POp(dist.irecv, each, rank) for rank, each in parts.items()]
    for work in dist.batch_isend_irecv(messages):
        work.wait()
    total = own.clone()
    for each in parts.values():
        total += each
    return finish(residual + total, weight, eps)
