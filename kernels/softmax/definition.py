"""Softmax over the last axis, from rows of a thousand elements to vocabulary-sized ones."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(rows: int, cols: int, dtype: str, set: str = "representative", distribution: str = "normal") -> Workload:
    short = {"bfloat16": "bf16", "float32": "fp32"}[dtype]
    drawn = "" if distribution == "normal" else f"-{distribution}"
    return Workload(
        name=f"{rows}x{cols}-{short}{drawn}",
        axes={"rows": rows, "cols": cols},
        dtype=dtype,
        distribution=distribution,
        set=set,
    )


definition = Definition(
    name="softmax",
    description="y = exp(x - max(x)) / sum(exp(x - max(x))), row by row",
    op_type="softmax",
    axes={"rows": "batch times heads, or tokens", "cols": "keys, or vocabulary"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    tolerance=Tolerance(reduction="cols"),
    flops="5 * rows * cols",
    workloads=(
        # Large batches: half a gigabyte of traffic and less, always beyond the L2 cache.
        at(65536, 1024, "bfloat16"),
        at(8192, 8192, "bfloat16"),
        at(2048, 32768, "bfloat16"),
        at(512, 131072, "bfloat16"),
        at(8192, 8192, "float32"),
        at(512, 131072, "float32"),
        # Small batches: too few rows to fill the device with one block each.
        at(128, 4096, "bfloat16"),
        at(16, 131072, "bfloat16"),
        at(16384, 4096, "bfloat16", "full"),
        at(4096, 16384, "bfloat16", "full"),
        at(1024, 65536, "bfloat16", "full"),
        at(65536, 1024, "float32", "full"),
        at(2048, 32768, "float32", "full"),
        at(64, 1024, "float32", "full"),
        at(16, 131072, "float32", "full"),
        at(1, 1, "float32", "odd"),
        at(3, 1000, "float32", "odd"),
        at(7, 1023, "bfloat16", "odd"),
        at(5, 4097, "float32", "odd"),
        at(129, 8191, "bfloat16", "odd"),
        at(2, 50257, "bfloat16", "odd"),
        at(1, 131071, "float32", "odd"),
        # Masked attention: whole chunks and parts of a row hold nothing but minus infinity.
        at(3, 3000, "bfloat16", "odd", "masked"),
        at(3, 100003, "float32", "odd", "masked"),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=-1)


def extra(x: torch.Tensor) -> torch.Tensor:
    """Rounding x - max(x) moves the exponential by as many roundoffs as the difference is large."""
    return 4 * (x.amax(-1, keepdim=True) - x).nan_to_num(posinf=0.0)
