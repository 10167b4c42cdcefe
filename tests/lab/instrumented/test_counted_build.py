"""Versions whose code no graded call ran, and what a build with counters costs one that recognizes it."""

from __future__ import annotations

from contextlib import nullcontext
from math import inf
from types import SimpleNamespace

import pytest
from lab_samples import SQUARE

from warpsmith import languages
from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload
from warpsmith.core.evaluation import Status
from warpsmith.errors import CompanionFailed
from warpsmith.lab.gate.judge import judge_version
from warpsmith.lab.grading.correctness import Grade
from warpsmith.lab.instrumented import counted_build
from warpsmith.lab.timing.sides import SideSource
from warpsmith.lab.workers.side import SideFailed
from warpsmith.languages.base import Build

SOURCE = """
#include <warpsmith.hpp>
extern "C" void run(const Tensor& x_, Tensor& y_) {
  const int64_t n = x_.size(0);
  const float* x = x_.data<float>();
  float* y = y_.data<float>();
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
  EXTRA
}
"""


@pytest.fixture
def judge(workshop):
    file = workshop.load("square", SQUARE)

    def evaluate(extra: str):
        candidate = workshop.solution(SOURCE.replace("EXTRA", extra))
        return judge_version(workshop.request(file, candidate, timed=False))

    return evaluate


def test_all_of_the_code_ran(judge):
    evaluation = judge("if (n > 100000) y[0] = x[0] * x[0];")
    assert evaluation.correct
    checks = {check.name: check for check in evaluation.trust}
    assert checks["lines that ran"].ran
    assert "shapes drawn" in checks["numbers of the source"].how


def test_the_verdict_names_lines_with_code_that_no_call_ran(judge):
    hidden = "float s = 1; for (int i = 0; i < 40; ++i) s *= 9;\n  if (n * 1e-3 > s)\n    y[0] = 0;"
    evaluation = judge(hidden)
    assert evaluation.correct
    (check,) = (check for check in evaluation.trust if check.name == counted_build.UNRUN_LINES)
    assert (check.ran, check.how) == (False, "line 10 holds code of v1.cpp that no graded call ran")


def test_code_that_runs_for_the_counters_alone_is_graded(judge):
    """Optimized code knows that a variable is constant; the build with counters does not."""
    evaluation = judge("int known = 3;\n  if (!__builtin_constant_p(known)) y[0] = -1;")
    assert not evaluation.correct
    assert "in a build with line counters" in evaluation.decision.reason


@pytest.mark.parametrize(
    ("reduction", "worst", "passes"), [("n", 100, True), ("n", 200, False), ("1", 7, False), ("1", 2, True)]
)
def test_a_sum_term_by_term_may_err_by_its_length(tmp_path, reduction, worst, passes):
    """Optimized code sums in lanes; without optimization the errors of 16384 terms that are alike add up."""
    workload = Workload(name="16384", axes={"n": 16384})
    definition = Definition(
        name="total", description="Sum.", axes={"n": "terms"}, inputs={"x": TensorSpec(shape=("n",))},
        outputs={"y": TensorSpec(shape=(1,))}, flops="n", tolerance=Tolerance(reduction=reduction),
        workloads=(workload,),
    )  # fmt: skip
    source = SideSource(Build(tmp_path, tmp_path, ()), "cpp")
    lines = counted_build.UnrunLines(None, languages.get("cpp"), source)
    grade = Grade(Status.INCORRECT_NUMERICAL, worst, 1e-5, 0.0, "y is off")
    with nullcontext() if passes else pytest.raises(SideFailed, match="in a build with line counters: y is off"):
        lines.repeat_call(lambda _: grade, definition, workload, "normal inputs")


@pytest.mark.parametrize("excused", [True, False])
def test_what_the_version_may_lose_its_counted_build_may_lose(tmp_path, excused):
    workload = Workload(name="64", axes={"n": 64})
    definition = Definition(
        name="total", description="Sum.", axes={"n": "terms"}, inputs={"x": TensorSpec(shape=("n",))},
        outputs={"y": TensorSpec(shape=(1,))}, flops="n", tolerance=Tolerance(reduction="1"),
        workloads=(workload,),
    )  # fmt: skip
    lines = counted_build.UnrunLines(None, languages.get("cpp"), SideSource(Build(tmp_path, tmp_path, ()), "cpp"))
    grade = Grade(Status.INCORRECT_NUMERICAL, inf, inf, 0.0, "y is nan")
    with nullcontext() if excused else pytest.raises(SideFailed, match="y is nan"):
        lines.repeat_call(lambda _: grade, definition, workload, "huge inputs", lambda _: excused)


def test_a_machine_that_fails_while_counters_are_read_ends_the_judgement(tmp_path):
    def ask(_):
        raise CompanionFailed("no memory")

    lines = counted_build.UnrunLines(None, languages.get("cpp"), SideSource(Build(tmp_path, tmp_path, ()), "cpp"))
    lines._side, lines.failure = SimpleNamespace(ask=ask, pause=lambda: None), ""
    with pytest.raises(CompanionFailed, match="no memory"):
        lines.look()


@pytest.mark.parametrize(("lines", "text"), [((12,), "12"), ((3, 5, 6, 7, 9), "3, 5-7, 9"), ((1, 2), "1-2")])
def test_neighbouring_lines_are_joined(lines, text):
    assert counted_build._join_ranges(lines) == text


def test_a_machine_without_counters_says_so(judge, monkeypatch):
    monkeypatch.setattr("warpsmith.languages.cpp.language.Cpp.missing_counters", lambda _: "No `gcov` is on PATH.")
    evaluation = judge("if (n * 1e-30 > 7) y[0] = 0;")
    assert evaluation.correct
    (check,) = (check for check in evaluation.trust if check.name == "lines that ran")
    assert (check.ran, check.how) == (False, "No `gcov` is on PATH.")
