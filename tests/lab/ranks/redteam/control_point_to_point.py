# class: point to point
# kind: control
# how: each rank sends its part to the other one and adds the two in its own order

import torch
import torch.distributed as dist


def finish(hidden, weight, eps):
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden


def run(partial, residual, weight, eps):
    own, peer = partial[0].contiguous(), torch.empty_like(partial[0])
    sending = dist.isend(own, 1 - dist.get_rank())
    dist.recv(peer, 1 - dist.get_rank())
    sending.wait()
    return finish(residual + (own + peer), weight, eps)
