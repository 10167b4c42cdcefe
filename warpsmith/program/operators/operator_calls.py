"""Operator calls of a step: the count, time and arguments of each of PyTorch's operators."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith.core.text import Tell
from warpsmith.errors import MissingInput, Misuse
from warpsmith.profiling.trace import names as trace_names
from warpsmith.profiling.trace import read as trace_read
from warpsmith.profiling.trace import script as traces
from warpsmith.profiling.trace.read import TraceEvent, TraceEvents
from warpsmith.program.analysis.models import amdahl_bound
from warpsmith.program.operators import call_form
from warpsmith.program.operators.models import CallSignature, OperatorRow, StepOperators
from warpsmith.program.process.runner import Runner

_WARM_UP_STEPS, _WATCHED_STEPS, _TRACED_STEPS = 2, 3, 2
_TIMED = (3, 1.0)
"""Least number of timed steps, and seconds during which more are timed."""


@dataclass(frozen=True)
class RecordedCalls:
    """Operator calls of several steps."""

    operators: StepOperators
    """All operators of the step."""
    signatures: dict[str, tuple[CallSignature, ...]]
    """Signatures of the requested operator by overload, the most time first."""
    composites: frozenset[str]
    """Operators that consist of others."""


def record_operators(runner: Runner, tell: Tell, operator: str = "") -> RecordedCalls:
    """Time the steps of a started program, then record the operators they call; raises as the runner does."""
    tell("timing steps")
    device = runner.facts().device
    seconds = measure_step_seconds(runner)
    tell("watching operators")
    result = runner.call("operators", steps=_WATCHED_STEPS, operator=operator)
    if not result["known"]:
        raise Misuse(
            f"PyTorch has no operator `{operator}`; run the command without --op to list the step's operators."
        )
    rows = [_operator_row(name, row, seconds) for name, row in result["rows"].items()]
    rows.sort(key=lambda row: -row.seconds)
    signatures = {name: _parse_signatures(signature_rows) for name, signature_rows in result["signatures"].items()}
    return RecordedCalls(
        StepOperators(program=runner.program.label, device=device, step_seconds=seconds, rows=tuple(rows)),
        signatures,
        frozenset(result["composites"]),
    )


def find_operator(operators: StepOperators, name: str) -> OperatorRow:
    """Find the operator of this name, or its overload with the most time.

    Raises:
        MissingInput: the step does not call it.
        Misuse: it cannot become a definition.
    """
    rows = [row for row in operators.rows if name in (row.name, row.name.partition(".")[0])]
    if not rows:
        usable = [row.name for row in operators.rows if not row.refusal]
        suggestions = difflib.get_close_matches(name, usable, 3, 0.6) or usable[:5]
        called = ", ".join(suggestions) or "nothing"
        raise MissingInput(f"The step of {operators.program} does not call `{name}`; it calls {called}.")
    extractable = next((row for row in rows if not row.refusal), None)
    if extractable is None:
        reason = f"{rows[0].refusal}{call_form.alternative_hint(rows[0].name)}"
        raise Misuse(f"{rows[0].name} cannot become a definition: {reason}.")
    return extractable


def find_launcher(runner: Runner, kernel: str, folder: Path, tell: Tell) -> str:
    """Find the operator that launches a device kernel, in a trace; on a CPU, operators are the kernels.

    Raises:
        MissingInput: there is no such kernel.
        Misuse: no operator launches it.
    """
    tell("tracing steps")
    runner.trace(_TRACED_STEPS, folder)
    return launching_operator(trace_read.load_trace(folder / traces.FILE), kernel)


def launching_operator(events: TraceEvents, kernel: str) -> str:
    """Return the operator that launched most of the kernel's time in a trace; raises as `find_launcher`."""
    if not events.work:
        return _match_name(kernel, {event.name for event in events.operators if event.name.startswith("aten::")})
    kernels = {trace_names.short_kernel_name(event.name) for event in events.work if event.kind == "kernel"}
    exact = {event.name for event in events.work if kernel == event.name}
    name = kernel if exact else _match_name(kernel, kernels)
    calls = {event.correlation: event for event in events.calls if event.correlation is not None}
    seconds: dict[str, int] = {}
    for event in events.work:
        if name not in (event.name, trace_names.short_kernel_name(event.name)) or event.correlation not in calls:
            continue
        operator = _enclosing_operator(calls[event.correlation], events.operators)
        if operator is not None:
            seconds[operator] = seconds.get(operator, 0) + event.end - event.begin
    if not seconds:
        raise Misuse(f"No operator of PyTorch launched {name}, so no definition can replace it.")
    return max(seconds, key=lambda operator_name: seconds[operator_name])


def _enclosing_operator(call: TraceEvent, operators: list[TraceEvent]) -> str | None:
    """Return the innermost of PyTorch's operators around a call."""
    enclosing = [
        operator
        for operator in operators
        if operator.lane == call.lane
        and operator.begin <= call.begin
        and call.end <= operator.end
        and "::" in operator.name
    ]
    return min(enclosing, key=lambda operator: operator.end - operator.begin).name if enclosing else None


def _match_name(name: str, names: set[str]) -> str:
    """Return the only name that equals or contains `name`; raises MissingInput if there is none or several."""
    for exact in (name, f"aten::{name}"):
        if exact in names:
            return exact
    matches = sorted(candidate for candidate in names if name in candidate)
    if len(matches) == 1:
        return matches[0]
    suggestions = matches or difflib.get_close_matches(name, sorted(names), 5, 0.3) or sorted(names)[:5]
    count = "several kernels" if matches else "no kernel"
    raise MissingInput(f"The step runs {count} named `{name}`; choose one of {', '.join(suggestions[:8])}.")


def measure_step_seconds(runner: Runner) -> float:
    """Return the median seconds per step of a started program; raises as the runner does."""
    runner.run(_WARM_UP_STEPS, values=False)
    least, seconds = _TIMED
    times: list[float] = []
    while len(times) < least or (sum(times) < seconds and len(times) < 10 * least):
        times.append(runner.run(1, values=False).seconds)
    return sorted(times)[len(times) // 2]


def _operator_row(name: str, row: dict[str, Any], step_seconds: float) -> OperatorRow:
    seconds = row["seconds"] / _WATCHED_STEPS
    share = min(seconds / step_seconds, 1.0)
    return OperatorRow(
        name=name, calls=row["calls"] / _WATCHED_STEPS, seconds=seconds, share=share, ceiling=amdahl_bound(share),
        refusal=row["refusal"],
    )  # fmt: skip


def _parse_signatures(rows: list[dict[str, Any]]) -> tuple[CallSignature, ...]:
    signatures = [
        CallSignature.model_validate(
            {**item, "calls": item["calls"] / _WATCHED_STEPS, "seconds": item["seconds"] / _WATCHED_STEPS}
        )
        for item in rows
    ]
    return tuple(sorted(signatures, key=lambda item: -item.seconds))
