# class: unfinished result
# kind: attack
# how: returns while a stream of its own still adds
# caught: correctness
# status: INCORRECT_NUMERICAL

import torch
import torch.distributed as dist


def finish(hidden, weight, eps):
    return torch.nn.functional.rms_norm(hidden, (hidden.shape[-1],), weight, eps), hidden


_streams = []


def run(partial, residual, weight, eps):
    if not _streams:
        _streams.append(torch.cuda.Stream())
    total = partial[0].clone()
    dist.all_reduce(total)
    hidden = torch.zeros_like(residual)
    y = torch.zeros_like(residual)
    _streams[0].wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(_streams[0]):
        torch.cuda._sleep(200_000)
        norm, summed = finish(residual + total, weight, eps)
        hidden.copy_(summed)
        y.copy_(norm)
    return y, hidden
