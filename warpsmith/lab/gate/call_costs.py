"""Costs of calls at guided and far shapes, guessed at shorter ones: time, and the memory of the reference."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import log2
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

from warpsmith.core.definition import Workload
from warpsmith.errors import BadDefinition
from warpsmith.lab.grading import reference_calls, rows, shapes
from warpsmith.lab.operator import input_rules
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.lab.timing.session import SOLUTION, Session

if TYPE_CHECKING:
    import torch

_HEARD_LENGTHS = (64, 128)
"""Lengths of an axis at which the tensors of a reference are measured. Chosen: it takes a few milliseconds."""


class Excess(NamedTuple):
    """Memory or time beyond what a call and its reference may take."""

    reason: str
    """Clause that says what would take how much."""
    in_version: bool = False
    """True if the version alone takes too long, not its reference."""


class CallCosts:
    """Costs of a version's calls, and of their reference, on a device."""

    def __init__(self, file: DefinitionFile, open_session: Callable[[Workload], Session], device: str) -> None:
        self._file, self._open_session, self._device = file, open_session, device

    def find_excess(self, workload: Workload, share: float) -> Excess | None:
        """Return why a call at a guided or far shape or its reference would take much memory or time; else None.
        The reference takes a share of both where it computes sampled rows."""
        if shapes.take_part(self._file, workload, input_rules.CALL_PART) is None:
            return None
        if self._device == "cpu":
            needed = input_rules.LIVE_TENSORS * share * guess_largest_bytes(self._file, workload)
            if needed > input_rules.MEMORY_SHARE * psutil.virtual_memory().available:
                return Excess(f"its reference would take about {needed / 2**30:.0f} GiB")
        return self._find_slowness(workload, share)

    def _find_slowness(self, workload: Workload, share: float) -> Excess | None:
        """Return why a call or its reference would take long, by those at parts of the longest axis that callers
        choose; None if neither would.

        It takes as many times as long as it has elements, or operations if the definition counts more of those.
        Where a part takes too little time to say so, or the version alone is slow, a longer part is called: the
        first may grow faster than its elements, and the second may be slow at short calls only.
        """
        excess: Excess | None = None
        parts = list(input_rules.CALL_PARTS[self._device])
        while parts:
            part = shapes.take_part(self._file, workload, parts[0])
            factor = max(parts.pop(0), self._growth_of_work(part, workload)) if part else 0.0
            if part is None:
                continue
            try:
                session = self._open_session(part)
                session.fill_inputs(quick=True, slots=1)
                reference = _shortest(lambda: self._time_reference(session), factor * share)  # noqa: B023
                if (seconds := _guess_seconds(reference, factor * share)) > input_rules.CALL_SECONDS:
                    return Excess(f"its reference would take about {seconds:.0f} s")
                call = _shortest(lambda: _time_call(session), factor)  # noqa: B023
            except BadDefinition:  # a part need not fit what it computes
                return None
            if (seconds := _guess_seconds(call, factor)) > input_rules.CALL_SECONDS:
                excess = Excess(f"a call would take about {seconds:.0f} s", in_version=True)
                if call * input_rules.CALL_GROWTH > input_rules.SLOW_PART_SECONDS:
                    break
                continue
            excess = None
            if min(reference, call) >= input_rules.CALL_START:
                break
            parts = parts[-1:]
        return excess

    def _growth_of_work(self, part: Workload, workload: Workload) -> float:
        work = [self._file.definition.work(each).flops for each in (part, workload)]
        return work[1] / work[0] if work[0] else 0.0

    def _time_reference(self, session: Session) -> float:
        """Return the seconds of a reference: on a CPU those of its cores, which the load of others does not
        lengthen."""
        clock = time.process_time if self._device == "cpu" else time.monotonic
        started = clock()
        session.grade_reference()
        return clock() - started


def guess_largest_bytes(file: DefinitionFile, workload: Workload) -> float:
    """Return the bytes of the largest tensor that the reference makes at a workload in float64, by its tensors at
    two short lengths of the longest axis that callers choose; 0 where that cannot be said."""
    axis = shapes.find_axis_to_shorten(file, workload, lambda _: _HEARD_LENGTHS[0])
    if axis is None or workload.axes[axis] <= _HEARD_LENGTHS[1]:
        return 0.0
    short, long = (_hear_sizes(file, rows.shorten(workload, axis, length)) for length in _HEARD_LENGTHS)
    if not short or not long:
        return 0.0
    pairs = zip(short, long, strict=True) if len(short) == len(long) else [(max(short), max(long))]
    grown = log2(workload.axes[axis] / _HEARD_LENGTHS[1])
    return max(second * 2 ** (grown * max(0.0, log2(second / first))) for first, second in pairs)


def _hear_sizes(file: DefinitionFile, workload: Workload) -> list[int]:
    """Return the bytes of the result of each operator of a reference, at least one; empty where it fails."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    sizes = []

    class ResultListener(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # nothing is compiled inside

        def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            result = operator(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                sizes.append(max(1, result.untyped_storage().nbytes()))
            return result

    try:
        drawn: dict[str, torch.Tensor] = Inputs(file, workload, 1, "cpu").draw()
        wide = {name: value.double() if value.is_floating_point() else value for name, value in drawn.items()}
        with ResultListener():  # type: ignore[no-untyped-call]
            reference_calls.run_wide(file, file.reference, workload, wide)
    except (BadDefinition, ArithmeticError, RuntimeError, ValueError):  # a short length need not fit what is drawn
        return []
    return sizes


def _shortest(look: Callable[[], float], factor: float) -> float:
    """Return the seconds of a look, of two where the first one says much: it may set something up."""
    seconds = look()
    return min(seconds, look()) if _guess_seconds(seconds, factor) > input_rules.CALL_SECONDS else seconds


def _guess_seconds(seconds: float, factor: float) -> float:
    return factor * max(0.0, seconds - input_rules.CALL_START)


def _time_call(session: Session) -> float:
    call = session.time_one_call_cold(SOLUTION)
    return call.seconds if call.busy is None else call.busy
