"""Online hard example mining: the mean of the eight largest losses of each image."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(images: int, anchors: int, set: str = "representative") -> Workload:
    return Workload(name=f"{images}x{anchors}", axes={"images": images, "anchors": anchors}, set=set)


definition = Definition(
    name="hard_mean",
    description="y = mean of the 8 largest of each row, of all where there are fewer",
    op_type="reduction",
    axes={"images": "images", "anchors": "anchors"},
    inputs={"loss": TensorSpec(shape=("images", "anchors"))},
    outputs={"y": TensorSpec(shape=("images",))},
    tolerance=Tolerance(reduction="anchors"),
    flops="images * anchors",
    workloads=(at(64, 4096), at(32, 8732), at(1, 1, "odd"), at(17, 67, "odd"), at(33, 1290, "odd")),
)


def reference(loss: torch.Tensor) -> torch.Tensor:
    return loss.topk(min(8, loss.shape[-1]), dim=-1).values.mean(-1)


def magnitude(loss: torch.Tensor) -> torch.Tensor:
    return loss.topk(min(8, loss.shape[-1]), dim=-1).values.abs().mean(-1)
