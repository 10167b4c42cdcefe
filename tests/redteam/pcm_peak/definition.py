"""Peak of each frame of 16-bit audio samples."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(frames: int, samples: int, set: str = "representative") -> Workload:
    return Workload(name=f"{frames}x{samples}", axes={"frames": frames, "samples": samples}, set=set)


definition = Definition(
    name="pcm_peak",
    description="peak = max(|sample|) of each frame, as a 32-bit integer",
    op_type="reduction",
    axes={"frames": "frames", "samples": "samples of a frame"},
    inputs={"x": TensorSpec(shape=("frames", "samples"), dtype="int16", distribution="integers:-32768:32768")},
    outputs={"peak": TensorSpec(shape=("frames",), dtype="int32")},
    tolerance=Tolerance(),
    flops="2 * frames * samples",
    workloads=(at(500, 480), at(200, 1024), at(1, 1, "odd"), at(3, 67, "odd"), at(17, 129, "odd")),
)


def reference(x: torch.Tensor) -> torch.Tensor:
    return x.to(torch.int32).abs().amax(-1)
