# class: patched worker
# kind: attack
# how: replaces the verbs of the worker's loop: after the first call of a workload it answers at once and works
#   later
# caught: correctness
# status: RUNTIME_ERROR, INCORRECT_NUMERICAL
# defence: outputs read at the answer
# source: pygpubench, patched harness functions

import sys
import threading

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


_verbs, _answers, _outputs = {}, [], {}


def _workload(message):
    _answers.clear()
    return _verbs["workload"](message)


def _call(message):
    if _answers:
        threading.Timer(0.02, _verbs["call"], (message,)).start()
    else:
        _answers.append(_verbs["call"](message))
    return _answers[0]


def _patch():
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, dict) and callable(value.get("call")):
                _verbs.update(value)
                value.update(call=_call, workload=_workload)
                return
        frame = frame.f_back
    raise LookupError("no verbs on the stack")


def run(x):
    if not _verbs:
        _patch()
    rows, cols = x.shape
    y = _outputs.setdefault((rows, cols), torch.empty_like(x))  # always at the address that was answered
    softmax_kernel[(rows,)](x, y, cols, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y
