"""The k largest elements of each row with their places, in falling order: what beam search, retrieval and sparse layers
begin with.

    values[i, j] = x[i, indices[i, j]]

Of equal elements the one at the lower place comes first, so there is one right result. NaN is larger than all numbers,
and zeros of both signs are equal, as in `torch.topk`, which leaves the order of equal elements open. Where k is larger
than a row, all of the row comes back, sorted.
"""

from collections.abc import Callable
from typing import Any

import torch

from warpsmith import Peer
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload


def at(rows: int, cols: int, kept: int, dtype: str = "float32", set: str = "representative") -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[dtype]
    return Workload(
        name=f"{rows}x{cols}-{kept}-{short}",
        axes={"rows": rows, "cols": cols, "kept": kept},
        dtype=dtype,
        distribution="mixed" if set == "odd" else "normal",
        scalars={"k": kept},
        set=set,
    )


definition = Definition(
    name="top_k",
    description="the k largest elements of each row with their places, in falling order, equal ones by their places",
    op_type="sampling",
    axes={"rows": "independent choices", "cols": "elements of a row", "kept": "elements that are chosen"},
    inputs={
        "x": TensorSpec(shape=("rows", "cols")),
        "k": ScalarSpec(type="int", value=64, description="the axis `kept`"),
    },
    outputs={
        "values": TensorSpec(shape=("rows", "kept")),
        "indices": TensorSpec(shape=("rows", "kept"), dtype="int64"),
    },
    drawn_along="rows",
    deterministic=True,
    flops="rows * cols",
    constraints=("kept <= cols",),
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
        at(129, 513, 2, "float16", "odd"),
        at(2, 50257, 50, "bfloat16", "odd"),
        at(3, 65537, 33, set="odd"),
        at(1, 300007, 700, set="odd"),
        at(2, 9000, 1500, "float16", "odd"),
    ),
)


def inputs(workload: Workload, generator: torch.Generator, device: str) -> dict[str, torch.Tensor]:
    """Rows of normal numbers; where they are mixed, each has what a choice may stumble over.

    They are drawn here because k is the size of the results: no other number fits them.
    """
    rows, cols = workload.axes["rows"], workload.axes["cols"]
    x = torch.randn(rows, cols, generator=generator, device=device)
    if workload.distribution == "mixed":
        chosen = torch.randint(len(_KINDS), (rows,), generator=generator, device=device)
        chance = torch.rand(rows, cols, generator=generator, device=device)
        for number, change in enumerate(_KINDS):
            of_kind = chosen == number
            x[of_kind] = change(x[of_kind], chance[of_kind])
    return {"x": x.to(getattr(torch, workload.dtype))}


_KINDS: tuple[Callable[[torch.Tensor, torch.Tensor], torch.Tensor], ...] = (
    lambda x, _: x,
    lambda x, _: x.round(),  # many equal ones, zeros of both signs among them
    lambda x, _: x[:, :1].expand_as(x),
    lambda x, _: x.sort().values,
    lambda x, _: x.sort(descending=True).values,
    lambda x, _: x * 2.0**-140,  # subnormal in float32, zero elsewhere
    lambda x, chance: x.masked_fill(chance < 0.9, -torch.inf),
    lambda x, chance: x.masked_fill(chance < 0.01, torch.inf).masked_fill(chance > 0.99, torch.nan),
)
"""Functions of rows of normal numbers and of as many numbers from 0 to 1."""


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
