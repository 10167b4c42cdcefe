"""Masks of booleans, and of numbers that a promise allows beside the others."""

from __future__ import annotations

import pytest
import torch
from lab_samples import SQUARE

from warpsmith.core.definition import Workload
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.operator.promises import find_sentinels
from warpsmith.lab.operator.values.distributions import IGNORED, MASKED_ABOVE
from warpsmith.lab.operator.values.masks import PAIR_FORMS, draw_booleans, draw_pairs, place_exceptions


def test_booleans_of_pairs_are_windows_and_documents(workshop):
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', '"x": TensorSpec(shape=("n", 40), dtype="bool")', 1)
    source = Inputs(workshop.load("square", text), Workload(name="w", axes={"n": 40}), 3, "cpu")
    drawn = [source.draw("constant")["x"] for _ in range(1600)]
    diagonal = [each for each in drawn if bool(each.diagonal().all())]
    causal = [each for each in diagonal if not bool(each.triu(1).any())]
    windows = [each for each in causal if not bool(each.tril(-20).any()) and int(each.sum()) > 40]
    assert windows
    assert any(torch.equal(each, each.T) and 40 < int(each.sum()) < 1600 for each in diagonal)


def test_booleans_of_rows_are_alike_or_each_of_a_form():
    generator = torch.Generator().manual_seed(3)
    drawn = [draw_booleans((40, 200), generator) for _ in range(300)]
    begins = [each[:, 0] & ~each[:, -1] for each in drawn]
    lengths = [each.sum(-1) for each in drawn]
    changes = [each.int().diff(dim=-1).abs().sum(-1) for each in drawn]
    prefixes = [begin & (change == 1) for begin, change in zip(begins, changes, strict=True)]
    holes = [begin & (change > 2) & (change < 8) for begin, change in zip(begins, changes, strict=True)]
    assert sum(0 < int(each.sum()) < 20 for each in prefixes) > 5, "prefixes beside other rows"
    assert sum(bool(each.any()) for each in holes) > 20, "prefixes with exceptions"
    assert any(len(set(length.tolist())) > 20 for length in lengths), "lengths differ"


def test_exceptions_are_few_and_in_one_row_to_all():
    generator, counts = torch.Generator().manual_seed(3), []
    for _ in range(200):
        marks = place_exceptions(torch.zeros(30, 50), torch.ones(30, 50), generator).sum(-1)
        assert 0 < int(marks.max()) <= 3
        counts.append(int((marks > 0).sum()))
    assert {1, 30} <= set(counts)
    assert len(set(counts)) > 15
    assert place_exceptions(torch.zeros(0, 5), torch.ones(0, 5), generator).shape == (0, 5)
    assert place_exceptions(torch.zeros(3, 1), torch.ones(3, 1), generator).sum() >= 1


def test_pairs_that_belong_together_hold_the_diagonal():
    generator, steps = torch.Generator().manual_seed(3), 0
    for form in range(PAIR_FORMS):
        for _ in range(20):
            pairs = draw_pairs((2, 24, 24), form, generator)
            assert bool(pairs.diagonal(dim1=-2, dim2=-1).all())
            assert form not in (1, 3, 5, 6) or not bool(pairs.triu(1).any())
            steps += bool(pairs.triu(2).any()) and not bool(pairs.diagonal(1, -2, -1).any())
    assert steps > 5, "a step leaves out neighbors"


LABELS = (
    SQUARE.replace(
        '"x": TensorSpec(shape=("n",))',
        '"x": TensorSpec(shape=("n",), dtype="int64"), "skip": ScalarSpec(type="int", value=-100)',
        1,
    )
    .replace('flops="n"', 'flops="n", constraints=("0 <= x < 128 or x == skip",)')
    .replace("(x)", "(x, skip)")
)


def test_numbers_of_a_promise_stand_in_blocks_too(workshop):
    source = Inputs(workshop.load("square", LABELS), Workload(name="w", axes={"n": 1000}), 3, "cpu")
    drawn = [source.draw("constant")["x"] == -100 for _ in range(40)]
    assert any(bool(each[:300].all()) for each in drawn)
    assert any(0 < int(each.sum()) < 250 and not bool(each[:300].all()) for each in drawn)
    assert not any(bool(each.all()) for each in drawn)


