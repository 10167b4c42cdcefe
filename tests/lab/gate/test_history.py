"""First calls at small sizes: their bits must come again after larger ones."""

from __future__ import annotations

import pytest
from lab_samples import HEAD

from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.correctness_check import CorrectnessCheck
from warpsmith.lab.gate.history import FirstCalls
from warpsmith.lab.machine import system
from warpsmith.lab.operator import input_rules
from warpsmith.lab.timing.session import SOLUTION
from warpsmith.lab.workers.side import SideFailed

pytestmark = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

THIRDS = (
    HEAD
    + """
definition = Definition(
    name="thirds", description="y = x / 3", axes={"n": "values"}, deterministic=True,
    inputs={"x": TensorSpec(shape=("n",))}, outputs={"y": TensorSpec(shape=("n",))}, flops="n",
    workloads=tuple(Workload(name=str(n), axes={"n": n}, set="representative" if n > 999 else "odd")
                    for n in (300, *range(301, 320), 1000)),
)
def reference(x):
    return x / 3
"""
)


def thirds_kernel(condition: str) -> str:
    """A version that multiplies where a condition holds."""
    return f"""\
#include <set>
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x, Tensor& y) {{
  static int64_t longest = 0;
  static std::set<int64_t> seen;
  const int64_t count = x.numel();
  const bool is_new = seen.insert(count).second;
  longest = count > longest ? count : longest;
  (void)is_new;
  const float third = 1 / 3.0f;
  for (int64_t i = 0; i < count; ++i)
    y.data<float>()[i] = {condition} ? x.data<float>()[i] * third : x.data<float>()[i] / 3;
}}
"""


@pytest.fixture
def file(workshop):
    return workshop.load("thirds", THIRDS)


@pytest.mark.parametrize("condition", ["longest > 2 * count", "is_new"])
def test_bits_that_depend_on_earlier_calls(seat, file, condition):
    place = seat(file, thirds_kernel(condition))
    check = CorrectnessCheck(file, place.arenas, place.side, "cpu", place.seed, False)
    few, *_, many = file.definition.workloads
    check.check_workload(few, [])
    check.check_plain(many)
    with pytest.raises(SideFailed, match="other bits after larger sizes") as caught:
        check.check_again(few)
    assert caught.value.status is Status.NOT_REPRODUCIBLE


def test_bits_that_stay(seat, file):
    place = seat(file, thirds_kernel("false"))
    check = CorrectnessCheck(file, place.arenas, place.side, "cpu", place.seed, False)
    few, *_, many = file.definition.workloads
    check.check_workload(few, [])
    check.check_plain(many)
    check.check_again(few)
    check.check_again(few)


@pytest.mark.parametrize(("deterministic", "elements", "count"), [
    (True, (1 << 6, 1 << 18), 8), (True, (1 << 10, 1 << 18), 0), (True, (1 << 6, 1 << 8), 0),
    (False, (1 << 6, 1 << 18), 0),
])  # fmt: skip
def test_few_first_calls_are_repeated(seat, workshop, monkeypatch, deterministic, elements, count):
    monkeypatch.setattr(input_rules, "FIRST_CALL_ELEMENTS", elements)
    monkeypatch.setattr(input_rules, "FIRST_CALL_SHARE", 1)
    file = workshop.load("thirds", THIRDS.replace("deterministic=True", f"deterministic={deterministic}"))
    place = seat(file, thirds_kernel("is_new"))
    calls, repeats = FirstCalls(file), 0
    for workload in file.definition.workloads:
        session = place.session(workload)
        session.fill_inputs(slots=1)
        session.call_side(SOLUTION, deliver=True)
        calls.take_last(session)
    for workload in file.definition.workloads:
        try:
            calls.repeat(workload)
        except SideFailed:
            repeats += 1
    assert repeats == count
