"""What the A/A floor is measured with: one plain operator; `noise.SIZES` says at which sizes."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int) -> Workload:
    """One size."""
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="aa",
    description="y = x + x * w: compared with itself, so that every difference is noise",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "w": TensorSpec(shape=("cols",))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="2 * rows * cols",
    workloads=(at(256, 1024), at(2048, 1024), at(4096, 1024), at(4096, 4096)),
)


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """One fused multiply and add an element."""
    return torch.addcmul(x, x, w)
