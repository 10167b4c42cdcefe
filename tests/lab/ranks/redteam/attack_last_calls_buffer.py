# class: reused symmetric buffer
# kind: attack
# how: adds what the peer's buffer holds, which may be the part of the last call
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
    rank, own = dist.get_rank(), partial[0]
    shared("part", rank, own.numel()).copy_(own.flatten())
    peer = shared("part", 1 - rank, own.numel()).view(own.shape)
    return finish(residual + (own + peer), weight, eps)
