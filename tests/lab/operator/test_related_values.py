"""Integers with structure: near each other, multiples of a power of two, in runs, at any range."""

from __future__ import annotations

import pytest
import torch

from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.related_values import order_integers, relate_input, view_start


def describe(values: torch.Tensor) -> set[str]:
    kinds = set()
    distinct = values.unique()
    if distinct.numel() > 1 and int(distinct[-1]) - int(distinct[0]) <= 1 << input_rules.NEAR_INTEGERS:
        kinds.add("near")
    if 10 < distinct.numel() <= values.numel() // 2 and (distinct % (1 << 13) == 0).all():
        kinds.add("multiples")
    if distinct.numel() > 3 and (values[::2] == values[1::2]).all() and not (values.diff() >= 0).all():
        kinds.add("runs")
    counts = values.unique(return_counts=True)[1].tolist()
    if max(counts) < values.numel() <= max(counts) + input_rules.ALIKE_INTEGERS:
        kinds.add("alike")
    if counts == [values.numel() // 2] * 2 and (values[: counts[0]] == values[0]).all():
        kinds.add("halves")
    if (values.diff().abs() == 1).double().mean() > 0.99 and len(counts) == values.numel():
        kinds.add("consecutive")
    return kinds


def test_wide_integers_are_near_each_other_multiples_in_runs_or_few():
    seen = []
    for seed in range(200):
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randint(3, 1 << 62, (1024,), generator=generator)
        values = order_integers(drawn, generator)
        assert values.shape == drawn.shape
        assert drawn.min() <= values.min() <= values.max() <= drawn.max()
        seen += describe(values)
    kinds = ("near", "multiples", "runs", "alike", "halves", "consecutive")
    assert {kind: seen.count(kind) > 4 for kind in kinds} == dict.fromkeys(kinds, True)


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 1), (5, 6), (0, 2), (-3, 4), (100, 104), (-(1 << 63), (1 << 63) - 1), ((1 << 63) - 9, (1 << 63) - 1)],
)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5)])
def test_integers_stay_in_the_range_of_what_was_drawn(low, high, shape):
    for seed in range(40):
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randint(low, high, shape, generator=generator)
        values = order_integers(drawn, generator)
        assert values.shape == drawn.shape
        assert drawn.min() <= values.min() <= values.max() <= drawn.max()


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.bfloat16, torch.int64, torch.uint8])
@pytest.mark.parametrize(
    ("source_shape", "shape"), [((4, 6), (4, 6)), ((7,), (3, 5)), ((3, 5), (4,)), ((0,), (4,))]
)
def test_an_input_of_any_type_holds_values_of_another(dtype, source_shape, shape):
    generator = torch.Generator().manual_seed(1)
    source = torch.randn(source_shape, generator=generator).mul(9).abs().to(dtype)
    own = torch.randn(shape, generator=generator).abs().to(dtype)
    related = [relate_input(source, own, generator) for _ in range(20)]
    assert {(tuple(values.shape), values.dtype) for values in related} == {(shape, dtype)}
    if source.numel() and source_shape != shape:
        assert all(torch.isin(values.double(), source.double()).all() for values in related)


def test_a_view_of_the_start_has_the_same_memory():
    source = torch.randn(4, 6)
    part = view_start(source, (3, 5))
    assert part.data_ptr() == source.data_ptr()
    assert torch.equal(part.flatten(), source.flatten()[:15])
