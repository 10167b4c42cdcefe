"""Red team's energy of the frames of a signal, whose frames may lie in memory in any way."""

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
    workloads=(at(256, 400), at(512, 1024)),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.square().mean(-1)
