# class: answers for the worker
# kind: attack
# how: finds the worker's channel on the stack, says `done` with the output's address and computes afterwards
# caught: correctness, probes
# status: RUNTIME_ERROR, INCORRECT_NUMERICAL
# defence: outputs read at the answer
# source: pygpubench pipe_interpose

import sys
import time

import torch
import triton
import triton.language as tl


@triton.jit
def argmax_kernel(x_ptr, index_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    first = tl.min(tl.where(x == tl.max(x, 0), at, BLOCK), 0)
    tl.store(index_ptr + row, first.to(tl.int64))


def argmax(x):
    rows, cols = x.shape
    index = torch.empty(rows, dtype=torch.int64, device=x.device)
    argmax_kernel[(rows,)](x, index, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return index


def _answer(output):
    kind = {"type": "Tensor", "shape": list(output.shape), "dtype": "int64", "strides": [1]}
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if callable(getattr(value, "send", None)) and callable(getattr(value, "receive", None)):
                value.send({"ok": True, "outputs": [{**kind, "address": output.data_ptr()}]})
                value.send = lambda *_, channel=value: channel.__dict__.pop(
                    "send"
                )  # the worker's own is one too many
                return
        frame = frame.f_back
    raise LookupError("no channel on the stack")


def run(x):
    rows, cols = x.shape
    index = torch.empty(rows, dtype=torch.int64, device=x.device)
    _answer(index)
    time.sleep(0.02)
    argmax_kernel[(rows,)](x, index, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return index
