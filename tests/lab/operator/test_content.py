"""Content: tensors as bytes, whatever their strides say."""

from __future__ import annotations

import pytest
import torch

from warpsmith.lab.operator.tensor_bytes import as_bytes, equal_bytes, select_bytes


@pytest.mark.parametrize("stride", [1, 7, 50257])
def test_one_element_has_any_stride(stride):
    one = torch.empty_strided((1, 1), (stride, stride)).fill_(2.0)
    assert as_bytes(one).tolist() == torch.tensor([2.0]).view(torch.uint8).tolist()
    assert equal_bytes(one, torch.tensor([[2.0]]))


def test_a_contiguous_tensor_shares_its_memory():
    tensor = torch.zeros(2, 3)
    as_bytes(tensor).fill_(0xFF)
    assert tensor.isnan().all()


def test_bytes_tell_more_than_values():
    nan, zero = torch.tensor([float("nan")]), torch.tensor([0.0])
    assert equal_bytes(nan, nan.clone())
    assert not equal_bytes(zero, -zero)


def test_a_transposed_tensor_is_read_in_its_own_order():
    tensor = torch.arange(6).view(2, 3)
    assert equal_bytes(tensor.t(), torch.tensor([[0, 3], [1, 4], [2, 5]]))


def test_nothing_is_the_same_as_nothing():
    assert equal_bytes(torch.empty(0, 4), torch.empty(0, 4))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float8_e4m3fn, torch.int32])
def test_elements_are_chosen_byte_by_byte(dtype):
    one, other = torch.zeros(2, 3, dtype=dtype), torch.ones(3, 2).to(dtype).T
    which = torch.tensor([[True, False, False], [False, False, True]])
    assert select_bytes(which, one, other).float().tolist() == [[0, 1, 1], [1, 1, 0]]
    assert equal_bytes(select_bytes(which, other, one), (~which).float().logical_not().to(torch.float32).to(dtype))


def test_of_nothing_nothing_is_chosen():
    assert select_bytes(torch.zeros(0, 3, dtype=torch.bool), torch.zeros(0, 3), torch.ones(0, 3)).shape == (0, 3)
