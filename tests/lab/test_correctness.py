from __future__ import annotations

from pathlib import Path

import pytest
import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload
from warpsmith.lab import correctness
from warpsmith.lab.definition_file import DefinitionFile

NAN, INF = float("nan"), float("inf")


def file_of(reference, dtype="workload", **tolerance):
    definition = Definition(
        name="op",
        description="an operator",
        axes={"rows": "rows", "cols": "columns"},
        inputs={"x": TensorSpec(shape=("rows", "cols"))},
        outputs={"y": TensorSpec(shape=("rows", "cols"), dtype=dtype)},
        tolerance=Tolerance(**tolerance),
        flops="rows * cols",
        workloads=(Workload(name="w", axes={"rows": 8, "cols": 512}),),
    )
    return DefinitionFile(definition, Path("op/definition.py"), "0" * 64, reference)


def graded(file, x, output):
    return correctness.grade(correctness.truth(file, file.definition.workloads[0], {"x": x}), {"y": output})


@pytest.fixture
def x():
    return torch.randn(8, 512, generator=torch.Generator().manual_seed(1))


def softmax(x):
    return torch.softmax(x, dim=-1)


def test_float32_rounding_is_accepted(x):
    found = graded(file_of(softmax, reduction="cols"), x, softmax(x))
    assert found.status == "PASSED"
    assert 0 < found.worst <= 1
    assert 0 < found.relative_error < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_outputs_are_accepted(x, dtype):
    kind = getattr(torch, dtype)
    file = file_of(softmax, dtype, reduction="cols")
    assert graded(file, x, softmax(x).to(kind)).status == "PASSED"
    assert graded(file, x, (softmax(x) * 1.05).to(kind)).status == "INCORRECT_NUMERICAL"


def test_a_relative_error_of_a_thousandth_is_refused(x):
    found = graded(file_of(softmax, reduction="cols"), x, softmax(x) * 1.001)
    assert found.status == "INCORRECT_NUMERICAL"
    assert found.relative_error == pytest.approx(1e-3, rel=1e-3)
    assert "y[0, 0] is" in found.detail
    assert "100.00% of the elements are wrong" in found.detail


@pytest.mark.parametrize("value", [NAN, INF, -INF, 0.0, 1e30])
def test_one_wrong_element_is_found_and_named(x, value):
    output = softmax(x)
    output[5, 300] = value
    found = graded(file_of(softmax, reduction="cols"), x, output)
    assert found.status == "INCORRECT_NUMERICAL"
    assert "y[5, 300]" in found.detail
    assert found.worst > 1


def test_all_nan_is_refused(x):
    found = graded(file_of(softmax), x, torch.full_like(x, NAN))
    assert found.status == "INCORRECT_NUMERICAL"
    correctness.summarise([found])  # every number of it can be kept


def test_a_nan_that_the_reference_has_must_be_there(x):
    x[2, :] = -INF
    file = file_of(softmax, reduction="cols")
    honest = softmax(x)
    assert honest[2].isnan().all()
    assert graded(file, x, honest).status == "PASSED"
    for wrong in (0.0, INF):
        output = honest.clone()
        output[2, 7] = wrong
        found = graded(file, x, output)
        assert found.status == "INCORRECT_NUMERICAL"
        assert "y[2, 7]" in found.detail


def test_masked_rows(x):
    x[..., :256] = -INF
    file = file_of(softmax, reduction="cols")
    assert graded(file, x, softmax(x)).status == "PASSED"
    output = softmax(x)
    output[0, 3] = 1e-6  # masked positions are exactly zero
    assert graded(file, x, output).status == "INCORRECT_NUMERICAL"


def test_infinities_keep_their_sign(x):
    file = file_of(lambda x: x * 1e300)
    honest = (x.double() * 1e300).float()
    assert honest.isinf().all()
    assert graded(file, x, honest).status == "PASSED"
    assert graded(file, x, -honest).status == "INCORRECT_NUMERICAL"
    assert graded(file, x, torch.full_like(x, 3e38).copysign(x)).status == "INCORRECT_NUMERICAL"


def test_integers_are_exact(x):
    file = file_of(lambda x: (x > 0).long(), "int64")
    right = (x > 0).long()
    assert graded(file, x, right).status == "PASSED"
    right[7, 511] += 1
    assert graded(file, x, right).status == "INCORRECT_NUMERICAL"


def test_a_share_may_be_allowed_to_miss(x):
    output = softmax(x)
    output[0, :10] = 5.0
    assert graded(file_of(softmax, required_match=0.99), x, output).status == "PASSED"
    output[0, :100] = 5.0
    assert graded(file_of(softmax, required_match=0.99), x, output).status == "INCORRECT_NUMERICAL"


@pytest.mark.parametrize(
    "upcast",
    [
        lambda x: x.float(),
        lambda x: x.half(),
        lambda x: x.bfloat16(),
        lambda x: x.to(torch.float32),
        lambda x: x.to(dtype=torch.float16),
        lambda x: x.type(torch.float32),
        lambda x: torch.softmax(x, -1, dtype=torch.float32),
        lambda x: x + torch.full((1,), 1 / 3, dtype=torch.float32),
    ],
)
def test_references_that_upcast_stay_float64(x, upcast):
    file = file_of(lambda x: upcast(x) / 3)
    value = correctness.truth(file, file.definition.workloads[0], {"x": x}).values["y"]
    exact = {"softmax": torch.softmax(x.double(), -1), "full": x.double() + 1 / 3}
    expected = next((exact[n] for n in exact if n in upcast.__code__.co_names), x.double()) / 3
    assert value.dtype == torch.float64
    assert torch.equal(value, expected)


def test_correlated_inputs_widen_the_bound(x):
    file = file_of(softmax, reduction="cols")
    workload = file.definition.workloads[0]
    narrow = correctness.truth(file, workload, {"x": x}).bounds["y"]
    wide = correctness.truth(file, workload, {"x": x}, correlated=True).bounds["y"]
    assert (wide > 2 * narrow).all()


def test_no_elements_pass():
    file = file_of(softmax)
    workload = Workload(name="w", axes={"rows": 0, "cols": 512})
    empty = torch.empty(0, 512)
    assert correctness.grade(correctness.truth(file, workload, {"x": empty}), {"y": empty}).status == "PASSED"
