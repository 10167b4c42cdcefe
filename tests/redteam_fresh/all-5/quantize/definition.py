"""Rounding to int8, as a newcomer writes it: two sizes, no odd ones."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(count):
    return Workload(name=f"{count}", axes={"count": count})


definition = Definition(
    name="quantize",
    description="q = round(x / scale), half to even, between -128 and 127",
    op_type="quantize",
    axes={"count": "elements"},
    inputs={"x": TensorSpec(shape=("count",)), "scale": ScalarSpec(value=0.05)},
    outputs={"q": TensorSpec(shape=("count",), dtype="int8")},
    tolerance=Tolerance(required_match=0.9999),
    flops="3 * count",
    workloads=(at(100000), at(300000)),
)


def reference(x, scale):
    return torch.clamp(torch.round(x / scale), -128, 127).to(torch.int8)
