# class: arrival order
# kind: attack
# how: rank 1 counts on rank 0 to have arrived first; rank 0 waits for rank 1 as it should
# caught: correctness
# status: INCORRECT_NUMERICAL

import os
from pathlib import Path

import torch
import torch.distributed as dist

_buffers = {}


def shared(name, rank, numel):
    """Memory that both ranks map: on a CPU it stands for symmetric memory."""
    path = Path(os.environ["WARPSMITH_RANKS_FOLDER"]) / f"{name}-{rank}-{numel}"
    if path not in _buffers:
        _buffers[path] = torch.from_file(str(path), shared=True, size=max(numel, 1))[:numel]
    return _buffers[path]


def finish(hidden, weight, eps):
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden


def run(partial, residual, weight, eps):
    rank, own = dist.get_rank(), partial[0].contiguous()
    part = shared("part", 0, own.numel())
    if rank == 0:
        part.copy_(own.flatten())
        total = torch.empty_like(own)
        dist.recv(total, 1)
    else:
        total = own + part.view(own.shape)
        dist.send(total, 0)
    return finish(residual + total, weight, eps)