def test_labels_are_all_ignored_where_a_promise_admits_that(workshop):
    workload = Workload(name="w", axes={"n": 1000})
    source = Inputs(workshop.load("square", LABELS), workload, 3, "cpu")
    assert IGNORED in source.adversarial_distributions
    assert bool((source.draw(IGNORED)["x"] == -100).all())
    plain = Inputs(workshop.load("plain", SQUARE.replace("square", "plain")), workload, 3, "cpu")
    assert IGNORED not in plain.adversarial_distributions


def test_masks_are_infinite_above_too(workshop):
    source = Inputs(workshop.load("square", SQUARE), Workload(name="w", axes={"n": 1000}), 3, "cpu")
    values = source.draw(MASKED_ABOVE)["x"]
    assert 0 < int(values.isposinf().sum()) < 1000
    assert not bool(values.isneginf().any())


@pytest.mark.parametrize(
    ("promise", "text", "expected"),
    [
        ("x is below 128, or skip where it is padding", "", -100),
        ("", "a class, or is equal to skip", -100),
        ("x is below 128 and never skip, or skip", "", None),
        ("x ascends or skip - 1 follows", "", None),
        ("", "a class", None),
    ],
)
def test_numbers_are_allowed_in_other_words_too(workshop, promise, text, expected):
    source = LABELS.replace('"0 <= x < 128 or x == skip",', f'"{promise}",' if promise else "")
    source = source.replace('dtype="int64"', f'dtype="int64", description="{text}"')
    file = workshop.load("square", source)
    assert find_sentinels(file, file.definition.workloads[0]) == ({} if expected is None else {"x": expected})


@pytest.mark.parametrize(
    ("promise", "text", "expected"),
    [
        ("0 <= x < 128, or x == -100", "", -100),
        ("x == -1 or x < 128", "", -1),
        ("", "a class, or -1 where there is none", -1),
        ("", "a class from -1 to 127", None),
        ("x is not -1", "a class", None),
        ("", "a class, or -1 times it", None),
    ],
)
def test_written_numbers_are_allowed_where_words_say_so(workshop, promise, text, expected):
    spec = f'dtype="int64", description="{text}"'
    source = LABELS.replace("-100", "7").replace('dtype="int64"', spec)
    source = source.replace('"0 <= x < 128 or x == skip",', f'"{promise}",' if promise else "")
    file = workshop.load("square", source)
    assert find_sentinels(file, file.definition.workloads[0]) == ({} if expected is None else {"x": expected})


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_numbers_beyond_a_type_are_not_allowed(workshop, dtype):
    source = LABELS.replace('"0 <= x < 128 or x == skip",', "").replace("-100", "-1000")
    source = source.replace('dtype="int64"', f'dtype="{dtype}", description="a class, or skip"')
    file = workshop.load("square", source)
    assert find_sentinels(file, file.definition.workloads[0]) == {}


def test_numbers_that_the_reference_refuses_are_not_allowed(workshop):
    source = LABELS.replace("x == skip", "skip").replace("return ", "torch.ones(9)[x]; return ")
    file = workshop.load("square", source)
    assert find_sentinels(file, file.definition.workloads[0]) == {}


@pytest.mark.parametrize(
    ("text", "dtype", "expected"),
    [
        ("a class; negative: the row is ignored", "int64", -(2**63)),
        ("a class; rows of negative ones are ignored", "int32", -(2**31)),
        ("a class, which is not negative", "int64", None),
        ("a non-negative class", "int64", None),
        ("negative ones are ignored", "uint8", None),
    ],
)
def test_any_negative_number_is_the_least_of_its_type(workshop, text, dtype, expected):
    source = LABELS.replace('"0 <= x < 128 or x == skip",', "").replace("-100", "7")
    file = workshop.load("square", source.replace('dtype="int64"', f'dtype="{dtype}", description="{text}"'))
    assert find_sentinels(file, file.definition.workloads[0]) == ({} if expected is None else {"x": expected})
