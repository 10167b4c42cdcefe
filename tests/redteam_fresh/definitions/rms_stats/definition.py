"""RMS norm that also returns the scale, as a newcomer writes it: bfloat16, two sizes, a little leniency."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, dtype="bfloat16")


definition = Definition(
    name="rms_stats",
    description="scale = 1 / sqrt(mean(x^2) + 1e-6), y = x * scale, row by row",
    op_type="norm",
    axes={"rows": "tokens", "cols": "hidden size"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols")), "scale": TensorSpec(shape=("rows",), dtype="float32")},
    tolerance={"y": Tolerance(reduction="cols", required_match=0.99), "scale": Tolerance(reduction="cols")},
    flops="3 * rows * cols",
    workloads=(at(1024, 1024), at(640, 2048)),
)


def reference(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    v = x.float()
    scale = torch.rsqrt((v * v).mean(-1) + 1e-6)
    return (v * scale[:, None]).to(x.dtype), scale
