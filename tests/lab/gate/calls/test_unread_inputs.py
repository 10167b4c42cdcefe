"""Padding that was never written: what a version does with it."""

from __future__ import annotations

import pytest
import torch
from lab_samples import SQUARE

from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls.unread_inputs import call_beside_unwritten, plant_unwritten
from warpsmith.lab.machine import system

needs_compiler = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

PREFIX = (
    SQUARE.replace('inputs={"x"', 'inputs={"length": TensorSpec(shape=(), dtype="int64"), "x"')
    .replace(
        "def reference(x):\n    return x * x",
        "def reference(length, x):\n    return x.where(torch.arange(x.shape[0]) < length, 0).square()",
    )
    .replace('axes={"n": 1000})', 'axes={"n": 1000}, set="odd")')
)
SOURCE = """\
#include <warpsmith.hpp>
extern "C" void run(const Tensor& length_, const Tensor& x_, Tensor& y_) {
  const int64_t n = x_.size(0), length = *length_.data<int64_t>();
  const float* x = x_.data<float>();
  for (int64_t i = 0; i < n; ++i) y_.data<float>()[i] = RESULT;
}
"""


@pytest.fixture
def call(seat, workshop):
    def call(result: str, text: str = PREFIX, index: int = 0):
        file = workshop.load("square", text)
        place = seat(file, SOURCE.replace("RESULT", result))
        workload = file.definition.workloads[index]
        return call_beside_unwritten(file, workload, place.session)

    return call


@needs_compiler
@pytest.mark.parametrize(
    ("result", "status"),
    [
        ("i < length ? x[i] * x[i] : 0", Status.PASSED),
        ("x[i] * x[i] * (i < length)", Status.INCORRECT_NUMERICAL),
        (
            "(x[i] != x[i] ? 0 : x[i] * x[i]) * (i < length)",
            Status.INCORRECT_NUMERICAL,
        ),  # infinities are there too
    ],
)
def test_a_version_that_multiplies_padding_by_zero_is_wrong(call, result, status):
    session, grade, description = call(result)
    assert grade.status is status
    assert "does not read" in description
    drawn = session.drawn[0]
    assert not bool(drawn["x"][int(drawn["length"]) :].isfinite().any())
    assert bool(torch.isfinite(drawn["x"][: int(drawn["length"])]).all())


@needs_compiler
def test_no_call_where_numbers_are_promised_or_all_are_read(call):
    promise = PREFIX.replace('flops="n"', 'flops="n", constraints=("all of x is finite",)')
    assert call("x[i] * x[i]", promise) is None
    assert call("x[i] * x[i]", PREFIX.replace("< length", ">= 0")) is None
    assert call("x[i] * x[i]", index=1) is None


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
