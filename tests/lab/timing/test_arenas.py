"""Layouts in which the inputs of a definition may come."""

from __future__ import annotations

import pytest
from lab_samples import SQUARE

from warpsmith.lab.timing import arenas
from warpsmith.lab.workers.arena import EXPANDED, FRAMED

ROWS = 'TensorSpec(shape=(3, "n"), layout="any")'


def load(workshop, x: str, more: str = "", extra: str = ""):
    """Load a definition with an input `x`, further inputs, and further arguments or code."""
    text = SQUARE.replace('inputs={"x": TensorSpec(shape=("n",))', f'inputs={{{more}"x": {x}')
    text = text.replace('flops="n",', f'flops="n", {extra}') if extra.startswith("constraints") else text + extra
    return workshop.load("square", text.replace("reference(x)", "reference(w, x)") if more else text)


@pytest.mark.parametrize(
    ("x", "extra", "framed", "expanded"),
    [
        (ROWS, "", True, True),
        (ROWS, 'constraints=("n >= 1",),', True, True),
        (ROWS, 'constraints=("each row of x sums to one",),', False, True),
        ('TensorSpec(shape=("n",), layout="any")', "", False, True),
        ('TensorSpec(shape=(3, "n"))', "", False, False),
        ('TensorSpec(shape=(3, "n"), layout="any", dtype="int64", distribution="distinct:n")', "", False, True),
        (ROWS, "\ndef inputs(axes, scalars, seed):\n    return {}\n", False, False),
    ],
)
def test_rows_overlap_where_no_promise_binds_them(workshop, x, extra, framed, expanded):
    file = load(workshop, x, extra=extra)
    workload = file.definition.workloads[0]
    for layouts in (arenas.list_layouts(file, workload, "cpu"), arenas.list_dense_layouts(file)):
        assert (FRAMED in layouts, EXPANDED in layouts) == (framed, expanded)


@pytest.mark.parametrize("layout", [FRAMED, arenas.MIXED])
def test_an_input_of_a_promise_stays_as_it_is(workshop, layout):
    more = f'"w": {ROWS}, '
    file = load(workshop, ROWS, more, 'constraints=("w is a sequence",),')
    workload, hops = file.definition.workloads[0], set()
    assert FRAMED in arenas.list_layouts(file, workload, "cpu")
    for _ in range(60):
        ((inputs, _),) = arenas.lay_out(file, workload, 1, layout)[2]
        assert not inputs["w"].hop
        hops.add(inputs["x"].hop > 0)
    assert True in hops
