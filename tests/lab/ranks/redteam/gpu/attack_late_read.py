# class: late read
# kind: attack
# how: reads the peers' buffers after they may have gone on to their next call
# caught: correctness
# status: INCORRECT_NUMERICAL

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


def others():
    return [rank for rank in range(dist.get_world_size()) if rank != dist.get_rank()]


def run(partial, residual, weight, eps):
    own = partial[0]
    part(dist.get_rank(), 0, own).copy_(own)
    _meeting.barrier()
    if dist.get_rank() == 1:
        torch.cuda._sleep(1_000_000)  # other work before the read
    total = own.clone()
    for rank in others():
        total += part(rank, 0, own)
    return finish(residual + total, weight, eps)
