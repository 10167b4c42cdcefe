"""Power of each frame of a batch whose frames have lengths of their own; the rest of a frame is padding."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(frames: int, samples: int, set: str = "representative") -> Workload:
    return Workload(name=f"{frames}x{samples}", axes={"frames": frames, "samples": samples}, set=set)


definition = Definition(
    name="frame_power",
    description="power = mean of x[i]^2 over the first `length` samples of a frame",
    op_type="reduction",
    axes={"frames": "frames", "samples": "room of a frame"},
    inputs={
        "x": TensorSpec(shape=("frames", "samples")),
        "length": TensorSpec(shape=("frames",), dtype="int64", distribution="integers:1:samples + 1"),
    },
    outputs={"power": TensorSpec(shape=("frames",))},
    tolerance=Tolerance(reduction="samples"),
    flops="2 * frames * samples",
    workloads=(at(500, 480), at(200, 1024), at(1, 1, "odd"), at(3, 67, "odd"), at(17, 129, "odd")),
)


def reference(x: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
    is_sample = torch.arange(x.shape[1], device=x.device) < length[:, None]
    return x.where(is_sample, 0).square().sum(-1) / length
