"""Red team's logsumexp of rows that may hold infinities and NaN."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, set: str = "representative", kind: str = "normal") -> Workload:
    return Workload(name=f"{rows}x{cols}-{kind}", axes={"rows": rows, "cols": cols}, set=set, distribution=kind)


definition = Definition(
    name="log_evidence",
    description="y = log(sum(exp(x))), row by row",
    op_type="reduction",
    axes={"rows": "rows", "cols": "hypotheses"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    tolerance=Tolerance(reduction="cols"),
    flops="4 * rows * cols",
    workloads=(at(64, 4096), at(512, 1000, kind="nonfinite"), at(17, 67, "odd", "nonfinite"), at(33, 129, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.logsumexp(-1)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    """The largest element and the logarithm of the sum may cancel."""
    most = x.amax(-1)
    return torch.where(most.isfinite(), most.abs() + torch.log(torch.tensor(float(x.shape[-1] + 1))), most.abs())
