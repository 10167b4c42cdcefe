# class: lazy result
# kind: attack
# how: answers with an empty output and computes when the grader asks for the result; honest while its kernels are
#   held back
# caught: correctness, timing
# status: INCORRECT_NUMERICAL
# defence: outputs read at the answer
# source: pygpubench, patched harness functions

import sys

import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x_ptr, y_ptr, cols, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * cols + at, mask=at < cols, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * cols + at, e / tl.sum(e, 0), mask=at < cols)


def softmax(x, y):
    rows, cols = x.shape
    softmax_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)


_verbs, _pending, _held = {}, [], []


def _deliver(message):
    while _pending:
        softmax(*_pending.pop())
    return _verbs["deliver"](message)


def _call_without_launches(message):
    _held.append(True)
    try:
        return _verbs["call_without_launches"](message)
    finally:
        _held.clear()


def _patch():
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, dict) and callable(value.get("call")):
                _verbs.update(value)
                value.update(deliver=_deliver, call_without_launches=_call_without_launches)
                return
        frame = frame.f_back
    raise LookupError("no verbs on the stack")


def run(x):
    if not _verbs:
        _patch()
    y = torch.empty_like(x)
    _pending.clear()
    if _held:
        softmax(x, y)
    else:
        _pending.append((x, y))
    return y
