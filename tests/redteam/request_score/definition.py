"""Red team's score of requests, whose bits may not depend on who else is served."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="request_score",
    description="y = x w, a score for each request",
    op_type="gemv",
    axes={"rows": "requests", "cols": "features"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "w": TensorSpec(shape=("cols",), role="weight")},
    outputs={"y": TensorSpec(shape=("rows",))},
    deterministic=True,
    batch_invariant="rows",
    tolerance=Tolerance(reduction="cols"),
    flops="2 * rows * cols",
    workloads=(at(64, 1024), at(256, 1000), at(1, 1, "odd"), at(17, 67, "odd"), at(33, 129, "odd")),
)


def reference(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x @ w


def magnitude(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Terms cancel: rounding errors are relative to the sum of their absolute values."""
    return x.abs() @ w.abs()
