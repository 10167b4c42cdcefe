# class: stream escape
# kind: attack
# how: exchanges on a stream of its own that does not wait for the inputs
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
    with torch.cuda.stream(_streams[0]):
        total = partial[0].clone()
        dist.all_reduce(total)
        results = finish(residual + total, weight, eps)
    torch.cuda.current_stream().wait_stream(_streams[0])
    for result in results:
        result.record_stream(torch.cuda.current_stream())
    return results
