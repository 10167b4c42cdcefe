"""Edits in place: what they change, and that they keep what inputs with infinite elements promise."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from lab_samples import SQUARE

from warpsmith.lab.gate.calls import edits
from warpsmith.lab.operator.inputs import Inputs

HIDDEN = torch.tensor([[0.5, float("-inf")], [float("-inf"), -2.0], [float("-inf"), 1.0]])
"""A mask that leaves one element of each row."""


def rows_with_a_finite_element(tensor: torch.Tensor) -> int:
    return int(tensor.isfinite().any(-1).sum())


@pytest.mark.parametrize("kind", ["near", "exchange", "sign"])
def test_infinite_elements_stay_where_they_are(kind: edits.EditKind) -> None:
    for _ in range(30):
        edited = edits._edit_structure(HIDDEN, kind)
        assert torch.equal(edited.isfinite(), HIDDEN.isfinite())
        assert not torch.equal(edited, HIDDEN)


@pytest.mark.parametrize("within", [True, False])
def test_a_new_element_is_finite(within: bool) -> None:
    for _ in range(60):
        edited = edits.edit_tensor(HIDDEN, HIDDEN.flip(-1), within=within)
        assert rows_with_a_finite_element(edited) == len(HIDDEN)


def test_the_largest_finite_element_changes_its_sign() -> None:
    edited = edits._edit_structure(HIDDEN, "sign")
    assert edited[1, 1] == 2.0
    assert int((edited != HIDDEN).sum()) == 1


def test_a_tensor_without_finite_elements_is_edited_too() -> None:
    nothing = torch.full((2, 2), float("-inf"))
    assert torch.equal(edits._edit_structure(nothing, "sign"), nothing)
    assert torch.equal(edits._edit_structure(nothing, "exchange"), nothing)
    assert edits.edit_tensor(nothing, nothing, within=True).shape == (2, 2)


def test_a_cut_moves_by_one_between_its_neighbours() -> None:
    offsets = torch.tensor([0, 2, 2, 5, 5])
    moved = {tuple(edits._edit_structure(offsets, "cut").tolist()) for _ in range(60)}
    assert moved == {(0, 1, 2, 5, 5), (0, 2, 3, 5, 5), (0, 2, 2, 4, 5)}
    assert edits._movable_cuts(torch.tensor([0, 5])) == []
    assert edits._movable_cuts(torch.zeros(4, dtype=torch.int64)) == []


def test_numbers_of_8_bits_are_edited_and_stay_finite() -> None:
    tensor, fresh = torch.tensor([[-448.0, 1.0, 3.0, 0.0], [0.5, 3.0, 1.0, -448.0]]).to(torch.float8_e4m3fn)
    for kind in ("near", "exchange", "sign"):
        assert edits._edit_structure(tensor, kind).float().isfinite().all()
    assert edits._edit_structure(tensor, "sign").float().tolist() == [448.0, 1.0, 3.0, 0.0]
    for within in (True, False):
        drawn = [edits.edit_tensor(tensor, fresh, within=within).float() for _ in range(30)]
        assert all(one.isfinite().all() for one in drawn)
        assert any((one != tensor.float()).any() for one in drawn)
    stepped = edits.update_weight(tensor, torch.ones(4).to(tensor.dtype))
    assert stepped.dtype == tensor.dtype
    assert stepped.float()[1] == 0.875


def test_edits_stay_in_the_range_of_an_input(workshop) -> None:
    text = SQUARE.replace('shape=("n",)', 'shape=("n",), distribution="uniform:-1:0.25"', 1)
    file = workshop.load("square", text)
    inputs = Inputs(file, file.definition.workloads[0], 1, "cpu")
    drawn, written = inputs.draw(), []
    limits = inputs.range_limits("x")
    drawn["x"][:100], drawn["x"][100:200] = limits[0], limits[1]
    session = SimpleNamespace(file=file, inputs=inputs, write_inputs=lambda _, values: written.append(values["x"]))
    assert edits.list_edit_kinds(session, "x", drawn["x"]) == ("near", "exchange")
    for kind in ["element", "near", "exchange"] * 20:
        edits._write_edit(session, drawn, "x", kind)
    assert all(limits[0] <= each.min() <= each.max() <= limits[1] for each in written)
    assert all(bool((each != drawn["x"]).any()) for each in written)
