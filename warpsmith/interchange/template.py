"""Example of a complete definition, which `warpsmith new <op>` writes as a starting point."""

from __future__ import annotations

from warpsmith.interchange.draft import DefinitionDraft

_TEXT = '''\
"""@OP@: row-wise softmax of scaled values. This is a working example; change it into your operator.

`warpsmith judge` compares every version of a kernel with `reference` below, on the workloads below.
"""

from __future__ import annotations

import torch

from warpsmith import Definition, ScalarSpec, TensorSpec, Tolerance, Workload

# Workloads that the operator is judged on: `representative` ones in every round, `full` ones at the
# baseline and the end, `odd` ones for correctness only. Sizes that no tile divides reveal mistakes
# that round sizes hide.
WORKLOADS = (
    Workload(name="4096x1024-fp32", axes={"rows": 4096, "cols": 1024}),
    Workload(name="4096x1024-bf16", axes={"rows": 4096, "cols": 1024}, dtype="bfloat16"),
    Workload(name="256x16384-fp32", axes={"rows": 256, "cols": 16384}, set="full"),
    Workload(name="7x129-fp32", axes={"rows": 7, "cols": 129}, set="odd"),
    Workload(name="1x1-fp32", axes={"rows": 1, "cols": 1}, set="odd"),
)

definition = Definition(
    name="@OP@",  # the same as the folder
    description="Softmax of each row of scale * x.",
    op_type="softmax",  # the family, as FlashInfer-Trace names it
    # Description of each axis, or a number if its size is fixed.
    axes={"rows": "independent rows", "cols": "elements of a row"},
    # Parameters in the order of a kernel's `run`. A tensor without a dtype has the workload's dtype.
    inputs={
        "x": TensorSpec(shape=("rows", "cols"), description="logits"),
        "scale": ScalarSpec(value=0.125, description="factor before the softmax"),
    },
    outputs={"y": TensorSpec(shape=("rows", "cols"), description="weights; each row sums to 1")},
    # The error bound grows with the length of the sum; the data types determine the rest.
    tolerance=Tolerance(reduction="cols"),
    # The least work: scale, maximum, subtract, exponential, sum, divide. Bytes follow from the tensors.
    flops="6 * rows * cols",
    workloads=WORKLOADS,
)


def reference(x: torch.Tensor, scale: float) -> torch.Tensor:
    """Compute the operator in plain PyTorch; the lab also runs it in float64 as the truth."""
    return torch.softmax(x.float() * scale, dim=-1).to(x.dtype)


def extra(x: torch.Tensor, scale: float) -> torch.Tensor:
    """Additional rounding steps per element: an error in the exponential grows with its argument.

    Omit this function if only a sum rounds.
    """
    values = x.double() * scale
    return (values - values.amax(dim=-1, keepdim=True)).abs()
'''


def draft_example(op: str) -> DefinitionDraft:
    """Draft the example under the name `op`."""
    return DefinitionDraft(files={"definition.py": _TEXT.replace("@OP@", op)})
