"""Distributions of related values: slices that are alike, and inputs that are equal."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from warpsmith.lab.operator.definition_file import load_definition
from warpsmith.lab.operator.distributions import EQUAL_INPUTS, REPEATED, shape_values
from warpsmith.lab.operator.inputs import Inputs

REDTEAM = Path(__file__).parents[2] / "redteam"


def drawn(shape, seed):
    generator = torch.Generator().manual_seed(seed)
    return shape_values(REPEATED, torch.randn(shape, generator=generator), "float32", generator)


def test_slices_are_alike_but_for_an_element_that_rules_their_sum():
    alone = 0
    for seed in range(40):
        values = drawn((6, 50), seed)
        first = (values == values[:1]).sum(
            1
        ) >= 48  # of each row two elements may differ: its own, and the first's
        other = (values == values[:, :1]).sum(0) >= 4
        assert first.all() or other.all()
        largest = values.abs().amax(1)
        alone += bool((largest.unique().numel() > 4) and first.all())
    assert 12 < alone < 35


@pytest.mark.parametrize("shape", [(9,), (1, 9), (9, 1), (1, 1), (2, 3, 4)])
def test_any_shape_may_be_repeated(shape):
    for seed in range(10):
        assert drawn(shape, seed).shape == shape


@pytest.fixture
def distance():
    return load_definition(REDTEAM / "distance" / "definition.py")


def test_comparable_inputs_are_equal_or_nearly_so(distance):
    source = Inputs(distance, distance.definition.workloads[1], 3, "cpu")
    assert EQUAL_INPUTS in source.adversarial_distributions
    shares = {
        round(float((tensors["a"] == tensors["b"]).double().mean()), 1)
        for tensors in (source.draw(EQUAL_INPUTS) for _ in range(20))
    }
    assert shares in ({0.9, 1.0}, {0.9, 1.0, 0.95}, {1.0})
    assert any(not torch.equal(*source.draw(EQUAL_INPUTS).values()) for _ in range(20))
    assert any(torch.equal(*source.draw(EQUAL_INPUTS).values()) for _ in range(20))
    assert not torch.equal(*source.draw().values())


def test_inputs_that_a_promise_names_are_never_equal(distance, tmp_path):
    text = distance.path.read_text().replace("flops=", 'constraints=("b is not a",), flops=')
    path = tmp_path / "distance" / "definition.py"
    path.parent.mkdir()
    path.write_text(text)
    promised = load_definition(path)
    source = Inputs(promised, promised.definition.workloads[1], 3, "cpu")
    assert EQUAL_INPUTS not in source.adversarial_distributions
