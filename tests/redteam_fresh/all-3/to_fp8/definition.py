"""Eight-bit numbers."""

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


definition = Definition(
    name="to_fp8",
    description="q = x rounded to float8_e4m3fn, after a cut at 448",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"q": TensorSpec(shape=("rows", "cols"), dtype="float8_e4m3fn")},
    tolerance=Tolerance(required_match=0.99),
    flops="2 * rows * cols",
    workloads=(
        Workload(name="256x1024", axes={"rows": 256, "cols": 1024}),
        Workload(name="512x512", axes={"rows": 512, "cols": 512}),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.clamp(-448, 448).to(torch.float8_e4m3fn)
