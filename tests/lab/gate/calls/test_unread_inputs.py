"""Padding that was never written: what a version does with it."""

from __future__ import annotations

import pytest
import torch
from lab_samples import SQUARE

from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls.unread_inputs import call_beside_unwritten
from warpsmith.lab.machine import system

pytestmark = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

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


def test_no_call_where_numbers_are_promised_or_all_are_read(call):
    promise = PREFIX.replace('flops="n"', 'flops="n", constraints=("all of x is finite",)')
    assert call("x[i] * x[i]", promise) is None
    assert call("x[i] * x[i]", PREFIX.replace("< length", ">= 0")) is None
    assert call("x[i] * x[i]", index=1) is None
