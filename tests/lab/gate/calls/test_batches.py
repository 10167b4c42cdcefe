"""Other batches: lengths that are drawn, and bits that depend on them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from lab_samples import HEAD

from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls import batches
from warpsmith.lab.gate.correctness_check import CorrectnessCheck
from warpsmith.lab.grading import rows
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.machine import system
from warpsmith.lab.operator import input_rules
from warpsmith.lab.timing.arenas import allocate_arenas
from warpsmith.lab.workers.side import SideFailed

needs_compiler = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

RIGHT = Grade(Status.PASSED, 0.0, 0.0)
"""Grade of the call that comes before batches."""

ROWS = (
    HEAD
    + """
definition = Definition(
    name="rows", description="y = x / 3", axes={"rows": "requests", "cols": "samples"},
    inputs={"x": TensorSpec(shape=("rows", "cols"))}, outputs={"y": TensorSpec(shape=("rows", "cols"))},
    batch_invariant="rows", flops="rows * cols",
    workloads=(Workload(name="few", axes={"rows": 3, "cols": 4}),
               Workload(name="many", axes={"rows": 9999, "cols": 40})),
)
def reference(x):
    return x / 3
"""
)


def rows_kernel(condition: str) -> str:
    """A version that multiplies where a condition holds."""
    return f"""\
