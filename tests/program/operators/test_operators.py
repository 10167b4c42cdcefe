"""What a step calls, as a dispatch mode and a trace have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trial_kit import FACTS, InProcess

from warpsmith.errors import MissingInput, Misuse
from warpsmith.profiling.trace.read import TraceEvent, TraceEvents
from warpsmith.program.analysis.models import amdahl_bound
from warpsmith.program.models import ProgramFacts
from warpsmith.program.operators import operator_calls
from warpsmith.program.operators.models import OperatorRow, StepOperators
from warpsmith.program.process import override
from warpsmith.program.process.program import resolve_step_program
from warpsmith.program.process.runner import Runner

torch = pytest.importorskip("torch")

STEP = """
import torch
import torch.nn.functional as F

weight = torch.nn.Parameter(torch.ones(8))

def train_step():
    x = torch.rand(4, 8)
    y = F.rms_norm(x, (8,), weight, 1e-6)
    for _ in range(2):
        y = torch.softmax(y, -1)
    torch.softmax(x[:2], -1)
    y.square().sum().backward()
    with torch.no_grad():
        weight.sub_(weight.grad)
    weight.grad = None
    return y.sum()
"""


class Here(InProcess):
    def facts(self) -> ProgramFacts:
        return FACTS


def recorded(tmp_path: Path, wanted: str = "", text: str = STEP) -> operator_calls.RecordedCalls:
    (tmp_path / "train.py").write_text(text)
    with Here(resolve_step_program(str(tmp_path / "train.py"), "train_step")) as runner:
        runner.start()
        return operator_calls.record_operators(runner, lambda _: None, wanted)  # type: ignore[arg-type]


def test_calls_of_forward_and_backward_are_counted_by_signature(tmp_path):
    found = recorded(tmp_path, "aten::_softmax")
    rows = {row.name: row for row in found.operators.rows}
    assert rows["aten::_softmax"].calls == 3
    assert rows["aten::_softmax_backward_data"].calls == 2
    assert rows["aten::rms_norm"].calls == 1
    assert [row.seconds for row in found.operators.rows] == sorted(
        (row.seconds for row in found.operators.rows), reverse=True
    )
    shapes = {one.arguments[0].tensor.shape: one.calls for one in found.signatures["aten::_softmax"]}  # type: ignore[union-attr]
    assert shapes == {(4, 8): 2, (2, 8): 1}
    assert [one.source for one in found.signatures["aten::_softmax"][0].arguments[1:]] == ["-1", "False"]


def test_a_composite_operator_is_seen_whole_and_keeps_its_gradient(tmp_path):
    found = recorded(tmp_path, "aten::rms_norm", STEP + "    assert weight.grad is not None\n")
    assert "aten::rms_norm" in found.composites
    (one,) = found.signatures["aten::rms_norm"]
    assert one.gradients
    x, _, weight, eps = one.arguments
    assert (x.tensor.weight, weight.tensor.weight, eps.number) == (False, True, 1e-6)  # type: ignore[union-attr]
    assert 0 <= x.tensor.low < x.tensor.high <= 1  # type: ignore[union-attr]
    x = torch.rand(4, 8, requires_grad=True)
    torch.nn.functional.rms_norm(x, (8,)).sum().backward()
    assert x.grad is not None  # PyTorch's own again


def test_an_override_falls_back_on_pytorch_with_its_gradient():
    seen = []

    def handler(operator: Any, args: Any, kwargs: Any, run: Any) -> Any:
        seen.append(operator.name())
        return run()

    x = torch.rand(3, 4, requires_grad=True)
    with override.override_library() as library:
        for name in ("_softmax", "rms_norm"):
            override.override_operator(library, getattr(torch.ops.aten, name).default, handler, "cpu")
        torch.nn.functional.rms_norm(torch.softmax(x, -1), (4,)).square().sum().backward()
        ours, x.grad = x.grad, None
    torch.nn.functional.rms_norm(torch.softmax(x, -1), (4,)).square().sum().backward()
    assert torch.equal(ours, x.grad)
    assert seen == ["aten::_softmax", "aten::rms_norm"]


def test_views_random_operators_and_unknown_ones_are_said(tmp_path):
    found = recorded(tmp_path).operators
    reasons = {row.name: row.refusal for row in found.rows}
    assert reasons["aten::_softmax"] == ""
    assert "random" in reasons["aten::rand"]
    assert reasons["aten::slice.Tensor"] == "it returns a view"
    assert reasons["aten::sub_.Tensor"] == "it writes into its arguments"
    with pytest.raises(Misuse, match="random"):
        operator_calls.find_operator(found, "aten::rand")
    with pytest.raises(MissingInput, match="does not call `aten::softmx`; it calls aten::_softmax"):
        operator_calls.find_operator(found, "aten::softmx")
    with pytest.raises(Misuse, match="no operator `aten::softmx`"):
        recorded(tmp_path, "aten::softmx")


def test_an_overload_that_can_be_extracted_is_preferred():
    rows = tuple(
        OperatorRow(name=name, calls=1, seconds=1, share=0.5, ceiling=amdahl_bound(0.5), refusal=why)
        for name, why in (("aten::add.out", "it returns a view"), ("aten::add.Tensor", ""))
    )
    found = StepOperators(program="train.py", device="cpu", step_seconds=2, rows=rows)
    assert operator_calls.find_operator(found, "aten::add").name == "aten::add.Tensor"
    assert operator_calls.find_operator(found, "aten::add.Tensor").name == "aten::add.Tensor"


def event(
    name: str, kind: str, begin: int, end: int, lane: str = "cpu", correlation: int | None = None
) -> TraceEvent:
    return TraceEvent(name, kind, begin, end, (lane, "1"), correlation, None)


def events(*, work: list[TraceEvent], ops: list[TraceEvent], calls: list[TraceEvent]) -> TraceEvents:
    return TraceEvents("trace.json", "0" * 64, "", "", None, work, ops, calls, [], [], ())


def test_a_kernel_is_of_the_innermost_operator_that_launched_it():
    found = events(
        work=[
            event("void at::native::softmax_warp_forward<float>(float*)", "kernel", 100, 190, "gpu", 7),
            event("void at::native::softmax_warp_forward<float>(float*)", "kernel", 200, 201, "gpu", 8),
            event("triton_mine", "kernel", 300, 310, "gpu", 9),
        ],
        ops=[
            event("aten::softmax", "operator", 0, 50), event("aten::_softmax", "operator", 10, 40),
            event("aten::_log_softmax", "operator", 60, 80), event("train.py(7): step", "operator", 0, 99),
        ],
        calls=[
            event("cudaLaunchKernel", "call", 20, 30, correlation=7),
            event("cudaLaunchKernel", "call", 65, 70, correlation=8),
            event("cuLaunchKernel", "call", 90, 95, correlation=9),
        ],
    )  # fmt: skip
    assert operator_calls.launching_operator(found, "softmax_warp_forward") == "aten::_softmax"
    with pytest.raises(Misuse, match="No operator of PyTorch launched"):
        operator_calls.launching_operator(found, "triton_mine")
    with pytest.raises(MissingInput, match="no kernel named `gemm`"):
        operator_calls.launching_operator(found, "gemm")


def test_on_a_cpu_operators_stand_for_kernels():
    found = events(work=[], ops=[event("aten::_softmax", "operator", 0, 1)], calls=[])
    assert operator_calls.launching_operator(found, "_softmax") == "aten::_softmax"


@pytest.mark.gpu
def test_on_a_gpu_calls_are_timed_there_and_kernels_have_their_operator(tmp_path):
    text = STEP.replace("torch.ones(8)", "torch.ones(8, device='cuda')").replace("(4, 8)", "(4, 8, device='cuda')")
    (tmp_path / "train.py").write_text(text)
    with Runner(resolve_step_program(str(tmp_path / "train.py"), "train_step")) as runner:
        runner.start()
        found = operator_calls.record_operators(runner, lambda _: None, "aten::_softmax")
        rows = {row.name: row for row in found.operators.rows}
        assert rows["aten::_softmax"].calls == 3
        assert 0 < rows["aten::_softmax"].seconds < 1e-3
        assert found.signatures["aten::_softmax"][0].arguments[0].tensor.device == "cuda"  # type: ignore[union-attr]
        assert (
            operator_calls.find_launcher(runner, "softmax_warp_forward", tmp_path, lambda _: None)
            == "aten::_softmax"
        )
