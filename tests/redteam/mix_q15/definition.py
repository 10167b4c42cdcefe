"""Mix of two 16-bit sounds, with a gain for each channel in fixed point of 15 bits."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload


def at(frames: int, channels: int, set: str = "representative") -> Workload:
    return Workload(name=f"{frames}x{channels}", axes={"frames": frames, "channels": channels}, set=set)


definition = Definition(
    name="mix_q15",
    description="y = (a * gain_a + b * gain_b + 2^14) / 2^15, rounded down and clamped to 16 bits",
    op_type="audio",
    axes={"frames": "samples of a channel", "channels": "channels"},
    inputs={
        "a": TensorSpec(shape=("frames", "channels"), dtype="int16"),
        "b": TensorSpec(shape=("frames", "channels"), dtype="int16"),
        "gain_a": TensorSpec(shape=("channels",), dtype="int16", role="weight"),
        "gain_b": TensorSpec(shape=("channels",), dtype="int16", role="weight"),
    },
    outputs={"y": TensorSpec(shape=("frames", "channels"), dtype="int16")},
    flops="4 * frames * channels",
    workloads=(at(48000, 2), at(20000, 8)),
)


def reference(a: torch.Tensor, b: torch.Tensor, gain_a: torch.Tensor, gain_b: torch.Tensor) -> torch.Tensor:
    mixed = a.long() * gain_a.long() + b.long() * gain_b.long() + 16384
    return mixed.div(32768, rounding_mode="floor").clamp(-32768, 32767).to(torch.int16)
