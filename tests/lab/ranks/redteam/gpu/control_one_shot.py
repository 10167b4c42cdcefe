# class: symmetric buffers
# kind: control
# how: two buffers in turn, and one barrier a call: a peer is at most one call behind

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
    own, place = partial[0], _turn[0] % 2
    _turn[0] += 1
    part(dist.get_rank(), place, own).copy_(own)
    _meeting.barrier()
    total = own.clone()
    for rank in others():
        total += part(rank, place, own)
    return finish(residual + total, weight, eps)


_turn = [0]
