from __future__ import annotations

from pathlib import Path

import pytest
import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload
from warpsmith.lab.grading import correctness
from warpsmith.lab.grading.moved_values import moved_outputs
from warpsmith.lab.operator.definition_file import DefinitionFile


def file_of(reference, **changes):
    definition = Definition(
        name="op",
        description="an operator",
        axes={"rows": "rows", "cols": "columns"},
        inputs={
            "x": TensorSpec(shape=("rows", "cols")),
            "order": TensorSpec(shape=("rows",), dtype="int64", distribution="integers:0:rows"),
        },
        outputs={"y": TensorSpec(shape=("rows", "cols"))},
        tolerance=Tolerance(**changes),
        flops="rows * cols",
        workloads=(Workload(name="w", axes={"rows": 8, "cols": 64}),),
    )
    return DefinitionFile(definition, Path("op/definition.py"), "0" * 64, reference)


@pytest.mark.parametrize(
    ("reference", "moved"),
    [
        (lambda x, order: x[order], {"y"}),
        (lambda x, order: torch.relu(x), {"y"}),
        (lambda x, order: x.sort(-1).values, {"y"}),
        (lambda x, order: x * 2, set()),
        (lambda x, order: torch.nn.functional.leaky_relu(x), set()),
        (lambda x, order: torch.zeros_like(x), set()),
        (lambda x, order: order.double()[:, None].expand_as(x), set()),
        (lambda x, order: 1 / 0, set()),
    ],
)
def test_outputs_that_hold_values_of_inputs(reference, moved):
    assert moved_outputs(file_of(reference)) == moved


def worst_error(file, changed):
    (workload,) = file.definition.workloads
    inputs = {"x": torch.randn(8, 64), "order": torch.arange(8)}
    truth = correctness.compute_truth(file, workload, inputs)
    return correctness.grade_outputs(truth, {"y": changed(inputs["x"])}).worst


def cut(x):
    """Return float32 numbers without their last bit, some of which have none."""
    return (x.view(torch.int32) & -2).view(torch.float32)


def test_a_copy_is_exact():
    file = file_of(lambda x, order: x[order])
    assert worst_error(file, lambda x: x) == 0
    assert worst_error(file, cut) > 1


def test_a_definition_may_allow_a_copy_more():
    assert worst_error(file_of(lambda x, order: x[order], slack=4.0), cut) < 1


def test_the_last_of_many_elements_has_a_place():
    """float32 has no number for it."""
    file = file_of(lambda x, order: x * 2)
    [one] = file.definition.workloads
    many = one.model_copy(update={"axes": {"rows": 1, "cols": (1 << 24) + 4}})
    changed = file.definition.model_copy(update={"workloads": (many,)})
    assert moved_outputs(DefinitionFile(changed, file.path, file.sha256, file.reference)) == set()
