"""The k largest elements of each row with their places, in falling order: what beam search, retrieval and sparse layers
begin with.

    values[i, j] = x[i, indices[i, j]]

Of equal elements the one at the lower place comes first, so there is one right result. NaN is larger than all numbers,
and zeros of both signs are equal, as in `torch.topk`, which leaves the order of equal elements open. Where k is larger
than a row, all of the row comes back, sorted.
"""

from typing import Any

import torch

from warpsmith import Peer
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload


def at(
    rows: int, cols: int, k: int, dtype: str = "float32", set: str = "representative", distribution: str = "normal"
) -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[dtype]
    return Workload(
        name=f"{rows}x{cols}-{k}-{short}",
        axes={"rows": rows, "cols": cols, "k": k},
        dtype=dtype,
        distribution=distribution,
        set=set,
    )


definition = Definition(
    name="top_k",
    description="the k largest elements of each row with their places, in falling order, equal ones by their places",
    op_type="sampling",
    axes={"rows": "independent choices", "cols": "elements of a row", "k": "elements that are chosen"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "k": ScalarSpec(type="int", value=64),
    },
    outputs={
        "values": TensorSpec(shape=("rows", "k")),
        "indices": TensorSpec(shape=("rows", "k"), dtype="int64"),
    },
    deterministic=True,
    flops="rows * cols",
    constraints=("k <= cols",),
    workloads=(
        at(4096, 4096, 64),
        at(128, 131072, 64),
        at(64, 1048576, 64),
        at(4096, 4096, 64, "bfloat16"),
        at(64, 1048576, 64, "bfloat16"),
        at(8192, 256, 8, set="full"),
        at(32, 152064, 50, "bfloat16", "full"),
        at(1024, 32768, 256, set="full"),
        at(1, 4194304, 128, set="full"),
        at(1, 1, 1, set="odd"),
        at(3, 1000, 7, set="odd"),
        at(5, 4097, 64, set="odd"),
        at(7, 1023, 1023, "bfloat16", "odd"),
        at(129, 513, 2, "float16", "odd", "nonfinite"),
        at(2, 50257, 50, "bfloat16", "odd"),
        at(3, 65537, 33, set="odd", distribution="nonfinite"),
        at(1, 300007, 700, set="odd"),
        at(2, 9000, 1500, "float16", "odd"),
    ),
)


def reference(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    values, indices = x.sort(dim=-1, descending=True, stable=True)
    return values[:, :k].contiguous(), indices[:, :k].contiguous()


# Peers ----------------------------------------------------------------------------------------------------------


def by_place(inputs: dict[str, Any], outputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Equal elements by their places, in the rows whose places are different and hold what was returned."""
    x, values, indices = inputs["x"], outputs["values"], outputs["indices"]
    taken = x.gather(-1, indices.clamp(0, x.shape[1] - 1))
    held = ((taken == values) | (taken.isnan() & values.isnan())).all(-1, keepdim=True)
    ordered = indices.sort(-1).values
    apart = (ordered[:, 1:] > ordered[:, :-1]).all(-1, keepdim=True)
    inside = ((indices >= 0) & (indices < x.shape[1])).all(-1, keepdim=True)
    stable = reference(x, inputs["k"])[1]
    return {"values": values, "indices": torch.where(held & apart & inside, stable, indices)}


def torch_topk(x: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    """PyTorch's selection by digits, CUB's sort included."""
    values, indices = torch.topk(x, k, dim=-1)
    return values, indices


peers = {"torch.topk": Peer(torch_topk, canonical=by_place, differs="the order of equal elements is open")}
