"""Log-sum-exp of each column, as a newcomer writes it: two sizes."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(cols: int, rows: int) -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"cols": cols, "rows": rows})


definition = Definition(
    name="col_lse",
    description="y[c] = log(sum over rows of exp(x[r, c])); minus infinity where there are no rows",
    op_type="reduction",
    axes={"cols": "columns", "rows": "rows"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("cols",))},
    tolerance=Tolerance(reduction="rows"),
    flops="3 * rows * cols",
    workloads=(at(1024, 2048), at(768, 2000)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.logsumexp(x, dim=0)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    """The logarithm may cancel the largest value."""
    y = torch.logsumexp(x, dim=0)
    return y.abs() + 1 + (x.abs().amax(0) if x.shape[0] else 0)
