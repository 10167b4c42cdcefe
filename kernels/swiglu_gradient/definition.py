"""A activation region 2051bd35 of train_llama.py under torch.compile: its shapes, types and layouts.

Written by `warpsmith program extract`; calls.json has the number of calls per workload.
"""

from __future__ import annotations

import torch

from warpsmith import Definition, TensorSpec, Tolerance, Workload

definition = Definition(
    name="swiglu_gradient",
    description="activation region 2051bd35 of train_llama.py under torch.compile",
    op_type="activation",
    axes={"d0": "8 in the program", "d1": "1024 in the program"},
    inputs={"x0": TensorSpec(shape=("d0", "d1", 16384)), "x1": TensorSpec(shape=("d0", "d1", 8192))},
    outputs={"out": TensorSpec(shape=("d0", "d1", 16384))},
    # The number of operations is unknown; the floor follows from the bytes alone.
    flops="0",
    # Calls and time of one recorded step:
    # 8x1024x16384-bfloat16: 8 calls, 2.37e+03 us
    workloads=(Workload(name="8x1024x16384-bfloat16", axes={"d0": 8, "d1": 1024}, dtype="bfloat16"),),
    tags=("region:2051bd35",),
)


def reference(x0, x1):
    """The region, call by call."""
    aten = torch.ops.aten
    split = aten.split.Tensor(x0, 8192, -1)
    part = split[1]
    mul = aten.mul.Tensor(x1, part)
    convert_element_type = mul.to(torch.promote_types(x0.dtype, torch.float32))
    part2 = split[0]
    convert_element_type2 = part2.to(torch.promote_types(x0.dtype, torch.float32))
    neg = aten.neg.default(convert_element_type2)
    exp = aten.exp.default(neg)
    add = aten.add.Tensor(exp, 1)
    reciprocal = aten.reciprocal.default(add)
    mul2 = aten.mul.Tensor(reciprocal, 1)
    mul3 = aten.mul.Tensor(convert_element_type, mul2)
    sub = aten.sub.Tensor(1, mul2)
    mul4 = aten.mul.Tensor(convert_element_type2, sub)
    add2 = aten.add.Tensor(mul4, 1)
    mul5 = aten.mul.Tensor(mul3, add2)
    convert_element_type3 = mul5.to(x0.dtype)
    div = aten.div.Tensor(convert_element_type2, add)
    convert_element_type4 = div.to(x0.dtype)
    mul6 = aten.mul.Tensor(x1, convert_element_type4)
    cat = aten.cat.default([convert_element_type3, mul6], 2)
    return cat


def magnitude(x0, x1):
    """Scale of rounding errors: the element, or a typical one if sums cancelled to less."""
    results = reference(x0, x1)
    results = results if isinstance(results, tuple | list) else (results,)
    results = [result.double() for result in results]
    typical = [r.nan_to_num(posinf=0.0, neginf=0.0).square().mean().sqrt() for r in results]
    return tuple(r.abs().clamp_min(t) for r, t in zip(results, typical))
