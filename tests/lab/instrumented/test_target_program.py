from __future__ import annotations

import torch
from lab_samples import GIVEN, SQUARE

from warpsmith.lab.instrumented import target_program


def test_arguments_are_in_the_definitions_order(workshop):
    scaled = SQUARE.replace(
        'inputs={"x"', 'inputs={"a": ScalarSpec(value=3.0), "b": ScalarSpec(type="int", value=2), "x"'
    )
    definition = workshop.load("square", scaled).definition
    x = torch.zeros(1000)
    assert target_program.run_arguments(definition, definition.workloads[0], {"x": x}, "cpu") == [3.0, 2, x]


def test_outputs_are_given_where_the_definition_says_so(workshop):
    definition = workshop.load("given", GIVEN).definition
    x, y = target_program.run_arguments(definition, definition.workloads[1], {"x": torch.zeros(5000)}, "cpu")
    assert (y.shape, y.dtype, y.data_ptr() == x.data_ptr()) == (x.shape, x.dtype, False)


def test_an_error_is_told_in_one_line():
    assert target_program.describe_exception(ValueError("one\n  two")) == "ValueError: one two"
    assert len(target_program.describe_exception(ValueError("x" * 5000))) < 700
