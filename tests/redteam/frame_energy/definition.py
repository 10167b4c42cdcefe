"""Energy of the frames of a signal, which may overlap in memory as `unfold` makes them."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(frames: int, size: int, set: str = "representative") -> Workload:
    return Workload(name=f"{frames}x{size}", axes={"frames": frames, "size": size}, set=set)


definition = Definition(
    name="frame_energy",
    description="y = mean of the squares of each frame",
    op_type="reduction",
    axes={"frames": "frames", "size": "samples of a frame"},
    inputs={"x": TensorSpec(shape=("frames", "size"), layout="any", description="frames of a signal")},
    outputs={"y": TensorSpec(shape=("frames",))},
    tolerance=Tolerance(reduction="size"),
    flops="2 * frames * size",
    workloads=(at(256, 400), at(512, 1024), at(1, 1, "odd"), at(3, 67, "odd"), at(17, 129, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.square().mean(-1)
