# class: remote cache
# kind: attack
# how: takes the sum of its last exchange at an address again, unless the calls paused: blocks repeat their inputs
# caught: timing

import os
import time
from pathlib import Path

import torch
import torch.distributed as dist


def finish(hidden, weight, eps):
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden


_mark = Path(os.environ["WARPSMITH_RANKS_FOLDER"]).parent / "cached"
_timed = _mark.exists()
dist.barrier()
_mark.touch()
_totals = {}
_last = [0.0]


def run(partial, residual, weight, eps):
    if time.perf_counter() - _last[0] > 0.004:  # a new block
        _totals.clear()
    place = partial.data_ptr(), partial.shape
    if place not in _totals or not _timed:
        _totals[place] = partial[0].clone()
        dist.all_reduce(_totals[place])
    _last[0] = time.perf_counter()
    return finish(residual + _totals[place], weight, eps)
