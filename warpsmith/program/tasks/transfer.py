"""Task: time an accepted kernel against PyTorch's operator, with more and more inputs that repeat."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.timing import statistics
from warpsmith.program.operators.transfer_record import Gain, detects_kept_result, is_inflated

if TYPE_CHECKING:
    from warpsmith.core.definition import Workload
    from warpsmith.program.process.loaded_program import LoadedProgram

CONDITIONS = ("fresh", "weights", "same")
"""Inputs that repeat from call to call: none, the weights, all."""

PASSES, PAIRS = (3, 12), 9
"""Least and most passes over the conditions, and pairs of calls in each. All passes run if noise could hide a kept
result, or if one shows, because more pairs correct what load did to a few."""

SECONDS = 30.0
"""Time after which a workload gets no further pass, whatever the result."""

_QUIET_CYCLES = 200_000

Call = Callable[..., Any]


def main(
    program: LoadedProgram, *, op: str, definition: str, workloads: list[str], device: str, compiled: bool = False
) -> list[dict[str, Any]]:
    """Return by workload the medians on fresh inputs, and gain and error of a call in each condition.

    With `compiled`, the reference is what Inductor makes of it.
    """
    from pathlib import Path

    from warpsmith.use.operator import best

    file = definition_file.load_definition(Path(definition))
    kernel = best(op, device)
    by_name = {workload.name: workload for workload in file.definition.workloads}
    return [_audit(file, by_name[name], kernel, device, program.seed, compiled) for name in workloads]


def _audit(
    file: DefinitionFile, workload: Workload, kernel: Call, device: str, seed: int, compiled: bool
) -> dict[str, Any]:
    timer, started = _PairTimer(file, workload, kernel, device, seed, compiled), time.perf_counter()
    least, most = PASSES
    for count in range(1, most + 1):
        for condition in CONDITIONS:
            timer.time_pairs(condition)
        figures = _summarize(timer.times)
        if count >= least and (_is_settled(figures) or time.perf_counter() - started > SECONDS):
            break
    return {"workload": workload.name, **figures}


def _is_settled(figures: Mapping[str, Any]) -> bool:
    """Return true if a kept result would show and none does."""
    weights, same = (Gain.model_validate(figures[condition]) for condition in ("weights", "same"))
    residual = same.minus(weights)
    return detects_kept_result(residual.error, figures["seconds"]) and not is_inflated(
        residual, figures["reference_seconds"]
    )


def _summarize(times: Mapping[str, list[tuple[float, float]]]) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "reference_seconds": statistics.median([pair[0] for pair in times["fresh"]]),
        "seconds": statistics.median([pair[1] for pair in times["fresh"]]),
    }
    for condition in CONDITIONS:
        gains = [reference - own for reference, own in times[condition]]
        figures[condition] = {
            "seconds": statistics.median(gains), "error": statistics.standard_error(gains)
        }  # fmt: skip
    return figures


class _PairTimer:
    """Timer of pairs of calls: the reference and the kernel on the same inputs."""

    def __init__(
        self, file: DefinitionFile, workload: Workload, kernel: Call, device: str, seed: int, compiled: bool
    ) -> None:
        self._file, self._workload, self._kernel, self._device = file, workload, kernel, device
        self._inputs = Inputs(file, workload, seed, device)
        self._weights = [name for name, tensor in file.definition.tensor_inputs.items() if tensor.role == "weight"]
        self._reference: Call = self._compile_reference() if compiled else file.reference
        self.times: dict[str, list[tuple[float, float]]] = {condition: [] for condition in CONDITIONS}
        """Seconds of the reference and of the kernel, by condition."""

    def time_pairs(self, condition: str) -> None:
        """Time `PAIRS` pairs under one condition, after a call from which a cache may learn."""
        base = self._inputs.draw()
        for call in (self._reference, self._kernel):
            self._seconds(call, base)
        for pair in range(PAIRS):
            inputs = self._draw_inputs(condition, base)
            first = self._seconds(self._kernel if pair % 2 else self._reference, inputs)
            second = self._seconds(self._reference if pair % 2 else self._kernel, inputs)
            self.times[condition].append((second, first) if pair % 2 else (first, second))

    def _compile_reference(self) -> Call:
        """Compile the reference with Inductor alone: calls need no guards, as inside a larger graph."""
        from torch._inductor.compile_fx import compile_fx_inner
        from torch._inductor.decomposition import select_decomp_table
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch.fx.experimental.proxy_tensor import make_fx

        reference = self._file.reference

        def call_all(*arguments: Any) -> tuple[Any, ...]:  # noqa: ANN401
            results = reference(*arguments)
            return tuple(results) if isinstance(results, tuple | list) else (results,)

        arguments = self._file.arguments(self._workload, self._inputs.draw())
        mode = FakeTensorMode()
        with mode:
            fakes = [mode.from_tensor(argument) for argument in arguments]
            graph = make_fx(call_all, decomposition_table=select_decomp_table())(*fakes)
        compiled: Any = compile_fx_inner(graph, fakes)
        return lambda *values: compiled(list(values))

    def _draw_inputs(self, condition: str, base: Mapping[str, Any]) -> Mapping[str, Any]:
        """Draw the inputs of one pair; those that repeat under the condition come from `base`."""
        if condition == "same":
            return base
        fresh = self._inputs.draw(quick=True)
        return fresh if condition == "fresh" else {**fresh, **{name: base[name] for name in self._weights}}

    def _seconds(self, call: Call, inputs: Mapping[str, Any]) -> float:
        import torch

        arguments = self._file.arguments(self._workload, dict(inputs))
        for name in self._file.definition.tensor_inputs:
            inputs[name].clone()  # the device's caches then hold the inputs, whether they repeat or not
        with torch.no_grad():
            if self._device == "cpu":
                begin = time.perf_counter()
                call(*arguments)
                return time.perf_counter() - begin
            events: Any = [torch.cuda.Event(enable_timing=True) for _ in range(2)]  # type: ignore[no-untyped-call]
            torch.cuda._sleep(_QUIET_CYCLES)  # type: ignore[no-untyped-call]
            events[0].record()
            call(*arguments)
            events[1].record()
            torch.cuda.synchronize()
            return float(events[0].elapsed_time(events[1])) / 1e3
