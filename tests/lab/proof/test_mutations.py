from __future__ import annotations

import torch
from lab_samples import HEAD

from warpsmith.lab.proof.mutations import list_mutations

PAIR = (
    HEAD
    + """
definition = Definition(
    name="pair", description="a row of logits and its label",
    axes={"rows": "rows", "cols": "columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "label": TensorSpec(shape=("rows",), dtype="int64"),
            "on": ScalarSpec(type="bool", value=True), "k": ScalarSpec(type="int", value=4),
            "zero": ScalarSpec(value=0.0)},
    outputs={"q": TensorSpec(shape=("rows", "cols"), dtype="float8_e4m3fn")},
    flops="rows * cols",
    workloads=(Workload(name="w", axes={"rows": 5, "cols": 16}, dtype="bfloat16"),
               Workload(name="one", axes={"rows": 1, "cols": 1})),
)
def reference(x, label, on, k, zero):
    return x
"""
)


def mutations(workshop, index=0):
    file = workshop.load("pair", PAIR)
    constants = {"q": torch.zeros(5, 16).to(torch.float8_e4m3fn)}
    return {m.name: m for m in list_mutations(file, file.definition.workloads[index], constants)}


def test_each_axis_input_output_and_scalar_has_its_own(workshop):
    by_name = mutations(workshop)
    assert [name for name, m in by_name.items() if m.gross] == [
        "a constant, the mean over other inputs",
        "every second slice of x along axis 0 is not read",
        "the last tile of x along axis 0 is not read",
        "every second slice of x along axis 1 is not read",
        "the last tile of x along axis 1 is not read",
        "the rows of x are permuted",
        "every second slice of label along axis 0 is not read",
        "the last tile of label along axis 0 is not read",
        "the rows of label are permuted",
        "every second slice along rows is not read",
        "the last tile of q along axis 0 stays zero",
        "the last tile of q along axis 1 stays zero",
        "the rows of q are permuted",
    ]
    assert [(name, dict(m.scalars)) for name, m in by_name.items() if m.scalars] == [
        ("the scalar on is False, not True", {"on": False}),
        ("the scalar k is 5, not 4", {"k": 5}),
        ("the scalar zero is 0.02, not 0.0", {"zero": 0.02}),
    ]
    assert set(by_name["every second slice along rows is not read"].inputs) == {"x", "label"}
    assert not [name for name in mutations(workshop, 1) if "axis" in name or "rows" in name]


def test_the_changes(workshop):
    by_name = mutations(workshop)
    label = torch.arange(5)
    half = by_name["every second slice of label along axis 0 is not read"].inputs["label"]
    assert half(label).tolist() == [0, 0, 2, 2, 4]
    assert by_name["the rows of label are permuted"].inputs["label"](label).tolist() == [1, 2, 3, 4, 0]
    assert label.tolist() == [0, 1, 2, 3, 4]
    q = torch.ones(5, 16).to(torch.float8_e4m3fn)
    tile = by_name["the last tile of q along axis 1 stays zero"].outputs["q"](q)
    assert (tile.dtype, tile.float().sum(0).tolist()) == (q.dtype, [5.0] * 14 + [0.0] * 2)
    rounded = by_name["inputs are rounded to the next narrower type"].inputs["x"]
    values = torch.tensor([1.0, 1.0703125, 1000.0, float("inf")], dtype=torch.bfloat16)
    assert rounded(values).tolist() == [1.0, 1.125, 1024.0, float("inf")]
    assert "label" not in by_name["inputs are rounded to the next narrower type"].inputs


def test_integers_that_must_ascend_keep_their_order(workshop):
    spec = 'TensorSpec(shape=("rows",), dtype="int64"'
    file = workshop.load("pair", PAIR.replace(spec, f'{spec}, distribution="offsets:cols"'))
    listed = list_mutations(file, file.definition.workloads[0], {"q": torch.zeros(5, 16)})
    of_label = [mutation for mutation in listed if " label " in mutation.name]
    assert [mutation.name for mutation in of_label] == ["every second slice of label along axis 0 is not read"]
    offsets = torch.tensor([0, 3, 3, 9, 16])
    assert of_label[0].inputs["label"](offsets).tolist() == [0, 0, 3, 3, 16]
