"""Error hooks that `warpsmith new` writes: what they say of slopes, jumps and typical results."""

from __future__ import annotations

from collections.abc import Callable

import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.interchange.draft import magnitude_source

DEFINITION = Definition(
    name="drafted",
    description="a result a row",
    flops="rows * cols",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows",))},
    workloads=(Workload(name="4x8", axes={"rows": 4, "cols": 8}),),
)


def drafted_magnitude(reference: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    names = {"torch": torch, "reference": reference}
    exec(magnitude_source(DEFINITION, amplifies=True), names)
    return names["magnitude"](x)[0]


def row_losses(x: torch.Tensor) -> torch.Tensor:
    return x.logsumexp(-1) - x[:, 0]


def test_a_slope_counts_however_steep_it_is():
    x = torch.zeros(4, 8, dtype=torch.float64)
    x[2] = torch.finfo(torch.float32).min
    scales = drafted_magnitude(row_losses, x)
    assert scales[2] > 1e30
    lost = torch.tensor(0.0)  # the logarithm of eight beside the lowest number
    assert (row_losses(x)[2] - lost).abs() < scales[2] * 2.0**-24


def test_a_jump_counts_as_a_multiple_of_the_usual_result():
    x = torch.zeros(4, 8, dtype=torch.float64)
    x[2, 0] = 1.0
    scales = drafted_magnitude(lambda x: 1.0 + (x[:, 0] >= 1.0).double(), x)
    assert scales[2] <= 2000.0


def test_results_that_cancel_keep_the_usual_size():
    x = torch.randn(4, 8, dtype=torch.float64)
    scales = drafted_magnitude(lambda x: x.sum(-1), x)
    assert (scales >= x.sum(-1).square().mean().sqrt() * 0.999).all()
