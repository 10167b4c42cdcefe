"""Slots in which two inputs are one tensor."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import torch
from lab_samples import SQUARE

from warpsmith.lab.operator.definition_file import load_definition
from warpsmith.lab.timing.arenas import allocate_arenas
from warpsmith.lab.timing.slots import ALIASED, OVERLAPPED, SHARED, VIEWED, Slots

REDTEAM = Path(__file__).parents[2] / "redteam"


@pytest.fixture
def open_slots():
    opened = []

    def open_slots(operator: str, layout: str) -> Slots:
        file = load_definition(REDTEAM / operator / "definition.py")
        workload = file.definition.select("odd")[1]
        opened.append(allocate_arenas(file, [workload], [workload], ["solution"], "cpu"))
        slots = Slots(file, workload, opened[-1], ("solution",), 1, "cpu", count=2, layout=layout)
        slots._prepare_memory()
        for slot in range(2):
            slots._write_slot(slot, slots.inputs.draw())
        return slots

    yield open_slots
    for arenas in opened:
        arenas.close()


@pytest.mark.parametrize(
    ("operator", "layout", "shares"),
    [
        ("distance", ALIASED, True),
        ("distance", VIEWED, True),
        ("distance", "contiguous", False),
        ("rmsnorm", ALIASED, False),  # of one type, but not of one shape
        ("rmsnorm", VIEWED, True),
        ("softmax", VIEWED, False),  # one input
    ],
)
def test_inputs_share_memory_and_values_where_their_shapes_agree(open_slots, operator, layout, shares):
    slots = open_slots(operator, layout)
    assert bool(slots.alias) is shares
    for slot in range(2):
        starts = {name: view.data_ptr() for name, view in slots._views[slot].items()}
        assert (len(set(starts.values())) < len(starts)) is shares
        assert all(torch.equal(view, slots.drawn[slot][name]) for name, view in slots._views[slot].items())
        slots._check_memory("solution", slot)
    if slots.alias:
        first, second = slots.alias
        assert starts[first] == starts[second]
        count = slots.drawn[0][second].numel()
        assert torch.equal(slots.drawn[0][first].flatten()[:count], slots.drawn[0][second].flatten())
        assert slots.truth(0).is_finite


def test_callers_share_weights(open_slots):
    slots = open_slots("rmsnorm", SHARED)
    starts = [{name: view.data_ptr() for name, view in views.items()} for views in slots._views]
    assert starts[0]["weight"] == starts[1]["weight"]
    assert starts[0]["x"] != starts[1]["x"]
    assert torch.equal(slots.drawn[0]["weight"], slots.drawn[1]["weight"])
    for slot in range(2):
        slots._check_memory("solution", slot)


def test_weights_of_other_shapes_are_apart():
    file = load_definition(REDTEAM / "rmsnorm" / "definition.py")
    small, large = (file.definition.select("odd")[number] for number in (1, 2))
    longer = small.model_copy(update={"axes": {**small.axes, "rows": 5}})
    mix = [small, large, longer]
    with contextlib.closing(allocate_arenas(file, [], [], ["solution"], "cpu", mixes=[mix])) as arenas:
        slots = Slots(file, small, arenas, ("solution",), 1, "cpu", count=None, layout=SHARED, mix=mix)
        starts = [views["weight"].data_ptr() for views in slots._views]
        del slots
    assert starts[0] == starts[2]
    assert starts[0] != starts[1]


def test_one_of_two_inputs_is_the_other_one_transposed(workshop):
    text = SQUARE.replace('"n": "length"', '"m": "planes", "n": "length"').replace(
        'shape=("n",)', 'shape=("m", "n", "n")'
    )
    text = text.replace(
        'inputs={"x": TensorSpec(',
        'inputs={"z": TensorSpec(shape=("m", "n", "n")), "x": TensorSpec(layout="any", ',
    )
    text = text.replace('{"n": 1000}', '{"m": 2, "n": 5}').replace('{"n": 5000}', '{"m": 3, "n": 7}')
    file = workshop.load("square", text.replace("reference(x)", "reference(z, x)").replace("x * x", "z - x"))
    workload = file.definition.workloads[0]
    arenas = allocate_arenas(file, [workload], [], ["solution"], "cpu")
    turned = set()
    for seed in range(40):
        slots = Slots(file, workload, arenas, ("solution",), seed, "cpu", count=2, layout=ALIASED)
        slots._prepare_memory()
        slots._write_slot(1, slots.inputs.draw())
        tensors, views = slots.drawn[1], slots._views[1]
        first, second = slots.alias
        expected = tensors[first].transpose(-1, -2) if slots.turned else tensors[first]
        assert torch.equal(tensors[second], expected)
        assert all(torch.equal(views[name], tensors[name]) for name in views)
        turned.add((second, slots.turned))
    arenas.close()
    assert turned == {("x", True), ("x", False), ("z", False)}, "an input of one layout is never transposed"


def test_a_group_of_inputs_is_one_tensor(workshop):
    more = 'inputs={"q": TensorSpec(shape=("n",)), "k": TensorSpec(shape=("n",)), '
    text = SQUARE.replace("inputs={", more).replace("reference(x)", "reference(q, k, x)")
    file = workshop.load("square", text)
    workload = file.definition.workloads[0]
    arenas = allocate_arenas(file, [workload], [], ["solution"], "cpu")
    groups = set()
    for seed in range(40):
        slots = Slots(file, workload, arenas, ("solution",), seed, "cpu", count=2, layout=ALIASED)
        slots._prepare_memory()
        slots._write_slot(1, slots.inputs.draw())
        groups.add(slots.alias)
        tensors, views = slots.drawn[1], slots._views[1]
        assert len({views[name].data_ptr() for name in slots.alias}) == 1, "inputs lie apart"
        assert all(torch.equal(tensors[name], tensors[slots.alias[0]]) for name in slots.alias)
        assert all(torch.equal(views[name], tensors[name]) for name in views), "values are not shared"
    arenas.close()
    assert {len(group) for group in groups} == {2, 3}
    assert {group[0] for group in groups} == {"q", "k", "x"}


@pytest.mark.parametrize(("operator", "shifts"), [("step_change", {1, 67}), ("distance", {16, 32})])
def test_an_input_begins_inside_of_another_one(open_slots, operator, shifts):
    seen = set()
    for _ in range(20):
        slots = open_slots(operator, OVERLAPPED)
        first, second = slots.alias
        seen.add(slots.overlap)
        tensors, views = slots.drawn[1], slots._views[1]
        assert views[second].data_ptr() - views[first].data_ptr() == 4 * slots.overlap
        assert all(torch.equal(views[name], tensors[name]) for name in views), "values are not shared"
        slots._check_memory("solution", 1)
        assert slots._arenas.inputs.size >= slots._input_layout.size, "no room"
        assert slots.describe_alias() == f"{second} begins {slots.overlap} elements inside of {first}"
    assert seen == shifts


def test_each_input_of_a_mixed_call_has_a_layout_of_its_own():
    file = load_definition(REDTEAM / "any_product" / "definition.py")
    workload = file.definition.select("odd")[1]
    arenas = allocate_arenas(file, [workload], [workload], ["solution"], "cpu")
    pairs = set()
    for _ in range(150):
        slots = Slots(file, workload, arenas, ("solution",), 1, "cpu", count=1, layout="mixed")
        a, b = slots._views[0]["a"], slots._views[0]["b"]
        pairs.add((a.is_contiguous(), b.is_contiguous(), b.stride(0) == 1))
        slots._write_slot(0, slots.inputs.draw())
        assert all(torch.equal(view, slots.drawn[0][name]) for name, view in slots._views[0].items())
    arenas.close()
    assert {(True, False, True), (False, True, False), (False, False, True)} < pairs
