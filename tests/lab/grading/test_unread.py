"""Elements that a reference does not read."""

from __future__ import annotations

import pytest
import torch
from lab_samples import SQUARE

from warpsmith.lab.grading.unread import plant_unwritten

FRAMES = SQUARE.replace("return x * x", "BODY")


def plant(workshop, body, dtype="float32"):
    file = workshop.load("square", FRAMES.replace("BODY", body))
    workload = file.definition.workloads[0]
    inputs, others = (
        {"x": torch.randn(workload.axes["n"], generator=torch.Generator().manual_seed(seed))} for seed in (1, 2)
    )
    inputs["x"] = inputs["x"].to(getattr(torch, dtype))
    return inputs["x"], plant_unwritten(file, workload, inputs, others)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "float8_e4m3fn"])
@pytest.mark.parametrize(
    "body",
    [
        "return x.where(torch.arange(x.numel()) < 7, 0) * x.where(torch.arange(x.numel()) < 7, 0)",
        "return torch.softmax(x[:7], 0).repeat(x.numel())[: x.numel()]",
        "y = torch.zeros_like(x)\n    y[:7] = x[:7].square()\n    return y",
    ],
)
def test_what_is_not_read_holds_nan(workshop, body, dtype):
    before, planted = plant(workshop, body, dtype)
    values = planted["x"].double()
    assert torch.equal(values[:7], before.double()[:7])
    assert not bool((values[7:].abs() < 448).any())  # of a float8 the largest number stands for infinity
    assert bool(values.isnan().any())
    assert bool(before.double().isfinite().all())
    assert not before.requires_grad


@pytest.mark.parametrize(
    "body",
    [
        "return x * x",
        "return x.amax().expand(x.shape).contiguous()",  # reads elements that it has no derivative by
        "return x * (torch.arange(x.numel()) < 7)",  # multiplies them by zero
        "return torch.ones_like(x) * int((x > 0.5).sum())",
        "return x.sort().values[:7].repeat(x.numel())[: x.numel()]",
        "return x.where(x > 0, 0) * x.where(x > 0, 0)",  # other values say otherwise
        "raise ValueError(x)",
    ],
)
def test_a_reference_that_reads_all_gets_none(workshop, body):
    assert plant(workshop, body)[1] is None
