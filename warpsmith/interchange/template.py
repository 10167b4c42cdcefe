"""`warpsmith new <op>`: a complete definition of a small operator to start editing from."""

from __future__ import annotations

from warpsmith.interchange.draft import DefinitionDraft

_TEXT = '''\
"""@OP@: row-wise softmax of scaled values. A working example: change it into your operator.

`warpsmith judge` compares every version of a kernel with `reference` below, on the workloads below.
"""

from __future__ import annotations

import torch

from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload

# The points the operator is judged at. `representative` every round, `full` at the baseline and the
# end, `odd` for correctness only: sizes that no tile divides find the mistakes that round ones hide.
WORKLOADS = (
    Workload(name="4096x1024-float32", axes={"rows": 4096, "cols": 1024}),
    Workload(name="4096x1024-bfloat16", axes={"rows": 4096, "cols": 1024}, dtype="bfloat16"),
    Workload(name="256x16384-float32", axes={"rows": 256, "cols": 16384}, set="full"),
    Workload(name="7x129-float32", axes={"rows": 7, "cols": 129}, set="odd"),
    Workload(name="1x1-float32", axes={"rows": 1, "cols": 1}, set="odd"),
)

definition = Definition(
    name="@OP@",  # the same as the folder
    description="Softmax of each row of scale * x.",
    op_type="softmax",  # the family, as FlashInfer-Trace names it
    # Axis name to what it is, or to a number where the size is fixed.
    axes={"rows": "independent rows", "cols": "elements of a row"},
    # Parameters in the order of a kernel's `run`. A tensor without a dtype has the workload's.
    inputs={
        "x": TensorSpec(shape=("rows", "cols"), description="logits"),
        "scale": ScalarSpec(value=0.125, description="factor before the softmax"),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"), description="weights; each row sums to 1")},
    # The bound on errors grows with the length that is summed over; the data types decide the rest.
    tolerance=Tolerance(reduction="cols"),
    # The least work: scale, maximum, subtract, exponential, sum, divide. Bytes follow from the tensors.
    flops="6 * rows * cols",
    workloads=WORKLOADS,
)


def reference(x: torch.Tensor, scale: float) -> torch.Tensor:
    """What the operator means, in plain PyTorch; the lab also runs it in float64 as the truth."""
    return torch.softmax(x.float() * scale, dim=-1).to(x.dtype)


def extra(x: torch.Tensor, scale: float) -> torch.Tensor:
    """Further rounding steps an element: an error in the exponential's argument grows with the argument.

    Leave this function out where a sum is all that rounds.
    """
    values = x.double() * scale
    return (values - values.amax(dim=-1, keepdim=True)).abs()
'''


def draft_example(op: str) -> DefinitionDraft:
    """The example under the name `op`."""
    return DefinitionDraft(files={"definition.py": _TEXT.replace("@OP@", op)})
