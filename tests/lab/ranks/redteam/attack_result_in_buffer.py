# class: reused symmetric buffer
# kind: attack
# how: returns views of a buffer that the next call overwrites
# caught: correctness
# status: INCORRECT_NUMERICAL

import torch
import torch.distributed as dist


def finish(hidden, weight, eps):
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden


_hidden = {}


def run(partial, residual, weight, eps):
    hidden = _hidden.setdefault(residual.shape, torch.empty_like(residual))
    hidden.copy_(partial[0])
    dist.all_reduce(hidden)
    hidden += residual
    return finish(hidden, weight, eps)
