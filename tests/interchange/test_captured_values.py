"""Statistics of captured tensors: what they are drawn as."""

import pytest
import torch

from warpsmith.interchange.captured_values import CapturedValues, describe_values


def described(tensors, dtype, axes, **sizes):
    samples = [
        CapturedValues(tensor, {axis: size[i] for axis, size in sizes.items()}) for i, tensor in enumerate(tensors)
    ]
    return describe_values(samples, dtype, axes)


@pytest.mark.parametrize(
    ("tensors", "distribution", "says"),
    [
        ([[0, 3, 3, 8], [0, 1, 2, 5]], "offsets:total", "end at total"),
        ([[0, 3, 3, 9], [0, 1, 1, 5]], "offsets:9", "ascending"),
        ([[3, 1, 0, 2], [0, 1, 2, 3]], "distinct:n", "permutation"),
        ([[3, 1, 0, 7], [4, 1, 2, 0]], "distinct:total", "distinct"),
        ([[7, 7, 0, 7], [4, 1, 1, 0]], "integers:0:total", "below total"),
        ([[-1, 7, 0, 7], [4, 1, 1, 0]], "integers:-1:8", "from -1 to 7"),
        ([[90, 7, 90, 7], [4, 1, 1, 0]], "integers:0:91", "from 0 to 90"),
    ],
)
def test_the_structure_of_integers_is_recognized(tensors, distribution, says):
    tensors = [torch.tensor(values) for values in tensors]
    result = described(tensors, "int64", ("n",), n=(4, 4), total=(8, 5))
    assert result.distribution == distribution
    assert says in result.summary


def test_distinct_ids_in_rows_are_recognized():
    rows = torch.stack([torch.randperm(64)[:8] for _ in range(32)])
    assert described([rows], "int32", ("tokens", "k"), tokens=(32,), k=(8,), experts=(64,)).distribution == (
        "distinct:experts"
    )


def test_scale_zeros_and_constants_are_reported():
    values = 3 * torch.randn(4000)
    values[::2] = 0
    result = described([values], "float32", ("n",), n=(4000,))
    assert "50% zeros" in result.summary
    assert result.distribution.startswith("normal:0:2.")
    ones = [torch.ones(8), torch.ones(8)]
    result = described(ones, "float32", ("n",), n=(8, 8))
    assert result.distribution == "uniform:0.5:1.5"
    assert "same in every call" in result.summary


def test_nothing_is_said_of_empty_tensors():
    assert described([torch.empty(0)], "float32", ("n",), n=(0,)).distribution == "workload"
