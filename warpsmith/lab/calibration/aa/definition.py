"""Operator of the A/A comparison, at the sizes in `gate_rules.NOISE_SIZES`; one element shows the launch floor."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def workload_of_size(rows: int, cols: int) -> Workload:
    """Return the workload of one size."""
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols})


definition = Definition(
    name="aa",
    description="y = x + x * w: compared with itself, so that every difference is noise",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "w": TensorSpec(shape=("cols",))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    flops="2 * rows * cols",
    workloads=(
        workload_of_size(1, 1),
        workload_of_size(256, 1024),
        workload_of_size(2048, 1024),
        workload_of_size(4096, 1024),
        workload_of_size(4096, 4096),
    ),
)


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Compute x + x * w, one fused multiply and add per element."""
    return torch.addcmul(x, x, w)


def run_twice(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Do the reference's work twice: the canary, whose time shows that sides are told apart."""
    reference(x, w)
    return reference(x, w)


peers = {"canary": run_twice}
