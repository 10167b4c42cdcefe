"""Values with structure: integers near each other, multiples, runs, and ids and cut points that fit each other."""

from __future__ import annotations

import pytest
import torch
from lab_samples import SQUARE

from warpsmith.core.definition import Workload
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.values.distributions import FULL, OTHER_SIGNS
from warpsmith.lab.operator.values.related_values import (
    draw_offsets,
    order_integers,
    plant_ends,
    relate_input,
    view_start,
)


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
    if max(counts) < values.numel() <= max(counts) + input_rules.EXCEPTIONS:
        kinds.add("alike")
    if counts == [values.numel() // 2] * 2 and (values[: counts[0]] == values[0]).all():
        kinds.add("halves")
    if (values.diff().abs() == 1).double().mean() > 0.99 and len(counts) == values.numel():
        kinds.add("consecutive")
    return kinds


def test_wide_integers_are_near_each_other_multiples_in_runs_or_few():
    seen = []
    for seed in range(800):
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randint(3, 1 << 62, (1024,), generator=generator)
        values = order_integers(drawn, generator)
        assert values.shape == drawn.shape
        assert drawn.min() <= values.min() <= values.max() <= drawn.max()
        seen += describe(values)
    kinds = ("near", "multiples", "runs", "alike", "halves", "consecutive")
    assert {kind: seen.count(kind) > 4 for kind in kinds} == dict.fromkeys(kinds, True)


def test_integers_are_sorted_but_for_a_few():
    breaks = []
    for seed in range(200):
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randint(1024, (4096,), generator=generator)
        steps = order_integers(drawn, generator).diff()
        breaks.append(min(int((steps < 0).sum()), int((steps > 0).sum())))
    assert sum(0 < count <= 3 for count in breaks) > 20


@pytest.mark.parametrize(
    "is_structured",
    [
        lambda x: int((x.diff() != 1).sum()) <= 6 and bool((x.diff() == 1).any()),
        lambda x: int((x.diff() != x.diff().mode().values).sum()) <= 6 and abs(int(x.diff().mode().values)) > 1,
        lambda x: any(int((x[:-p] != x[p:]).sum()) <= 6 for p in (64, 128, 512, 2048)),
        lambda x: int((x >= 256).sum()) <= 3 and x.unique().numel() > 4,
    ],
    ids=["consecutive", "progression", "sequence", "narrow"],
)
def test_structures_have_exceptions(is_structured):
    several = 0
    for seed in range(2400):
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randint(1 << 20, (4096,), generator=generator)
        values = order_integers(drawn, generator)
        if values.unique().numel() > 4 and is_structured(values):
            several += 1
    assert several > 8


@pytest.mark.parametrize("total", [64 * 32, 64 * 32 + 5])
def test_groups_that_are_alike_but_for_one(total):
    sizes = [draw_offsets(65, total, torch.Generator().manual_seed(seed)).diff() for seed in range(300)]
    assert all(int(each.sum()) == total and bool((each >= 0).all()) for each in sizes)
    alike = [int((each != each.mode().values).sum()) for each in sizes]
    assert total % 64 or sum(count == 2 for count in alike) > 8
    assert total % 64 or sum(count == 0 for count in alike) > 8


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


def test_distinct_ids_do_not_repeat_in_a_row(workshop):
    specs = '"x": TensorSpec(shape=("n", 4), dtype="int32", distribution="distinct:7"), '
    specs += '"o": TensorSpec(shape=("n",), dtype="int64", distribution="distinct:n")'
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', specs, 1).replace("(x)", "(x, o)")
    source = Inputs(workshop.load("square", text), Workload(name="w", axes={"n": 1000}), 3, "cpu")
    drawn = [source.draw(distribution) for distribution in (None, *["constant"] * 40)]
    for tensors in drawn:
        assert (tensors["x"].sort(-1).values.diff(dim=-1) > 0).all()
        assert tensors["x"].min() >= 0
        assert tensors["x"].max() < 7
        assert tensors["o"].sort().values.tolist() == list(range(1000))
    assert drawn[0]["x"].unique().tolist() == list(range(7))
    assert not torch.equal(source.draw()["o"], drawn[0]["o"])
    steps = [tensors["o"].diff().remainder(1000) for tensors in drawn[1:]]
    assert any(bool((step == 1).all()) for step in steps), "ids ascend"
    assert any(bool((step == 999).all()) for step in steps), "ids descend"
    assert any(2 <= int((step != 1).sum()) <= 4 for step in steps), "two have changed places"


def test_cut_points_up_to_one_total_are_the_same_by_chance(workshop):
    specs = ", ".join(
        f'"{name}": TensorSpec(shape=("n",), dtype="int64", distribution="offsets:{total}")'
        for name, total in (("a", "n"), ("b", "1 * n"), ("c", "2 * n"))
    )
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', specs, 1).replace("(x)", "(a, b, c)")
    source = Inputs(workshop.load("square", text), Workload(name="w", axes={"n": 100}), 3, "cpu")
    drawn = [source.draw("constant") for _ in range(40)]
    assert 2 < sum(torch.equal(each["a"], each["b"]) for each in drawn) < 30
    assert {int(each["c"][-1]) for each in drawn} == {200}
    assert sum(torch.equal(each["a"], each["b"]) for each in (source.draw() for _ in range(10))) < 3


def test_both_ends_of_a_range_are_planted_by_chance():
    generator = torch.Generator().manual_seed(1)
    drawn = torch.randint(-10, 10, (30, 20), generator=generator)
    planted = [plant_ends(drawn, -(1 << 40), 1 << 40, generator) for _ in range(60)]
    ends = [{int(each.min()), int(each.max())} == {-(1 << 40), 1 << 40} for each in planted]
    assert 15 < sum(ends) < 45
    assert all(int((each != drawn).sum()) <= 2 for each in planted)
    assert int(drawn.abs().max()) <= 10


def test_declared_integers_reach_their_ends(workshop):
    low, high = -(1 << 40), 1 << 40
    spec = f'"x": TensorSpec(dtype="int64", distribution="integers:{low}:{high}", '
    file = workshop.load("square", SQUARE.replace('"x": TensorSpec(', spec, 1))
    source = Inputs(file, Workload(name="w", axes={"n": 1000}), 3, "cpu")
    drawn = [source.draw("constant")["x"] for _ in range(20)]
    assert any(int(each.min()) == low for each in drawn)
    assert any(int(each.max()) == high - 1 for each in drawn)


def test_inputs_near_a_mean_have_other_signs_unless_something_keeps_them(workshop):
    specs = ", ".join(
        f'"{name}": TensorSpec(shape=("n",), role="weight", distribution="{form}", description="{text}")'
        for name, form, text in (
            ("a", "normal:1:0.1", "weight"),
            ("b", "normal:1:0.1", "a positive scale"),
            ("c", "normal:1:0.1", "scale that a promise names"),
            ("d", "normal:0:0.1", "no mean"),
            ("inv_rms", "normal:1:0.1", "one number"),
        )
    )
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', specs, 1).replace("(x)", "(a, b, c, d, inv_rms)")
    text = text.replace('flops="n"', 'flops="n", constraints=("c is above 0",)')
    source = Inputs(workshop.load("square", text), Workload(name="w", axes={"n": 1000}), 3, "cpu")
    assert OTHER_SIGNS in source.adversarial_distributions
    drawn = [source.draw(OTHER_SIGNS) for _ in range(20)]
    assert all(0.2 < float((each["a"] < 0).double().mean()) < 0.3 for each in drawn)
    assert all(0.08 < float((each["a"] == 0).double().mean()) < 0.17 for each in drawn)
    assert len({round(float(each["a"].max())) for each in drawn}) > 2, "scales differ"
    assert all(bool((each[name] > 0).all()) for each in drawn for name in ("b", "c", "inv_rms"))
    assert all(bool((each["d"] != 0).all()) for each in drawn)


@pytest.mark.parametrize(("kind", "role", "is_kept"), [
    ("norm", "weight", False), ("norm", "activation", True), ("quantization", "weight", True),
])  # fmt: skip
def test_the_scale_of_a_norm_may_be_negative(workshop, kind, role, is_kept):
    spec = f'"scale": TensorSpec(shape=("n",), role="{role}", distribution="normal:1:0.1")'
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', spec, 1).replace("(x)", "(scale)")
    text = text.replace('flops="n"', f'flops="n", op_type="{kind}"')
    source = Inputs(workshop.load("square", text), Workload(name="w", axes={"n": 1000}), 3, "cpu")
    assert (OTHER_SIGNS not in source.adversarial_distributions) == is_kept


def test_all_integers_are_at_one_end_of_their_ranges_by_chance(workshop):
    specs = ", ".join(
        f'"{name}": TensorSpec(shape=("n",), dtype="int16", distribution="integers:{low}:{high}")'
        for name, low, high in (("a", -30, 7), ("b", 2, 900))
    )
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', specs, 1).replace("(x)", "(a, b)")
    source = Inputs(workshop.load("square", text), Workload(name="w", axes={"n": 40}), 3, "cpu")
    drawn = [source.draw(FULL) for _ in range(40)]
    assert all(len(each[name].unique()) == 1 for each in drawn for name in "ab")
    pairs = [(int(each["a"][0]), int(each["b"][0])) for each in drawn]
    assert {(-30, 2), (6, 899)} < set(pairs)
    assert len(set(pairs)) > 4


@pytest.mark.parametrize(
    ("shape", "text", "promise", "count"),
    [
        ("n", "where each begins", "", 2), ("n + 1", "where each begins", "", 1), ("n", "", "", 1),
        ("n", "where each starts, the last one at the total", "", 1), ("n", "the first of each", "x is whole", 1),
    ],
)  # fmt: skip
def test_cut_points_end_at_their_total_unless_they_are_beginnings(workshop, shape, text, promise, count):
    spec = f'"x": TensorSpec(shape=("{shape}",), dtype="int64", distribution="offsets:500", description="{text}")'
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', spec, 1)
    text = text.replace('flops="n"', f'flops="n", constraints=({f"{promise!r}," if promise else ""})')
    source = Inputs(workshop.load("square", text), Workload(name="w", axes={"n": 20}), 3, "cpu")
    drawn = [source.draw()["x"] for _ in range(30)]
    assert all(bool((each.diff() >= 0).all()) for each in drawn)
    assert len({bool(each[-1] == 500) for each in drawn}) == count
    assert {int(each[0]) for each in drawn} == {0}
