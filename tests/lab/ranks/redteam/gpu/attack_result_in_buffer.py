# class: reused symmetric buffer
# kind: attack
# how: returns a view of its symmetric buffer, which the next call overwrites
# caught: correctness

import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symmetric

CAPACITY = 1 << 20
_all = symmetric.empty(4 * CAPACITY, dtype=torch.float32, device=f"cuda:{torch.cuda.current_device()}")
_meeting = symmetric.rendezvous(_all, dist.group.WORLD)


def part(rank, place, like):
    """Memory of a rank that every rank reads: one of four places, in the shape of a tensor."""
    return _meeting.get_buffer(rank, like.shape, like.dtype, place * CAPACITY)


def finish(hidden, weight, eps):
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden


def run(partial, residual, weight, eps):
    own = partial[0]
    hidden = part(dist.get_rank(), 2, own)
    hidden.copy_(own)
    dist.all_reduce(hidden)
    hidden += residual
    return finish(hidden, weight, eps)
