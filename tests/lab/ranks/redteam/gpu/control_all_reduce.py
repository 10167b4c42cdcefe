# class: plain collective
# kind: control
# how: one all-reduce of NCCL

import torch
import torch.distributed as dist


def finish(hidden, weight, eps):
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden


def run(partial, residual, weight, eps):
    total = partial[0].clone()
    dist.all_reduce(total)
    return finish(residual + total, weight, eps)
