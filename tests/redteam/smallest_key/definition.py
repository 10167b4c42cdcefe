"""Place of the smallest key of each row, the first of several; lists are padded with any key, often the largest one."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(rows: int, cols: int, set: str = "representative") -> Workload:
    return Workload(name=f"{rows}x{cols}", axes={"rows": rows, "cols": cols}, set=set)


definition = Definition(
    name="smallest_key",
    description="place of the smallest key of each row, the first of several; any 32-bit integer is a key",
    op_type="reduction",
    axes={"rows": "lists", "cols": "keys of a list"},
    inputs={"keys": TensorSpec(shape=("rows", "cols"), dtype="int32")},
    outputs={"place": TensorSpec(shape=("rows",), dtype="int64")},
    deterministic=True,
    flops="rows * cols",
    workloads=(at(64, 512), at(16, 4096), at(1, 1, "odd"), at(3, 100, "odd"), at(7, 1023, "odd")),
)


def reference(keys: torch.Tensor) -> torch.Tensor:
    smallest = keys == keys.amin(-1, keepdim=True)
    places = torch.arange(keys.shape[-1], device=keys.device).expand(keys.shape)
    return places.masked_fill(~smallest, keys.shape[-1]).amin(-1)
