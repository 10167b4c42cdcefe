"""Slots in which two inputs are one tensor."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
import torch
from lab_samples import SQUARE
from torch.utils._python_dispatch import TorchDispatchMode

from warpsmith.lab.operator.definition_file import load_definition
from warpsmith.lab.timing.arenas import allocate_arenas
from warpsmith.lab.timing.slots import ALIASED, OVERLAPPED, SHARED, VIEWED, Slots
from warpsmith.lab.workers import arena
from warpsmith.lab.workers.arena import FRAMED
from warpsmith.lab.workers.side import SideFailed

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


@pytest.fixture
def planes(workshop):
    """A definition whose input has planes, in any layout."""
    text = SQUARE.replace('"n": "length"', '"m": "planes", "n": "length"')
    text = text.replace(
        'inputs={"x": TensorSpec(shape=("n",))}', 'inputs={"x": TensorSpec(shape=("m", 9, "n"), layout="any")}'
    )
    text = text.replace(
        'outputs={"y": TensorSpec(shape=("n",))}', 'outputs={"y": TensorSpec(shape=("m", 9, "n"))}'
    )
    return workshop.load(
        "square", text.replace('{"n": 1000}', '{"m": 3, "n": 7}').replace('{"n": 5000}', '{"m": 2, "n": 5}')
    )


def test_frames_hold_what_the_reference_computes_with(planes):
    workload, hops = planes.definition.workloads[0], set()
    with contextlib.closing(allocate_arenas(planes, [workload], [], ["solution"], "cpu")) as arenas:
        for seed in range(60):
            slots = Slots(planes, workload, arenas, ("solution",), seed, "cpu", count=2, layout=FRAMED)
            assert arenas.inputs.size >= slots._input_layout.size, "no room"
            slots._prepare_memory()
            assert slots.shares_elements
            assert slots.correlated
            for slot in range(2):
                values = slots.inputs.draw()
                slots._write_slot(slot, values)
                drawn, kept, hop = values["x"], slots.drawn[slot]["x"], slots._placements[slot][0]["x"].hop
                hops.add(hop)
                assert kept.is_contiguous()
                assert torch.equal(slots._views[slot]["x"], kept), "values are not those of the memory"
                assert torch.equal(kept[:, :-1, :hop], drawn[:, :-1, :hop]), "rows begin with other values"
                assert torch.equal(kept[:, -1], drawn[:, -1]), "the last row is another one"
                assert torch.equal(kept[:, :-1, hop:], kept[:, 1:, :-hop]), "rows do not overlap"
                assert torch.equal(slots.truth(slot).values["y"], kept.double() ** 2)
                slots._check_memory("solution", slot)
            del slots, drawn, kept
    assert hops == set(range(1, 7))


class Copies(TorchDispatchMode):
    """Targets of all copies, as the sizes and strides of each."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[tuple[torch.Size, tuple[int, ...]]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.copy_.default:
            self.targets.append((args[0].shape, args[0].stride()))
        return func(*args, **(kwargs or {}))


def test_no_copy_writes_an_element_of_frames_twice(planes):
    """Threads that share a copy would write the same element in any order."""
    workload = planes.definition.workloads[0]
    with contextlib.closing(allocate_arenas(planes, [workload], [], ["solution"], "cpu")) as arenas:
        slots = Slots(planes, workload, arenas, ("solution",), 1, "cpu", count=1, layout=FRAMED)
        with Copies() as copies:
            slots._write_slot(0, slots.inputs.draw())
        for shape, strides in copies.targets[-2:]:
            view = torch.arange(slots._placements[0][0]["x"].nbytes).as_strided(shape, strides)
            assert view.unique().numel() == view.numel() > 0
        del slots


def test_a_write_to_a_frame_or_between_planes_is_seen(planes, monkeypatch):
    monkeypatch.setattr(arena, "_DENSE_SHARE", 0)
    workload = planes.definition.workloads[0]
    with contextlib.closing(allocate_arenas(planes, [workload], [], ["solution"], "cpu")) as arenas:
        slots = Slots(planes, workload, arenas, ("solution",), 1, "cpu", count=1, layout=FRAMED)
        slots._prepare_memory()
        slots._write_slot(0, slots.inputs.draw())
        view, kept = slots._views[0]["x"], slots.drawn[0]["x"]
        view[1, 4, 3] += 1
        with pytest.raises(SideFailed, match="changed its input x"):
            slots._check_memory("solution", 0)
        slots._write_slot(0, {"x": kept})
        slots._check_memory("solution", 0)
        place = slots._placements[0][0]["x"]
        arenas.inputs.memory[place.offset + 4 * place.strides[0] - 1] ^= 1
        with pytest.raises(SideFailed, match="outside of its tensors"):
            slots._check_memory("solution", 0)
        del slots, view, kept


def test_each_input_of_a_mixed_call_has_a_layout_of_its_own():
    file = load_definition(REDTEAM / "any_product" / "definition.py")
    workload = file.definition.select("odd")[1]
    arenas = allocate_arenas(file, [workload], [workload], ["solution"], "cpu")
    pairs, hops = set(), set()
    for _ in range(150):
        slots = Slots(file, workload, arenas, ("solution",), 1, "cpu", count=1, layout="mixed")
        a, b = slots._views[0]["a"], slots._views[0]["b"]
        pairs.add((a.is_contiguous(), b.is_contiguous(), b.stride(0) == 1))
        hops.add((slots._placements[0][0]["a"].hop > 0, slots._placements[0][0]["b"].hop > 0))
        slots._write_slot(0, slots.inputs.draw())
        assert all(torch.equal(view, slots.drawn[0][name]) for name, view in slots._views[0].items())
    arenas.close()
    assert {(True, False, True), (False, True, False), (False, False, True)} < pairs
    assert {(True, False), (False, True)} < hops
