"""Edits in place: what they change, and that they keep what inputs with infinite elements promise."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from lab_samples import SQUARE

from warpsmith.core.definition import TensorSpec
from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls import edits
from warpsmith.lab.grading.correctness import Grade
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


@pytest.mark.parametrize(("dtype", "most"), [("float32", 14), ("float16", 11), ("bfloat16", 8)])
def test_elements_move_by_as_little_as_their_type_shows(dtype: str, most: int) -> None:
    tensor = torch.linspace(1.0, 2.0, 100).to(getattr(torch, dtype))
    moves = [(edits._edit_structure(tensor, "near") != tensor).float().mean() for _ in range(100)]
    assert min(moves) > 0.3, "each edit shows"
    shares = {edits._draw_near_share(tensor.dtype) for _ in range(300)}
    assert shares == {2.0**-bits for bits in range(8, most + 1)}


def test_the_elements_at_the_ends_are_edited_more_often() -> None:
    tensor, fresh = torch.zeros(1001), torch.ones(1001)
    places = [int((edits.edit_tensor(tensor, fresh, within=False) != tensor).nonzero()) for _ in range(200)]
    assert 20 < places.count(1000) < 90
    assert 20 < places.count(0) < 90
    assert len(set(places)) > 60


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
    session = SimpleNamespace(
        file=file,
        inputs=inputs,
        write_inputs=lambda _, values: written.append(values["x"]),
        call_and_grade=lambda _: Grade(Status.PASSED, 0.0, 0.0),
    )
    assert edits.list_edit_kinds(session, "x", drawn["x"]) == ("near", "exchange")
    edits.require_fresh_results(session, drawn, [("x", "near"), ("x", "exchange")] * 20)
    assert all(bool((each != before).any()) for before, each in pairwise(written))
    for _ in range(20):
        edits.require_fresh_result(session, drawn, "x")
        assert bool((written[-1] != drawn["x"]).any())
    assert all(limits[0] <= each.min() <= each.max() <= limits[1] for each in written)


NUMBERS = torch.arange(60.0).reshape(3, 4, 5)


def moved_places(edited: torch.Tensor) -> list[list[int]]:
    assert sorted(edited.flatten().tolist()) == NUMBERS.flatten().tolist()
    return (edited != NUMBERS).nonzero().tolist()


def test_two_elements_change_places_in_a_line() -> None:
    dims = set()
    for _ in range(60):
        first, second = moved_places(edits._edit_structure(NUMBERS, "line"))
        [dim] = [dim for dim in range(3) if first[dim] != second[dim]]
        dims.add(dim)
    assert dims == {0, 1, 2}


def test_two_slices_change_places() -> None:
    sizes = set()
    for _ in range(60):
        exchange = edits.draw_exchange(NUMBERS, "slices")
        places = moved_places(exchange.apply(NUMBERS))
        [dim] = [dim for dim in range(3) if exchange.positions(dim)]
        assert sorted({place[dim] for place in places}) == exchange.positions(dim)
        sizes.add(len(places))
    assert sizes == {2 * 20, 2 * 15, 2 * 12}


def test_an_element_lies_at_one_position_of_each_dimension() -> None:
    exchange = edits.Exchange((0, 3, 1), (2, 3, 0))
    assert [exchange.positions(dim) for dim in range(3)] == [[0, 2], [3], [0, 1]]
    assert exchange.apply(NUMBERS)[0, 3, 1] == NUMBERS[2, 3, 0]


def test_an_exchange_in_a_line_of_infinite_elements_changes_nothing() -> None:
    for _ in range(30):
        assert torch.equal(edits._edit_structure(HIDDEN[:2], "line"), HIDDEN[:2])


def test_the_partner_of_an_element_differs_from_it_if_it_can() -> None:
    halves = torch.cat([torch.zeros(500), torch.ones(500)])
    changed = sum(not torch.equal(edits._edit_structure(halves, "exchange"), halves) for _ in range(100))
    assert changed > 80, "one of four partners differs nearly always"


def session_of(**specs: TensorSpec) -> SimpleNamespace:
    file = SimpleNamespace(definition=SimpleNamespace(tensor_inputs=specs), inputs=None)
    return SimpleNamespace(file=file, inputs=SimpleNamespace(range_limits=lambda _: None))


def test_a_weight_gets_exchanges_of_elements_and_slices() -> None:
    weight, plain = TensorSpec(shape=("k", "n"), role="weight"), TensorSpec(shape=("m", "k"))
    session = session_of(x=plain, w=weight)
    drawn = {"x": torch.ones(3, 4), "w": torch.ones(4, 5)}
    for _ in range(20):
        kinds = edits.draw_edits(session, drawn)
        assert [name for name, _ in kinds] == ["w", "w", "w", "w", "x"]
        assert kinds[0][1] == "near"
        assert kinds[1][1] in ("exchange", "line")
        assert [kind for _, kind in kinds[2:4]] == ["slices", "slices"]
    assert edits.list_edit_kinds(session, "w", drawn["w"]) == ("near", "exchange", "line", "slices", "slices")


def test_exchanges_keep_what_inputs_promise() -> None:
    session = session_of(mask=TensorSpec(shape=("m", "n")), ids=TensorSpec(shape=("n",), dtype="int64"))
    assert edits.list_exchanges(session, "mask", HIDDEN) == ("exchange", "line")
    assert edits.list_exchanges(session, "ids", torch.arange(4)) == ("exchange",)
    assert edits.list_exchanges(session, "ids", torch.arange(1)) == ()
    session.file.inputs = object()
    assert edits.list_exchanges(session, "mask", HIDDEN) == ()


@pytest.mark.parametrize(
    ("dtype", "least", "most"), [("float32", 16, 20), ("float16", 10, 10), ("bfloat16", 7, 7)]
)
def test_a_step_of_a_drift_is_small_and_shows(dtype: str, least: int, most: int) -> None:
    weight = torch.linspace(1.0, 1.9, 50).to(getattr(torch, dtype))
    session = SimpleNamespace(file=SimpleNamespace(inputs=None))
    steps = [edits.draw_drift(session, weight) for _ in range(100)]
    assert {float(step.abs().max()) for step in steps} <= {2.0**-bits for bits in range(least, most + 1)}
    assert all(bool((edits._step_weight(weight, step) != weight).all()) for step in steps)
    assert 20 < sum(bool((step > 0).all()) for step in steps) < 80


def test_weights_of_a_definition_of_its_own_draws_shrink() -> None:
    session = SimpleNamespace(file=SimpleNamespace(inputs=len))
    assert bool((edits.draw_drift(session, torch.ones(9)) < 0).all())
