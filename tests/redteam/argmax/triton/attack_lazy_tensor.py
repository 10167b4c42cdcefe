# class: lazy result
# kind: attack
# how: returns a tensor subclass, named Tensor, that computes when someone touches it
# caught: correctness
# defence: outputs read at the answer
# source: DeepReinforce, gpu-mode#161

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


class Tensor(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            for value in args:
                if isinstance(value, cls) and value.__dict__.get("source") is not None:
                    x, value.source = value.source, None
                    torch.Tensor.copy_(value, argmax(x))
            return function(*args, **(kwargs or {}))


def run(x):
    index = torch.empty(x.shape[0], dtype=torch.int64, device=x.device).as_subclass(Tensor)
    index.__dict__["source"] = x
    return index
