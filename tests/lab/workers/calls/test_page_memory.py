"""Inputs in pages of their own: equal to the tensors, at an edge, and out of reach beyond it."""

from __future__ import annotations

import faulthandler
import mmap
import multiprocessing
import signal

import pytest
import torch

from warpsmith.lab.workers.calls.page_memory import PLACEMENTS, copy_to_pages

TENSORS = [
    torch.arange(1000.0), torch.arange(2048, dtype=torch.int64), torch.empty(0, 3),
    torch.arange(12.0).view(3, 4).t(), torch.arange(100.0)[1::3], torch.tensor(2.0),
    torch.arange(4.0).expand(3, 4),
    torch.tensor([True, False]), torch.ones(7, dtype=torch.bfloat16),
]  # fmt: skip


@pytest.mark.parametrize("placement", PLACEMENTS)
@pytest.mark.parametrize("tensor", TENSORS, ids=lambda tensor: f"{tuple(tensor.shape)} {tensor.dtype}")
def test_a_copy_is_equal_and_lies_at_its_edge(tensor, placement):
    copy, number = copy_to_pages({"x": tensor, "alpha": 3.5}, placement, "x")
    assert torch.equal(copy, tensor)
    assert copy.stride() == tensor.stride()
    assert number == 3.5
    last = max((size - 1) * stride for size, stride in zip((1, *tensor.shape), (0, *tensor.stride()), strict=True))
    if tensor.dim() == 1 and tensor.numel():
        at = copy.data_ptr() + (last + 1) * copy.element_size() * (placement == "end")
        inside = 512 + tensor.data_ptr() % 64
        assert at % mmap.PAGESIZE == (inside if placement == "inside" else 0), "not as aligned as before"


@pytest.mark.parametrize("length", [1, 15, 16, 17, 1024])
def test_a_copy_that_may_not_begin_anywhere_is_aligned(length):
    (copy,) = copy_to_pages({"x": torch.arange(float(length))}, "end", ())
    end = copy.data_ptr() + 4 * length
    assert copy.data_ptr() % 64 == 0
    assert -end % mmap.PAGESIZE < 64


def touch(placement, index, writes):
    faulthandler.disable()
    (copy,) = copy_to_pages({"x": torch.arange(1024.0)}, placement, "x")
    beyond = copy.as_strided((1,), (1,), copy.storage_offset() + index)
    if writes:
        beyond.fill_(1.0)
    else:
        assert beyond.item() >= 0


@pytest.mark.parametrize(
    ("placement", "index", "writes", "signalled"),
    [
        ("end", 1023, False, False), ("end", 1024, False, True), ("start", 0, False, False),
        ("start", -1, False, True), ("end", 0, True, True),
    ],
)  # fmt: skip
def test_what_is_out_of_reach_ends_the_process(placement, index, writes, signalled):
    process = multiprocessing.get_context("fork").Process(target=touch, args=(placement, index, writes))
    process.start()
    process.join(60)
    assert process.exitcode == (-signal.SIGSEGV if signalled else 0)
