"""Numbers of a call: sizes, and numbers that are special together."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from lab_samples import SQUARE

from warpsmith.lab.operator import input_rules, scalar_values
from warpsmith.lab.operator.scalar_values import (
    list_constant_integers,
    list_nearby_scalars,
    list_special_scalars,
    vary_scalars,
)


def with_scalars(specs, text=SQUARE):
    names = [part.split('"')[1] for part in specs.split(", ") if part.startswith('"')]
    text = text.replace('inputs={"x"', f'inputs={{{specs}, "x"')
    return text.replace("def reference(x", f"def reference({', '.join(names)}, x")


WINDOW = with_scalars('"lag": ScalarSpec(type="int", value=52, between=(4, 1 << 20))')
FACTORS = with_scalars(
    '"a": ScalarSpec(value=1.0, between=(-4, 4)), "b": ScalarSpec(value=0.5, between=(0.25, 2))'
)


def scalars_by_kind(workshop, text):
    file = workshop.load("square", text)
    return {each.kind: each.scalars for each in list_special_scalars(file, file.definition.workloads[0])}


def test_a_fair_share_of_integers_are_sizes_or_next_to_one(workshop):
    file = workshop.load("square", WINDOW)
    drawn = Counter(
        vary_scalars(file, file.definition.workloads[0], Random(seed)).scalars["lag"] for seed in range(400)
    )
    assert all(drawn[size] > 10 for size in (999, 1000, 1001))
    assert len(drawn) > 100


def test_sizes_stay_in_the_range_of_an_integer(workshop):
    text = WINDOW.replace("1 << 20", "1000")
    file = workshop.load("square", text)
    drawn = {vary_scalars(file, file.definition.workloads[0], Random(seed)).scalars["lag"] for seed in range(200)}
    assert {999, 1000} <= drawn
    assert max(drawn) == 1000
    assert set(scalars_by_kind(workshop, text)) == {("lag", "n", "-1"), ("lag", "n", "0")}


def test_each_size_comes_once_for_an_integer(workshop):
    kinds = scalars_by_kind(workshop, WINDOW)
    assert {kind: scalars["lag"] for kind, scalars in kinds.items()} == {
        ("lag", "n", "-1"): 999,
        ("lag", "n", "0"): 1000,
        ("lag", "n", "1"): 1001,
    }


def test_two_integers_make_a_size_together(workshop):
    specs = '"start": ScalarSpec(type="int", value=5, between=(0, 4096)), '
    specs += '"length": ScalarSpec(type="int", value=48, between=(0, 990))'
    kinds = scalars_by_kind(workshop, with_scalars(specs))
    sums = {kind: (each["start"], each["length"]) for kind, each in kinds.items() if "+" in kind[0]}
    assert sums == {
        ("length + start", "n", "-1"): (951, 48),
        ("length + start", "n", "0"): (952, 48),
        ("length + start", "n", "1"): (953, 48),
    }, "a length of 994 is out of its range"


def test_numbers_are_special_together_as_far_as_their_ranges_go(workshop):
    together = {kind: each for kind, each in scalars_by_kind(workshop, FACTORS).items() if len(kind) == 1}
    assert together == {
        ("1",): {"a": 1.0, "b": 1.0},
        ("least",): {"a": -4.0, "b": 0.25},
        ("largest",): {"a": 4.0, "b": 2.0},
    }
    both = scalars_by_kind(workshop, FACTORS.replace("(0.25, 2)", "(-1, 2)"))
    assert both["0",] == {"a": 0.0, "b": 0.0}


def test_each_pair_of_numbers_is_two_special_ones(workshop):
    pairs = {kind: each for kind, each in scalars_by_kind(workshop, FACTORS).items() if len(kind) == 2}
    assert {(each["a"], each["b"]) for each in pairs.values()} == {
        (a, b) for a in (-4, -1, 0, 1, 4) for b in (0.25, 1, 2) if a != b
    }


def test_two_numbers_add_up_to_one(workshop):
    specs = '"rate": ScalarSpec(value=0.1), "decay": ScalarSpec(value=0.9), "gain": ScalarSpec(value=1.0)'
    kinds = scalars_by_kind(workshop, with_scalars(specs))
    sums = {kind[:2]: each[kind[0]] + each[kind[1]] for kind, each in kinds.items() if len(kind) == 3}
    assert sums == dict.fromkeys([("rate", "decay"), ("rate", "gain"), ("decay", "gain")], 1)


@pytest.mark.parametrize(
    ("value", "result", "is_cleared"),
    [(0.9, "x + decay", True), (0.9, "x / decay", False), (1e-6, "x + decay", False), (1.5, "x + decay", False)],
)
def test_a_share_is_zero_where_results_stay_finite(workshop, value, result, is_cleared):
    text = with_scalars(f'"decay": ScalarSpec(value={value})')
    file_text = text[: text.index("return ")] + f"return {result}\n"
    assert (("decay", "0") in scalars_by_kind(workshop, file_text)) == is_cleared


def test_numbers_near_each_other_have_one_whole_part(workshop):
    file = workshop.load("square", with_scalars('"base": ScalarSpec(value=10000.0), "k": ScalarSpec(value=0.125)'))
    usual, *nearby = list_nearby_scalars(file, file.definition.workloads[0])
    assert usual == {"base": 10000.0, "k": 0.125}
    assert int(nearby[0]["base"]) == 10000 < nearby[0]["base"]
    assert nearby[-1]["k"] > 0.14
    whole = workshop.load("square", with_scalars('"k": ScalarSpec(type="int", value=4)'))
    assert list_nearby_scalars(whole, whole.definition.workloads[0]) == []


def test_integers_without_a_range_have_one_value(workshop):
    specs = '"k": ScalarSpec(type="int", value=50), "lag": ScalarSpec(type="int", value=3, between=(1, 9))'
    one = workshop.load("square", with_scalars(specs))
    assert list_constant_integers(one.definition) == {"k": 50}
    two = with_scalars(specs).replace('axes={"n": 5000})', 'axes={"n": 5000}, scalars={"k": 20})')
    assert list_constant_integers(workshop.load("square", two).definition) == {}


def test_a_single_number_is_special_by_chance_alone(workshop):
    assert scalars_by_kind(workshop, with_scalars('"a": ScalarSpec(value=1.0, between=(-4, 4))')) == {}


def test_switches_and_integers_of_own_inputs_stay(workshop):
    text = with_scalars('"on": ScalarSpec(type="bool", value=True), "k": ScalarSpec(type="int", value=4)')
    text = text.replace('axes={"n": 5000})', 'axes={"n": 5000}, scalars={"k": 2000})')
    assert ("k", "n", "0") in scalars_by_kind(workshop, text)
    own = "\ndef inputs(workload, generator, device):\n    return {'x': torch.rand(1000, generator=generator)}\n"
    assert scalars_by_kind(workshop, text + own) == {}


def test_an_integer_that_is_a_size_is_no_number_to_draw(workshop):
    file = workshop.load(
        "square", with_scalars('"n": ScalarSpec(type="int", value=8), "a": ScalarSpec(value=2.0)')
    )
    workload = file.definition.workloads[0]
    longer = workload.model_copy(update={"axes": {"n": 4001}})
    varied = vary_scalars(file, longer, Random(1))
    assert set(varied.scalars) == {"a"}
    assert file.definition.scalars(varied)["n"] == 4001
    assert list_constant_integers(file.definition) == {}
    assert not [kind for kind in scalars_by_kind(workshop, file.path.read_text()) if "n" in kind]


def test_some_shares_are_near_one():
    near = {scalar_values._draw_special_number(0.05, 1.0, Random(seed)) for seed in range(400)} - {None, 0.05, 1.0}
    assert len(near) == input_rules.NEAR_ONE_BITS
    assert max(near) == 1 - 2.0**-input_rules.NEAR_ONE_BITS


def test_wide_numbers_are_drawn_near_their_ends_and_zero(workshop):
    text = SQUARE.replace(
        'inputs={"x": TensorSpec(shape=("n",))}',
        'inputs={"x": TensorSpec(shape=("n",)), "w": ScalarSpec(type="int", value=64, between=(1, 1 << 20)), '
        '"s": ScalarSpec(value=0.5, between=(-4, 4)), '
        '"big": ScalarSpec(type="int", value=1, between=(0, 1 << 62))}',
    ).replace("def reference(x)", "def reference(x, w, s, big)")
    file = workshop.load("square", text)
    drawn = [vary_scalars(file, file.definition.workloads[0], Random(seed)).scalars for seed in range(400)]
    widths, factors = [each["w"] for each in drawn], [each["s"] for each in drawn]
    assert 1 <= min(widths) <= max(widths) <= 1 << 20
    assert sum(1 < width < 1000 for width in widths) > 30
    assert sum((1 << 20) - 1000 < width < 1 << 20 for width in widths) > 5
    assert sum(width > 2000 for width in widths) > 150
    assert -4 <= min(factors) <= max(factors) <= 4
    assert sum(0 < abs(factor) < 0.01 for factor in factors) > 15
    assert all(0 <= each["big"] <= 1 << 62 for each in drawn)


def test_a_fair_share_of_real_numbers_are_whole_or_a_half_more(workshop):
    file = workshop.load("square", FACTORS)
    drawn = [vary_scalars(file, file.definition.workloads[0], Random(seed)).scalars for seed in range(400)]
    whole = Counter(each["a"] for each in drawn if each["a"] == round(each["a"]))
    assert min(whole[number] for number in (-3, -2, 2, 3)) > 0
    assert Counter(each["b"] for each in drawn)[1.5] > 5
    assert scalar_values._list_whole_numbers(0.1, 0.4) == []


def test_two_numbers_are_alike_by_chance(workshop):
    file = workshop.load("square", FACTORS)
    drawn = [vary_scalars(file, file.definition.workloads[0], Random(seed)).scalars for seed in range(400)]
    alike = [each["a"] for each in drawn if each["a"] == each["b"]]
    assert len(alike) > 30
    assert len(set(alike)) > 15
    assert all(0.25 <= each["b"] <= 2 for each in drawn)


def test_a_number_and_an_integer_are_never_made_alike(workshop):
    text = with_scalars('"a": ScalarSpec(value=0.5, between=(0, 4)), "b": ScalarSpec(type="int", value=3)')
    file = workshop.load("square", text)
    drawn = [vary_scalars(file, file.definition.workloads[0], Random(seed)).scalars for seed in range(100)]
    assert all(type(each["a"]) is float for each in drawn)
    assert all(type(each["b"]) is int for each in drawn)


def test_numbers_are_not_made_alike_where_the_reference_is_infinite_then(workshop):
    """Some are by chance, as two limits are."""

    def count_alike(name, text):
        file = workshop.load(name, text.replace("square", name))
        drawn = [vary_scalars(file, file.definition.workloads[0], Random(seed)).scalars for seed in range(400)]
        return sum(each["a"] == each["b"] for each in drawn)

    assert count_alike("quotient", FACTORS.replace("return x * x", "return x / (a - b)")) < 25
    assert count_alike("product", FACTORS) > 35
