# class: skipped exchange
# kind: attack
# how: takes its own part as many times as there are ranks
# caught: correctness
# status: INCORRECT_NUMERICAL

import torch
import torch.distributed as dist


def finish(hidden, weight, eps):
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden


def run(partial, residual, weight, eps):
    return finish(residual + partial[0] * dist.get_world_size(), weight, eps)
