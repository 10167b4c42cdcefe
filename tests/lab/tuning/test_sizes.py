"""Sizes that a user asks for."""

from __future__ import annotations

import pytest

from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.errors import Misuse
from warpsmith.lab.tuning.sizes import parse_size

DEFINITION = Definition(
    name="halves",
    description="y = sums of halves",
    axes={"rows": "rows", "cols": "columns", "width": 4},
    inputs={"x": TensorSpec(shape=("rows", "cols"))},
    outputs={"y": TensorSpec(shape=("rows", "cols // (cols - 8)"))},
    flops="rows * cols",
    workloads=(
        Workload(name="small", axes={"rows": 8, "cols": 16}),
        Workload(name="large", axes={"rows": 64, "cols": 128}, dtype="bfloat16"),
    ),
)


def parse(text: str) -> Workload:
    return parse_size(DEFINITION, DEFINITION.workloads, text)


def test_a_size_changes_the_largest_workload() -> None:
    workload = parse("cols=129")
    assert (workload.name, workload.axes, workload.dtype) == ("cols=129", {"rows": 64, "cols": 129}, "bfloat16")
    assert workload.timed


def test_a_size_may_name_a_type() -> None:
    workload = parse("cols=33, rows=7:float16")
    assert (workload.axes, workload.dtype) == ({"rows": 7, "cols": 33}, "float16")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("129", "a size is `AXIS=N.*as in `rows=63,cols=127`"),
        ("cols=x", "a size is"),
        ("cols=", "a size is"),
        ("columns=3", "no axis `columns` of any size; it has: rows, cols"),
        ("width=3", "no axis `width`"),
        ("cols=0", "`cols` is less than 1"),
        ("cols=129:bf16", "no type `bf16`"),
        ("cols=8", "no such workload"),
    ],
)
def test_no_size(text: str, message: str) -> None:
    with pytest.raises(Misuse, match=message):
        parse(text)
