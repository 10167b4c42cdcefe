"""Narrow results that are cut instead of rounded."""

from __future__ import annotations

import pytest
import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.lab.grading.rounding import describe_truncation

KINDS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def describe(output: torch.Tensor, value: torch.Tensor, dtype: str) -> str:
    workload = Workload(name="one", axes={"rows": value.shape[0], "cols": value.shape[1]}, dtype=dtype)
    definition = Definition(
        name="copy", description="y = x", axes={"rows": "rows", "cols": "columns"}, flops="rows * cols",
        inputs={"x": TensorSpec(shape=("rows", "cols"))}, outputs={"y": TensorSpec(shape=("rows", "cols"))},
        workloads=(workload,),
    )  # fmt: skip
    return describe_truncation(definition, workload, {"y": output}, {"y": value.double()})


def truncate(value: torch.Tensor, dtype: str) -> torch.Tensor:
    """Round to the nearest number, and then to the next one toward zero where that was away from it."""
    kind = getattr(torch, dtype)
    rounded = value.to(kind)
    away = rounded.double().abs() > value.double().abs()
    width = {1: torch.uint8, 2: torch.int16}[kind.itemsize]
    return torch.where(away, rounded.view(width) - 1, rounded.view(width)).view(kind)


@pytest.fixture
def value() -> torch.Tensor:
    return torch.randn(64, 256, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("dtype", KINDS)
def test_the_nearest_number_is_right(value: torch.Tensor, dtype: str) -> None:
    assert describe(value.to(getattr(torch, dtype)), value, dtype) == ""


@pytest.mark.parametrize("dtype", KINDS)
def test_truncated_results_are_described(value: torch.Tensor, dtype: str) -> None:
    assert "y is rounded toward zero" in describe(truncate(value, dtype), value, dtype)


@pytest.mark.parametrize("dtype", KINDS)
def test_every_second_one_is_enough(value: torch.Tensor, dtype: str) -> None:
    output = value.to(getattr(torch, dtype))
    cut = truncate(value, dtype)
    output[:, ::2] = cut[:, ::2]
    assert "y is rounded toward zero" in describe(output, value, dtype)


def test_a_rounded_factor_of_a_row_is_honest(value: torch.Tensor) -> None:
    for seed in range(20):
        factor = 1 + torch.rand(64, 1, generator=torch.Generator().manual_seed(seed)) * 3
        output = (value * factor.bfloat16().float()).bfloat16()
        assert describe(output, value.double() * factor.double(), "bfloat16") == ""


def test_wide_results_and_few_rows_say_nothing(value: torch.Tensor) -> None:
    assert describe(value * 0.999, value, "float32") == ""
    assert describe(truncate(value[:8], "float16"), value[:8], "float16") == ""


def test_a_scale_that_is_off_moves_all_rows_of_eight_bits(value: torch.Tensor) -> None:
    assert "y is rounded away from zero" in describe(
        (value * 1.04).to(torch.float8_e4m3fn), value, "float8_e4m3fn"
    )
    assert describe((value * 1.002).to(torch.float8_e4m3fn), value, "float8_e4m3fn") == ""
