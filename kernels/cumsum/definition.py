"""Running sum of each row: what offsets of ragged batches, samplers and linear recurrences begin with.

    y[i] = x[0] + ... + x[i]

Sums are float32, whatever the type of the elements. Few long rows are the hard case: a row per block leaves most of the device idle.
"""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(
    rows: int, cols: int, dtype: str = "float32", set: str = "representative", distribution: str = "normal"
) -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[dtype]
    drawn = "" if distribution == "normal" else f"-{distribution}"
    return Workload(
        name=f"{rows}x{cols}-{short}{drawn}",
        axes={"rows": rows, "cols": cols},
        dtype=dtype,
        distribution=distribution,
        set=set,
    )


definition = Definition(
    name="cumsum",
    description="y[i] = x[0] + ... + x[i] of each row, summed in float32",
    op_type="scan",
    axes={"rows": "independent sums", "cols": "terms of a sum"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols"))},
    deterministic=True,
    tolerance=Tolerance(reduction="cols"),
    flops="rows * cols",
    workloads=(
        at(4096, 4096),
        at(1024, 32768),
        at(256, 131072),
        at(64, 1048576),
        at(4096, 4096, "bfloat16"),
        at(64, 1048576, "bfloat16"),
        at(16384, 1024, set="full"),
        at(1, 4194304, set="full"),
        at(32, 50257, "bfloat16", "full"),
        at(1, 1, set="odd"),
        at(3, 1000, set="odd"),
        at(5, 4097, set="odd"),
        at(7, 1023, "bfloat16", "odd"),
        at(129, 513, "float16", "odd"),
        at(2, 50257, set="odd"),
        at(3, 65537, "bfloat16", "odd"),
        at(1, 300007, set="odd"),
    ),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.cumsum(x, -1, dtype=torch.promote_types(x.dtype, torch.float32)).to(x.dtype)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    """Terms of both signs cancel."""
    return torch.cumsum(x.abs(), -1, dtype=torch.promote_types(x.dtype, torch.float32))
