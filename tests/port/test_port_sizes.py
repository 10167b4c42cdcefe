"""Large workloads of a port are interpreted at fewer rows, where those launch the same kernels as all."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from port_versions import SOURCE

from warpsmith.core.evaluation import Status, Verdict
from warpsmith.core.port.check import FewerRows, KernelLaunch
from warpsmith.port import sizes

pytestmark = [
    pytest.mark.usefixtures("forked_compilers"),
    pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed"),
]
PLAIN = SOURCE.replace("KERNEL", "double")


@pytest.fixture
def slow_interpreter(monkeypatch):
    """No call is short enough, and the workload of 4096 elements is large."""
    monkeypatch.setattr(sizes, "_TRIED_ELEMENTS", 250)
    monkeypatch.setattr(sizes, "CALL_SECONDS", 1e-9)


def test_fewer_rows_are_interpreted_and_all_are_compiled(judged, slow_interpreter):
    evaluation = judged(PLAIN)
    assert evaluation.decision.verdict is Verdict.UNTIMED
    fewer = FewerRows(workload="a", axis="n", rows=112, total=4096)
    assert evaluation.port.fewer_rows == (fewer,)
    assert "a at 112 of 4096 along n" in evaluation.decision.reason
    assert [each.blocks for each in evaluation.port.kernels] == [{"a": 4}], "blocks of all rows"
    [partly] = [each for each in evaluation.trust if each.name == "whole workloads"]
    assert not partly.ran
    assert "a at 112 of 4096" in partly.how


def test_a_quick_interpreter_computes_all_rows(judged, monkeypatch):
    monkeypatch.setattr(sizes, "_TRIED_ELEMENTS", 250)
    evaluation = judged(PLAIN)
    assert evaluation.decision.verdict is Verdict.UNTIMED
    assert evaluation.port.fewer_rows == ()
    assert "whole workloads" not in {each.name for each in evaluation.trust}


@pytest.mark.parametrize(
    "other",
    ["BLOCK=1024 if x.numel() < 4096 else 512", "BLOCK=1024, num_stages=2 if x.numel() < 4096 else 3"],
    ids=["constant", "option"],
)
def test_rows_that_launch_another_kernel_stand_for_nothing(judged, slow_interpreter, other):
    version = PLAIN.replace("BLOCK=1024", other).replace("triton.cdiv(x.numel(), 1024)", "64")
    evaluation = judged(version)
    assert evaluation.decision.verdict is Verdict.UNTIMED
    assert evaluation.port.fewer_rows == ()


def test_a_wrong_version_is_found_at_fewer_rows(judged, slow_interpreter):
    wrong = judged(PLAIN.replace("tl.constexpr(2)", "tl.constexpr(3)"))
    assert (wrong.decision.verdict, wrong.status) == (Verdict.ROLLBACK, Status.INCORRECT_NUMERICAL)
    failing = judged(PLAIN.replace("def run(x):", "def run(x):\n    assert x.numel() < 4096"))
    assert failing.decision.verdict is Verdict.ROLLBACK


def test_a_kernel_that_was_not_interpreted_is_named():
    def launch(kernel: str, blocks: int) -> KernelLaunch:
        return KernelLaunch(kernel=kernel, program="p", grid=(blocks,), call="c")

    limit = sizes.RowLimit(FewerRows(workload="a", axis="n", rows=2, total=8), (launch("double", 8),))
    assert limit.left_out([launch("double", 2)]) == ""
    assert limit.left_out([launch("other", 2)]) == "double"


@pytest.mark.parametrize(
    ("total", "count", "expected"), [(4096, 250, 240), (8191, 250, 255), (33, 3, 17), (8192, 1, 16), (18, 0, 2)]
)
def test_numbers_of_rows_are_alike_for_the_compiler(total, count, expected):
    assert sizes._same_class(total, count) == expected
