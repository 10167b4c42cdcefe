"""Overlap of each pair of boxes, as suppression of doubles and matching need it."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(first: int, second: int, set: str = "representative") -> Workload:
    return Workload(name=f"{first}x{second}", axes={"first": first, "second": second}, set=set)


definition = Definition(
    name="box_iou",
    description="area of the intersection over that of the union of each pair of boxes; 0 where both are empty",
    op_type="geometry",
    axes={"first": "boxes", "second": "other boxes", "corners": 4},
    inputs={
        "a": TensorSpec(shape=("first", "corners"), description="x1, y1, x2, y2 in pixels"),
        "b": TensorSpec(shape=("second", "corners"), description="x1, y1, x2, y2 in pixels"),
    },
    outputs={"iou": TensorSpec(shape=("first", "second"))},
    flops="14 * first * second",
    constraints=("a and b have x1 <= x2 and y1 <= y2",),
    workloads=(at(300, 400), at(1000, 100), at(1, 1, "odd"), at(17, 67, "odd")),
)


def inputs(workload: Workload, generator: torch.Generator, device: str) -> dict[str, torch.Tensor]:
    def draw(count: int) -> torch.Tensor:
        corner = torch.rand((count, 2), generator=generator, device=device) * 800
        size = torch.rand((count, 2), generator=generator, device=device) * 300 + 1
        return torch.cat([corner, corner + size], 1)

    return {"a": draw(workload.axes["first"]), "b": draw(workload.axes["second"])}


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    low = torch.maximum(a[:, None, :2], b[None, :, :2])
    high = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    areas = [(boxes[:, 2:] - boxes[:, :2]).prod(-1) for boxes in (a, b)]
    union = areas[0][:, None] + areas[1][None] - shared
    return shared / union.clamp(min=1e-9)
