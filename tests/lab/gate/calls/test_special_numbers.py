"""Special numbers: what a version does wrong only where they are sizes, at a limit at once, or elements."""

from __future__ import annotations

import pytest
from lab_samples import SQUARE

from warpsmith.core.evaluation import Status
from warpsmith.lab.gate.calls.special_numbers import SpecialNumbers
from warpsmith.lab.gate.correctness_check import CorrectnessCheck
from warpsmith.lab.machine import system
from warpsmith.lab.operator import input_rules
from warpsmith.lab.workers.side import SideFailed

pytestmark = pytest.mark.skipif(system.find_cxx_compiler() is None, reason="no C++ compiler")

LAG = SQUARE.replace(
    'inputs={"x"', 'inputs={"lag": ScalarSpec(type="int", value=52, between=(4, 1 << 20)), "x"'
).replace(
    "def reference(x):\n    return x * x",
    "def reference(lag, x):\n    return x * (torch.arange(x.shape[0]) >= lag)",
)
ABOVE = SQUARE.replace('inputs={"x"', 'inputs={"least": ScalarSpec(value=0.3, between=(0.1, 0.9)), "x"').replace(
    "def reference(x):\n    return x * x",
    "def reference(least, x):\n    return torch.where(x >= least, x, 0)",
)
SUM = SQUARE.replace(
    'inputs={"x"',
    'inputs={"a": ScalarSpec(value=1.0, between=(-4, 4)), "b": ScalarSpec(value=0.5, between=(-4, 4)), "x"',
).replace("def reference(x):\n    return x * x", "def reference(a, b, x):\n    return a * x + b * x.abs()")


def source(parameters, body):
    return f"""\
#include <warpsmith.hpp>
#include <cmath>
extern "C" void run({parameters}, const Tensor& x_, Tensor& y_) {{
  const int64_t n = x_.size(0);
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  {body}
}}
"""


def lagged(condition):
    return source(
        "int64_t lag", f"for (int64_t i = 0; i < n; ++i) y[i] = x[i] * (i >= lag); if ({condition}) y[0] = 1;"
    )


def kept(condition):
    return source("double least", f"for (int64_t i = 0; i < n; ++i) y[i] = {condition} ? x[i] : 0;")


def summed(condition):
    body = f"if ({condition}) for (int64_t i = 0; i < n; ++i) y[i] = a * x[i] + b * std::fabs(x[i]);"
    return source("double a, double b", body)


@pytest.fixture
def grades(seat, workshop, monkeypatch):
    """`grades(text, source)`: the status of each special call of a version, by what it was, with room for all."""
    monkeypatch.setattr(input_rules, "SPECIAL_CALLS", 100)

    def run(text, code):
        seated = seat(workshop.load("square", text), code)
        special = SpecialNumbers(seated.file, seated.session)
        return {
            description: grade.status
            for workload in seated.file.definition.workloads
            for _, grade, description in special.calls(workload)
        }

    return run


@pytest.mark.parametrize(
    ("text", "code", "count"),
    [
        (LAG, lagged("false"), 3),
        (ABOVE, kept("x[i] >= least"), 5),
        (ABOVE, kept("x[i] >= (float)least"), 5),
        (SUM, summed("true"), 4 + 5 + 5 * 4 + 1 + 1),  # near, alike, two of them, their sum, and elements
    ],
)
def test_an_honest_version_passes_each_kind_once(grades, text, code, count):
    made = grades(text, code)
    assert set(made.values()) == {Status.PASSED}
    assert len(made) == count


@pytest.mark.parametrize(
    ("text", "code", "call"),
    [
        *((LAG, lagged(f"lag == n + {step}"), "normal inputs, lag ") for step in (-1, 0, 1)),
        (ABOVE, kept("x[i] > least"), "elements equal to least 0.3 among the inputs"),
        (SUM, summed("a != 0 || b != 0"), "normal inputs, a 0, b 0,"),
        (SUM, summed("a > -4 || b > -4"), "normal inputs, a -4, b -4,"),
        (SUM, summed("a < 4 || b < 4"), "normal inputs, a 4, b 4,"),
        (SUM, summed("a != 1 || b != 1"), "normal inputs, a 1, b 1,"),
        (SUM, summed("a + b != 1 || a * b == 0"), "normal inputs, a 0.5, b 0.5,"),
    ],
)
def test_a_version_that_is_wrong_in_one_kind_fails_there(grades, text, code, call):
    made = grades(text, code)
    wrong = [description for description, status in made.items() if status is not Status.PASSED]
    assert len(wrong) == 1
    assert wrong[0].startswith(call)


def test_choices_that_a_definition_leaves_to_rounding_are_not_planted(grades):
    text = ABOVE.replace("outputs=", "tolerance=Tolerance(required_match=0.99), outputs=")
    assert not any("elements" in description for description in grades(text, kept("x[i] > least")))


@pytest.mark.parametrize("key", ["(int64_t)(a * 1e3)", "(int64_t)a", "(int64_t)std::log2(a)"])
def test_a_table_that_takes_numbers_for_one_is_wrong_after_one_of_them(grades, key):
    body = (
        f"static int64_t known = -1; static double kept; const int64_t key = {key};"
        "if (key != known) known = key, kept = a;"
        "for (int64_t i = 0; i < n; ++i) y[i] = kept * x[i] + b * std::fabs(x[i]);"
    )
    text = SUM.replace("value=1.0, between=(-4, 4)", "value=3.0, between=(2, 40)")
    made = grades(text, source("double a, double b", body))
    wrong = [description for description, status in made.items() if status is not Status.PASSED]
    assert any("after numbers near these" in description for description in wrong)


def test_a_check_of_a_workload_makes_them(seat, workshop):
    seated = seat(workshop.load("square", ABOVE), kept("x[i] > least"))
    check = CorrectnessCheck(seated.file, seated.arenas, seated.side, "cpu", seated.seed)
    with pytest.raises(SideFailed, match="elements equal to least"):
        check.check_workload(seated.file.definition.workloads[0], [])
