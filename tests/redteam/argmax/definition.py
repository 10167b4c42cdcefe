"""Argmax over the last axis, at shapes small enough for two CPU cores and for Triton's interpreter."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int, set: str = "representative", distribution: str = "normal") -> Workload:
    drawn = "" if distribution == "normal" else f"-{distribution}"
    return Workload(
        name=f"{rows}x{cols}{drawn}", axes={"rows": rows, "cols": cols}, distribution=distribution, set=set
    )


definition = Definition(
    name="argmax",
    description="index = the first place of max(x), row by row",
    op_type="reduction",
    axes={"rows": "tokens", "cols": "vocabulary"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"index": TensorSpec(shape=("rows",), dtype="int64")},
    deterministic=True,
    flops="rows * cols",
    workloads=(
        at(16, 16384),
        at(9, 32768),
        at(4096, 4096, "full"),
        at(256, 50257, "full"),
        at(1, 1, "odd"),
        at(3, 17, "odd"),
        at(2, 1025, "odd"),
        at(3, 1000, "odd", "masked"),
        at(1, 16411, "odd"),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.argmax(dim=-1)