#include <cmath>
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, Tensor& y) {{
  const int64_t rows = x.size(0), count = x.numel();
  const float third = 1 / 3.0f;
  for (int64_t i = 0; i < count; ++i)
    y.data<float>()[i] = {condition} ? x.data<float>()[i] * third : x.data<float>()[i] / 3;
}}
"""


@pytest.fixture
def file(workshop):
    return workshop.load("rows", ROWS)


@pytest.fixture
def arenas(file):
    made = allocate_arenas(file, file.definition.workloads, [], ["solution"], "cpu")
    yield made
    made.close()


def test_batches_are_longer_than_the_workload(file, arenas):
    few = file.definition.workloads[0]
    drawn = [batches.draw_lengths(file, few, (), arenas) for _ in range(60)]
    assert all({1, 2} <= lengths and max(lengths) > 3 for lengths in drawn)
    longest = max(max(lengths) for lengths in drawn)
    assert 1000 < longest <= input_rules.LONGEST_BATCH


def test_batches_lie_at_the_numbers_of_the_source(file, arenas):
    few, many = file.definition.workloads
    for _ in range(20):
        lengths = batches.draw_lengths(file, few, (0.5, 256.0, 2, float("inf"), 10**400), arenas)
        assert any(256 < length <= 256 + input_rules.GUIDED_BEYOND for length in lengths)
        assert 256 in batches.draw_lengths(file, many, (256,), arenas)
    assert len(batches.draw_lengths(file, few, range(100, 900), arenas)) <= 3 + 1 + input_rules.BATCH_NUMBERS


def test_a_batch_stays_small(file, arenas, monkeypatch):
    few = file.definition.workloads[0]
    monkeypatch.setattr(input_rules, "BATCH_ELEMENTS", 800)
    assert max(max(batches.draw_lengths(file, few, (99, 256), arenas)) for _ in range(40)) == 100
    monkeypatch.setattr(batches, "has_room", lambda *_: False)
    assert batches.draw_lengths(file, few, (99,), arenas) == {1, 2}


def test_a_batch_is_not_longer_where_callers_may_not_choose_it(workshop, file, arenas):
    few = file.definition.workloads[0]
    assert batches.draw_lengths(file, few, (256,), None) == {1, 2}
    bound = workshop.load("rows", ROWS.replace("flops=", 'constraints=("rows is at most 3",), flops='))
    assert batches.draw_lengths(bound, few, (256,), arenas) == {1, 2}
    empty = few.model_copy(update={"axes": {"rows": 0, "cols": 4}})
    assert batches.draw_lengths(file, empty, (256,), arenas) == set()


@needs_compiler
@pytest.mark.parametrize(("promise", "numbers"), [
    ("", {"largest", "nan", "inf"}), ("x is small", {"drawn"}), ("all numbers are finite", {"largest"}),
])  # fmt: skip
def test_a_neighbor_holds_unusual_numbers(seat, workshop, monkeypatch, promise, numbers):
    monkeypatch.setattr(input_rules, "LARGEST_NEIGHBOR", 1)
    text = ROWS.replace("flops=", f'constraints=("{promise}",), flops=') if promise else ROWS
    batch = seat_session(seat, workshop.load("rows", text))
    assert {name_number(batches.draw_neighbors(batch, "rows", [0, 2])["x"]) for _ in range(60)} == numbers
    assert name_number(batches.draw_neighbors(batch, "rows", [0, 1, 2])["x"]) == "drawn"


@needs_compiler
def test_no_neighbor_is_nan_where_that_changes_the_other_rows(seat, workshop, monkeypatch):
    monkeypatch.setattr(input_rules, "LARGEST_NEIGHBOR", 1)
    text = ROWS.replace("    return x / 3\n", "    return x / 3 + 0 * (x / 1e30).sum()\n")
    batch = seat_session(seat, workshop.load("rows", text))
    assert {name_number(batches.draw_neighbors(batch, "rows", [0, 2])["x"]) for _ in range(60)} == {"largest"}


def seat_session(seat, file):
    """Open a session of the workload with three rows."""
    return seat(file, rows_kernel("false")).session(file.definition.workloads[0])


def name_number(x):
    """Name what the second of three rows holds; the others hold what was drawn."""
    largest = torch.finfo(x.dtype).max
    assert float(x[::2].abs().max()) < largest
    names = {"nan": x[1].isnan(), "inf": x[1].isinf(), "largest": x[1] == largest}
    return next((name for name, marks in names.items() if bool(marks.all())), "drawn")


@needs_compiler
def test_bits_of_unusual_rows_that_depend_on_the_length(seat, file):
    place = seat(file, rows_kernel("rows < 3 && std::fabs(x.data<float>()[i]) > 50"))
    check = CorrectnessCheck(file, place.arenas, place.side, "cpu", place.seed, False)
    check.grades[file.definition.workloads[0].name] = [RIGHT]

    def check_until_they_come() -> None:
        for _ in range(60):
            check.check_batches(file.definition.workloads[0])

    with pytest.raises(SideFailed, match="bits of y depend on the batch of a row"):
        check_until_they_come()


@needs_compiler
@pytest.mark.parametrize(("condition", "interpreted", "passes"), [
    ("false", False, True), ("rows > 256", False, False), ("rows > 256", True, True), ("rows < 3", False, False),
])  # fmt: skip
def test_bits_that_depend_on_the_length(seat, file, monkeypatch, condition, interpreted, passes):
    monkeypatch.setattr(input_rules, "OTHER_VALUES_SHARE", 0)  # of some values a third is exact
    place = seat(file, rows_kernel(condition))
    few = file.definition.workloads[0]
    check = CorrectnessCheck(file, place.arenas, place.side, "cpu", place.seed, interpreted, numbers=[256])
    check.grades[few.name] = [RIGHT]
    if passes:
        check.check_batches(few)
        return
    with pytest.raises(SideFailed, match="bits of y depend on the batch of a row") as caught:
        check.check_batches(few)
    assert caught.value.status is Status.NOT_REPRODUCIBLE


@needs_compiler
@pytest.mark.parametrize("neighbor", [
    "std::memcmp(x.data<float>() + (i - i % 40), x.data<float>() + (i - i % 40) - 40, 160) == 0",
    "x.data<float>()[i - i % 40] == x.data<float>()[i - i % 40 - 40] && "
    "std::memcmp(x.data<float>() + (i - i % 40), x.data<float>() + (i - i % 40) - 40, 160) != 0",
])  # fmt: skip
def test_bits_that_depend_on_an_equal_neighbor(seat, file, monkeypatch, neighbor):
    monkeypatch.setattr(input_rules, "OTHER_VALUES_SHARE", 0)  # rows of some values are equal anyway
    place = seat(file, "#include <cstring>\n" + rows_kernel(f"(x.size(1) == 40 && i >= 40 && {neighbor})"))
    many = rows.shorten(file.definition.workloads[1], "rows", 60)
    check = CorrectnessCheck(file, place.arenas, place.side, "cpu", place.seed, False)
    check.grades[many.name] = [RIGHT]

    def check_until_they_are_equal() -> None:
        for _ in range(40):
            check.check_batches(many)

    with pytest.raises(SideFailed, match="bits of y depend on the batch of a row"):
        check_until_they_are_equal()


@needs_compiler
@pytest.mark.parametrize(("parts", "promise"), [(0, ""), (1, ""), (1, "x is small")])
def test_rows_are_copied_to_their_neighbors(seat, workshop, monkeypatch, parts, promise):
    monkeypatch.setattr(input_rules, "COPIED_NEIGHBORS", 1)
    monkeypatch.setattr(input_rules, "COPIED_PARTS", parts)
    text = ROWS.replace("flops=", f'constraints=("{promise}",), flops=') if promise else ROWS
    batch = seat_session(seat, workshop.load("rows", text))
    batch.fill_inputs(slots=1)
    x = batch.drawn[0]["x"]
    copies = [batches.copy_to_neighbors(batch, batch.drawn[0], "rows", [1])["x"] for _ in range(60)]
    assert all(torch.equal(copy[1], x[1]) for copy in copies)
    lengths = {int((copy[row] == x[1]).long().sum()) for copy in copies for row in (0, 2)}
    assert lengths == ({0} if promise else {0, 1, 2, 3, 4} if parts else {0, 4})
    assert torch.equal(batches.copy_to_neighbors(batch, batch.drawn[0], "rows", [0, 1, 2])["x"], x)


@needs_compiler
@pytest.mark.parametrize("own", [True, False])
def test_no_rows_are_copied_that_must_differ(seat, workshop, monkeypatch, own):
    monkeypatch.setattr(input_rules, "COPIED_NEIGHBORS", 1)
    ids = ', "ids": TensorSpec(shape=("rows",), dtype="int64", distribution="distinct:50")}, outputs='
    text = ROWS if own else ROWS.replace("}, outputs=", ids).replace("(x)", "(x, ids)")
    hook = "def inputs(workload, seed, device):\n    return {'x': torch.randn(*workload.axes.values())}\n"
    batch = SimpleNamespace(file=workshop.load("rows", text + hook if own else text))
    batch.workload = batch.file.definition.workloads[0]
    drawn = {"x": torch.randn(3, 4), "ids": torch.arange(3)}
    for _ in range(20):
        copies = batches.copy_to_neighbors(batch, drawn, "rows", [1])
        assert all(torch.equal(copies[name], drawn[name]) for name in drawn)


@needs_compiler
def test_bits_that_depend_on_the_length_among_many_threads(seat, file):
    source = "#include <omp.h>\n" + rows_kernel("omp_get_max_threads() > 8 * rows")
    place = seat(file, source)
    check = CorrectnessCheck(file, place.arenas, place.side, "cpu", place.seed, False)
    check.grades[file.definition.workloads[0].name] = [RIGHT]

    def check_until_many_threads() -> None:
        for _ in range(40):
            check.check_batches(file.definition.workloads[0])

    with pytest.raises(SideFailed, match=r"instead of 3 along `rows`, \d+ OpenMP threads"):
        check_until_many_threads()
