"""Task: an accepted kernel against PyTorch's operator, where more and more of the inputs repeat."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.timing import statistics
from warpsmith.program.operators.transfer_record import Gain, detects_kept_result, is_inflated

if TYPE_CHECKING:
    from warpsmith.core.definition import Workload
    from warpsmith.program.process.loaded_program import LoadedProgram

CONDITIONS = ("fresh", "weights", "same")
"""What repeats from call to call: nothing, the weights, everything."""

PASSES, PAIRS = (3, 12), 9
"""How often each condition is returned to, at least and at most, and pairs of calls each time. At most where noise
could hide a kept result, and where one shows: what load makes of few pairs more of them take back."""

SECONDS = 30.0
"""After so long at a workload no condition is returned to again, whatever shows."""

_QUIET_CYCLES = 200_000

Call = Callable[..., Any]


def main(
    child: LoadedProgram, *, op: str, definition: str, workloads: list[str], device: str
) -> list[dict[str, Any]]:
    """By workload: medians on fresh inputs, and the gain of a call with its error under each condition."""
    from pathlib import Path

    from warpsmith.use.operator import best

    file = definition_file.load_definition(Path(definition))
    ours = best(op, device)
    named = {one.name: one for one in file.definition.workloads}
    return [_audited(file, named[name], ours, device, child.seed) for name in workloads]


def _audited(file: DefinitionFile, workload: Workload, ours: Call, device: str, seed: int) -> dict[str, Any]:
    timer, started = _Timer(file, workload, ours, device, seed), time.perf_counter()
    least, most = PASSES
    for done in range(1, most + 1):
        for condition in CONDITIONS:
            timer.block(condition)
        found = _figures(timer.times)
        if done >= least and (_settled(found) or time.perf_counter() - started > SECONDS):
            break
    return {"workload": workload.name, **found}


def _settled(found: Mapping[str, Any]) -> bool:
    """Whether a kept result would show, and none does."""
    weights, same = (Gain.model_validate(found[condition]) for condition in ("weights", "same"))
    residual = same.minus(weights)
    return detects_kept_result(residual.error, found["seconds"]) and not is_inflated(
        residual, found["reference_seconds"]
    )


def _figures(times: Mapping[str, list[tuple[float, float]]]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "reference_seconds": statistics.median([pair[0] for pair in times["fresh"]]),
        "seconds": statistics.median([pair[1] for pair in times["fresh"]]),
    }
    for condition in CONDITIONS:
        gains = [reference - own for reference, own in times[condition]]
        found[condition] = {
            "seconds": statistics.median(gains), "error": statistics.standard_error(gains)
        }  # fmt: skip
    return found


class _Timer:
    """Times pairs of calls, of the reference and of the kernel on the same inputs."""

    def __init__(self, file: DefinitionFile, workload: Workload, ours: Call, device: str, seed: int) -> None:

        self._file, self._workload, self._ours, self._device = file, workload, ours, device
        self._drawn = Inputs(file, workload, seed, device)
        self._weights = [name for name, one in file.definition.tensor_inputs.items() if one.role == "weight"]
        self.times: dict[str, list[tuple[float, float]]] = {condition: [] for condition in CONDITIONS}
        """By condition: seconds of the reference and of the kernel."""

    def block(self, condition: str) -> None:
        """Some pairs under one condition, after a call that any cache may learn from."""
        kept = self._drawn.draw()
        for call in (self._file.reference, self._ours):
            self._seconds(call, kept)
        for pair in range(PAIRS):
            given = self._given(condition, kept)
            first = self._seconds(self._ours if pair % 2 else self._file.reference, given)
            second = self._seconds(self._file.reference if pair % 2 else self._ours, given)
            self.times[condition].append((second, first) if pair % 2 else (first, second))

    def _given(self, condition: str, kept: Mapping[str, Any]) -> Mapping[str, Any]:
        if condition == "same":
            return kept
        drawn = self._drawn.draw(quick=True)
        return drawn if condition == "fresh" else {**drawn, **{name: kept[name] for name in self._weights}}

    def _seconds(self, call: Call, inputs: Mapping[str, Any]) -> float:
        import torch

        arguments = correctness.call_arguments(self._file, self._workload, dict(inputs))
        for name in self._file.definition.tensor_inputs:
            inputs[name].clone()  # caches hold what they can of the inputs, whether those repeat or not
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
