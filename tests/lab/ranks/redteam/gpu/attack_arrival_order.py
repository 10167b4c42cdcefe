# class: arrival order
# kind: attack
# how: rank 1 counts on rank 0 to have arrived first; rank 0 waits for rank 1 as it should
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


def run(partial, residual, weight, eps):
    own, place = partial[0], _turn[0] % 2
    _turn[0] += 1
    part(dist.get_rank(), place, own).copy_(own)
    total = own.clone()
    if dist.get_rank() == 1:
        _meeting.put_signal(0)
        total += part(0, place, own)
    elif dist.get_rank() == 0:
        _meeting.wait_signal(1)
        total += part(1, place, own)
    return finish(residual + total, weight, eps)


_turn = [0]
