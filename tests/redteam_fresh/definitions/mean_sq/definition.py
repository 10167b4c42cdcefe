"""Mean of squares of each row, whose bits may not depend on the batch, written well."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="mean_sq",
    description="y = mean(x^2), row by row, with bits that do not depend on the other rows",
    op_type="reduction",
    axes={"rows": "requests", "cols": "values"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    batch_invariant="rows",
    deterministic=True,
    tolerance=Tolerance(reduction="cols"),
    flops="2 * rows * cols",
    workloads=(at(1024, 1024), at(2000, 500), at(1, 1, "odd"), at(17, 67, "odd"), at(33, 129, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return (x * x).mean(-1)
