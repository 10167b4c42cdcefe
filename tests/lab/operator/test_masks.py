"""Masks of booleans, and of numbers that a promise allows beside the others."""

from __future__ import annotations

import torch
from lab_samples import SQUARE

from warpsmith.core.definition import Workload
from warpsmith.lab.operator.distributions import IGNORED, MASKED_ABOVE
from warpsmith.lab.operator.inputs import Inputs


def test_booleans_of_pairs_are_windows_and_documents(workshop):
    text = SQUARE.replace('"x": TensorSpec(shape=("n",))', '"x": TensorSpec(shape=("n", 40), dtype="bool")', 1)
    source = Inputs(workshop.load("square", text), Workload(name="w", axes={"n": 40}), 3, "cpu")
    drawn = [source.draw("constant")["x"] for _ in range(200)]
    diagonal = [each for each in drawn if bool(each.diagonal().all())]
    causal = [each for each in diagonal if not bool(each.triu(1).any())]
    windows = [each for each in causal if not bool(each.tril(-20).any()) and int(each.sum()) > 40]
    assert windows
    assert any(torch.equal(each, each.T) and 40 < int(each.sum()) < 1600 for each in diagonal)


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
