"""Conflicts of blocks in a launch; tests of whole versions are those of attacks on ports."""

from __future__ import annotations

from types import SimpleNamespace

import numpy
import pytest

pytest.importorskip("triton")

import torch
import triton.language as tl
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from warpsmith.languages.triton import block_conflicts
from warpsmith.languages.triton.block_conflicts import BlockConflict

LOAD_OPTIONS, STORE_OPTIONS = (
    [None] * (method.__code__.co_argcount - 4)
    for method in (InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store)
)
"""Arguments on caches, of which releases of Triton have different numbers."""


@pytest.fixture
def builder(monkeypatch):
    """The interpreter with its accesses checked, in a grid of four blocks."""
    for name in ("create_masked_load", "create_masked_store", "create_atomic_cas", "create_atomic_rmw"):
        monkeypatch.setattr(InterpreterBuilder, name, getattr(InterpreterBuilder, name))
    block_conflicts.patch_interpreter_accesses()
    made = InterpreterBuilder()
    made.set_grid_dim(4, 1, 1)
    return made


def pointers(tensor: torch.Tensor, *elements: int) -> TensorHandle:
    addresses = numpy.array([tensor.data_ptr() + 4 * element for element in elements], dtype=numpy.uint64)
    return TensorHandle(addresses, tl.pointer_type(tl.float32))


def handle(*values: object) -> TensorHandle:
    array = numpy.array(values)
    return TensorHandle(array if array.dtype == bool else array.astype(numpy.float32), tl.float32)


def write(builder, block: int, tensor: torch.Tensor, element: int, value: float) -> None:
    builder.set_grid_idx(block, 0, 0)
    builder.create_masked_store(pointers(tensor, element), handle(value), handle(True), *STORE_OPTIONS)


def read(builder, block: int, tensor: torch.Tensor, element: int, *, mask: bool = True) -> None:
    builder.set_grid_idx(block, 0, 0)
    builder.create_masked_load(pointers(tensor, element), handle(mask), None, *LOAD_OPTIONS)


def test_a_block_reads_what_it_wrote_itself_and_nothing_of_others(builder):
    x = torch.zeros(8)
    with block_conflicts.watched_launch([x]):
        write(builder, 1, x, 3, 2.0)
        read(builder, 1, x, 3)
        read(builder, 2, x, 4)
        read(builder, 2, x, 3, mask=False)
        with pytest.raises(BlockConflict, match="reads what another block wrote"):
            read(builder, 2, x, 3)
    assert x[3] == 2
    with block_conflicts.watched_launch([x]):  # launches come one after another
        read(builder, 2, x, 3)


def test_blocks_may_write_the_same_value_to_one_place(builder):
    x = torch.zeros(8)
    with block_conflicts.watched_launch([x]):
        write(builder, 0, x, 3, float("nan"))
        write(builder, 1, x, 3, float("nan"))
        with pytest.raises(BlockConflict, match="different values"):
            write(builder, 2, x, 3, 1.0)


def test_atomic_operations_may_order_blocks(builder):
    x, counter = torch.zeros(8), torch.zeros(1, dtype=torch.int32)
    with block_conflicts.watched_launch([x, counter]):
        write(builder, 0, x, 3, 2.0)
        place = TensorHandle(numpy.array([counter.data_ptr()], dtype=numpy.uint64), tl.pointer_type(tl.int32))
        one = TensorHandle(numpy.array([1], dtype=numpy.int32), tl.int32)
        operation, order = (
            next(iter(kinds))
            for kinds in (
                InterpreterBuilder.ir_rmw_op_to_interpreter_rmw_op,
                InterpreterBuilder.ir_sem_to_interpreter_sem,
            )
        )
        builder.create_atomic_rmw(operation, place, one, handle(True), order, None)
        read(builder, 1, x, 3)


def test_memory_that_tensors_share_is_one(builder):
    x = torch.zeros(8)
    with block_conflicts.watched_launch([x[:6], x[2:]]):
        write(builder, 0, x, 7, 2.0)
        with pytest.raises(BlockConflict):
            read(builder, 1, x, 7)
    assert block_conflicts.merge_extents([(10, 4), (0, 8), (12, 8), (4, 2), (30, 0)]) == [(0, 8), (10, 10)]


def test_blocks_of_a_grid_are_numbered_apart():
    sizes = (2, 3, 4)
    numbers = {
        block_conflicts._block_number(SimpleNamespace(grid_idx=(x, y, z), grid_dim=sizes))
        for x in range(2)
        for y in range(3)
        for z in range(4)
    }
    assert numbers == set(range(1, 25))
