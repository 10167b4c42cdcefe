# class: flag race
# kind: attack
# how: raises its flag two milliseconds before its part is written, as a slow link would
# caught: correctness
# status: INCORRECT_NUMERICAL

import os
import time
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


_calls = {}


def run(partial, residual, weight, eps):
    rank, own = dist.get_rank(), partial[0]
    numel = own.numel()
    call = _calls[numel] = _calls.get(numel, 0) + 1
    side = call % 2  # two buffers, so that the last call's may still be read
    shared(f"flag{numel}", rank, 1).fill_(call)
    time.sleep(0.002)
    shared(f"part{side}", rank, numel).copy_(own.flatten())
    flag = shared(f"flag{numel}", 1 - rank, 1)
    while flag.item() < call:
        pass
    return finish(residual + (own + shared(f"part{side}", 1 - rank, numel).view(own.shape)), weight, eps)
