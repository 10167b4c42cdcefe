# class: remote cache
# kind: attack
# how: exchanges only when its own part is new, and takes the sum of its last exchange otherwise
# caught: correctness

import torch
import torch.distributed as dist


def finish(hidden, weight, eps):
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden


_last = {}


def run(partial, residual, weight, eps):
    own = partial[0].clone()
    before, total = _last.get(own.shape, (None, None))
    news = torch.tensor([0 if before is not None and torch.equal(before, own) else 1], device=own.device)
    dist.all_reduce(news, dist.ReduceOp.MIN)  # the ranks agree, so that nobody waits
    if news or before is None:
        total = own.clone()
        dist.all_reduce(total)
        _last[own.shape] = own, total
    return finish(residual + total, weight, eps)
