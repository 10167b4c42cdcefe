"""Near results: within a few more roundings of the coarsest type, or the next number of an 8-bit grid."""

from __future__ import annotations

import pytest
import torch
from lab_samples import HEAD

from warpsmith.core.evaluation import Status
from warpsmith.lab.grading import correctness, near

TWO = (
    HEAD
    + """
definition = Definition(
    name="two", description="twice x, in three types",
    axes={"n": "length"},
    inputs={"x": TensorSpec(shape=("n",), dtype="bfloat16")},
    outputs={
        "y": TensorSpec(shape=("n",), dtype="float32"),
        "q": TensorSpec(shape=("n",), dtype="float8_e4m3fn"),
        "i": TensorSpec(shape=("n",), dtype="int32"),
    },
    tolerance={"y": Tolerance(), "q": Tolerance(slack=1.0), "i": Tolerance()},
    flops="n",
    workloads=(Workload(name="small", axes={"n": 4}),),
)
def reference(x):
    y = 2 * x.float()
    return y, y.to(torch.float8_e4m3fn), y.int()
"""
)
UNIT = 2.0**-8
X = torch.tensor([1.0, -3.0, 0.0, 10.25], dtype=torch.bfloat16)


@pytest.fixture
def graded(workshop):
    """`graded(text, **outputs)`: the statuses by the strict and the wide bounds."""

    def make(text=TWO, **outputs):
        file = workshop.load("two", text)
        workload = file.definition.workloads[0]
        truth = correctness.compute_truth(file, workload, {"x": X})
        right = {"y": 2 * X.float(), "q": (2 * X.float()).to(torch.float8_e4m3fn), "i": (2 * X.float()).int()}
        wide = near.widen_bounds(file, workload, {"x": X}, truth)
        return [correctness.grade_outputs(one, right | outputs).status for one in (truth, wide)]

    return make


NEAR, WRONG = [Status.INCORRECT_NUMERICAL, Status.PASSED], [Status.INCORRECT_NUMERICAL] * 2


def test_what_is_right_is_right(graded):
    assert graded() == [Status.PASSED] * 2


@pytest.mark.parametrize(("units", "state"), [(2, NEAR), (3.9, NEAR), (4.1, WRONG)])
def test_a_few_roundings_of_the_inputs_type(graded, units, state):
    assert graded(y=2 * X.float() * torch.tensor([1, 1, 1, 1 + units * UNIT])) == state


def test_zero_has_no_room(graded):
    assert graded(y=2 * X.float() + torch.tensor([0, 0, 1e-6, 0])) == WRONG


@pytest.mark.parametrize(("value", "state"), [(22.0, NEAR), (18.0, NEAR), (24.0, WRONG), (16.0, WRONG)])
def test_the_next_code_of_an_8_bit_type(graded, value, state):
    """20.5 lies between the codes 20 and 22. The bound of q is half a code, and near allows one more."""
    assert graded(q=torch.tensor([2.0, -6.0, 0.0, value]).to(torch.float8_e4m3fn)) == state


def test_integers_stay_exact(graded):
    assert graded(i=torch.tensor([2, -6, 0, 21], dtype=torch.int32)) == WRONG


def test_where_results_cancel_the_room_is_relative_to_the_magnitude(graded):
    cancels = TWO + "def magnitude(x):\n    return 0 * x.float() + 1.0, 0 * x + 1.0, x.int()\n"
    assert graded(cancels, y=2 * X.float() + torch.tensor([0, 0, 3.9 * UNIT, 0])) == NEAR
    assert graded(cancels, y=2 * X.float() + torch.tensor([0, 0, 4.1 * UNIT, 0])) == WRONG
