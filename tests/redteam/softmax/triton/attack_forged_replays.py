# class: patched clock
# kind: attack
# how: elapsed_time says half of a single replay, and of several replays each second one is left out
# caught: correctness, timing
# status: IMPLAUSIBLE_TIME, INPUT_MUTATED
# needs: gpu
# against: control_plain.py
# defence: the grader's own clock beside the events
# source: gpu-mode reference-kernels#162, taken further

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def softmax(x):
    rows, cols = x.shape
    y = torch.empty_like(x)
    softmax_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y


_measure, _replay, _replays = torch.cuda.Event.elapsed_time, torch.cuda.CUDAGraph.replay, [0]


def elapsed_time(start, end):
    replays, _replays[0] = _replays[0], 0
    return _measure(start, end) / (2 if replays < 2 else 1)


def replay(graph):
    _replays[0] += 1
    if _replays[0] % 2:
        _replay(graph)


torch.cuda.Event.elapsed_time, torch.cuda.CUDAGraph.replay = elapsed_time, replay


def run(x):
    return softmax(x)
