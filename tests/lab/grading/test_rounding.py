"""Narrow results that are cut instead of rounded."""

from __future__ import annotations

import pytest
import torch

from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.lab.grading.rounding import describe_truncation

KINDS = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def describe(output: torch.Tensor, value: torch.Tensor, dtype: str) -> str:
    axes = {f"axis{index}": size for index, size in enumerate(value.shape)}
    workload = Workload(name="one", axes=axes, dtype=dtype)
    spec = TensorSpec(shape=tuple(axes))
    definition = Definition(
        name="copy", description="y = x", axes=dict.fromkeys(axes, "an axis"), flops="axis0",
        inputs={"x": spec}, outputs={"y": spec},
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


@pytest.mark.parametrize("level", [0.001, 1 / 1500, 0.8])
def test_right_results_that_are_nearly_alike_lie_on_one_side(value: torch.Tensor, level: float) -> None:
    """A softmax with a small factor gives each of n results about 1/n."""
    alike = level * (1 + 1e-7 * value.double())
    assert len(alike.bfloat16().unique()) == 1
    assert describe(alike.bfloat16(), alike, "bfloat16") == ""
    below = torch.nextafter(alike.bfloat16(), torch.zeros((), dtype=torch.bfloat16))
    assert "y is rounded toward zero" in describe(below, alike, "bfloat16")


@pytest.mark.parametrize("distinct", [5, 40, 200])
def test_ties_are_rounded_alike(distinct: int) -> None:
    for seed in range(20):
        generator = torch.Generator().manual_seed(seed)
        few = torch.rand(distinct, generator=generator)
        often = torch.randint(distinct, (70001,), generator=generator) * torch.rand(70001, generator=generator)
        value = few[often.long()]
        assert describe(value.bfloat16(), value, "bfloat16") == ""


@pytest.mark.parametrize("shape", [(64, 256), (1, 16384), (16384,), (8, 2048), (4096, 4)])
def test_any_shape_and_direction(shape: tuple[int, ...]) -> None:
    value = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    rounded = value.bfloat16()
    down = torch.where(rounded.double() > value.double(), torch.nextafter(rounded, rounded - 1), rounded)
    assert describe(rounded, value, "bfloat16") == ""
    assert "rounded down" in describe(down, value, "bfloat16")
    assert "rounded toward zero" in describe(truncate(value, "bfloat16"), value, "bfloat16")


def test_wide_and_few_results_say_nothing(value: torch.Tensor) -> None:
    assert describe(value * 0.999, value, "float32") == ""
    assert describe(truncate(value[:8], "float16"), value[:8], "float16") == ""


@pytest.mark.parametrize("dtype", KINDS)
def test_results_that_are_rounded_away_from_zero_are_described(value: torch.Tensor, dtype: str) -> None:
    output = value.to(getattr(torch, dtype))
    width = {1: torch.uint8, 2: torch.int16}[output.itemsize]
    away = torch.where(output.double().abs() < value.double().abs(), output.view(width) + 1, output.view(width))
    output[:, ::2] = away.view(output.dtype)[:, ::2]
    assert "y is rounded away from zero" in describe(output, value, dtype)


@pytest.mark.parametrize("shape", [(100,), (256, 1), (128, 4)])
def test_rows_of_few_results(shape: tuple[int, ...]) -> None:
    for seed in range(50):
        generator = torch.Generator().manual_seed(seed)
        value = torch.randn(shape, generator=generator)
        assert describe(value.bfloat16(), value, "bfloat16") == ""
        assert "rounded toward zero" in describe(truncate(value, "bfloat16"), value, "bfloat16")
        factor = 1 + torch.rand(shape[0], generator=generator).view(-1, *[1] * (len(shape) - 1))
        off = (value * factor.bfloat16().float()).bfloat16()
        assert describe(off, value.double() * factor.double(), "bfloat16") == ""
        noisy = (value * (1 + 0.01 * torch.randn(shape, generator=generator))).bfloat16()
        assert describe(noisy, value, "bfloat16") == ""


def test_a_value_that_many_short_rows_have_counts_once() -> None:
    few = torch.rand(8, generator=torch.Generator().manual_seed(1)).repeat(64)
    assert describe(truncate(few, "bfloat16"), few, "bfloat16") == ""


@pytest.mark.parametrize("count", [0, 1, 63])
def test_fewer_short_rows_say_nothing(count: int) -> None:
    value = torch.randn(count, generator=torch.Generator().manual_seed(1))
    assert describe(truncate(value, "bfloat16"), value, "bfloat16") == ""


def test_a_scale_that_is_off_moves_all_rows_of_eight_bits(value: torch.Tensor) -> None:
    assert "y is rounded away from zero" in describe(
        (value * 1.04).to(torch.float8_e4m3fn), value, "float8_e4m3fn"
    )
    assert describe((value * 1.002).to(torch.float8_e4m3fn), value, "float8_e4m3fn") == ""
