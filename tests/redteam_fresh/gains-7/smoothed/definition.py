"""Eight passes of a small filter."""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(length: int) -> Workload:
    return Workload(name=f"{length}", axes={"length": length})


definition = Definition(
    name="smoothed",
    description="eight times x[i] = (x[i - 1] + 2 x[i] + x[i + 1]) / 4, where the ends count twice",
    op_type="stencil",
    axes={"length": "samples"},
    inputs={"x": TensorSpec(shape=("length",))},
    outputs={"y": TensorSpec(shape=("length",))},
    tolerance=Tolerance(),
    constraints=("length <= 65536",),
    flops="32 * length",
    workloads=(at(16384), at(24000)),
)


def _smooth(x: torch.Tensor) -> torch.Tensor:
    for _ in range(8):
        before, after = torch.cat([x[:1], x[:-1]]), torch.cat([x[1:], x[-1:]])
        x = before / 4 + x / 2 + after / 4
    return x


def reference(x: torch.Tensor) -> torch.Tensor:
    return _smooth(x)


def magnitude(x: torch.Tensor) -> torch.Tensor:
    """Terms of both signs cancel."""
    return _smooth(x.abs())


def extra(x: torch.Tensor) -> torch.Tensor:
    """Each pass rounds a few times."""
    return torch.full_like(x, 24)
