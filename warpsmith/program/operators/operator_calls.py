"""Operators: how often a step calls each of PyTorch's operators, what that costs, and with which arguments."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith.errors import MissingInput, Misuse
from warpsmith.profiling.trace import names as trace_names
from warpsmith.profiling.trace import read as trace_read
from warpsmith.profiling.trace import script as traces
from warpsmith.profiling.trace.read import Event, Events
from warpsmith.program.analysis.models import amdahl_bound
from warpsmith.program.operators import call_form
from warpsmith.program.operators.models import CallSignature, OperatorRow, StepOperators
from warpsmith.program.process.runner import Runner

Tell = Callable[[str], None]

_WARM, _WATCHED, _TRACED = 2, 3, 2
_TIMED = (3, 1.0)
"""Steps that are timed at least, and seconds in which more are."""


@dataclass(frozen=True)
class RecordedCalls:
    """What some steps called."""

    operators: StepOperators
    """Everything."""
    signatures: dict[str, tuple[CallSignature, ...]]
    """Of what was asked for: by overload, the most time first."""
    composites: frozenset[str]
    """The operators that consist of others."""


def record_operators(runner: Runner, tell: Tell, wanted: str = "") -> RecordedCalls:
    """Time the steps of a started program, then watch what they call; raises as the runner does."""
    tell("timing steps")
    device = runner.facts().device
    seconds = measure_step_seconds(runner)
    tell("watching operators")
    found = runner.call("operators", steps=_WATCHED, wanted=wanted)
    if not found["known"]:
        raise Misuse(f"PyTorch has no operator `{wanted}`; without --op the step's operators are listed.")
    rows = [_operator_row(name, row, seconds) for name, row in found["rows"].items()]
    rows.sort(key=lambda row: -row.seconds)
    signatures = {name: _parse_signatures(given) for name, given in found["signatures"].items()}
    return RecordedCalls(
        StepOperators(program=runner.program.label, device=device, step_seconds=seconds, rows=tuple(rows)),
        signatures,
        frozenset(found["composites"]),
    )


def find_operator(operators: StepOperators, name: str) -> OperatorRow:
    """The operator that a name means, its overload with the most time.

    Raises:
        MissingInput: the step does not call it.
        Misuse: it cannot become a definition.
    """
    rows = [row for row in operators.rows if name in (row.name, row.name.partition(".")[0])]
    if not rows:
        usable = [row.name for row in operators.rows if not row.refusal]
        there = difflib.get_close_matches(name, usable, 3, 0.6) or usable[:5]
        raise MissingInput(
            f"The step of {operators.program} does not call `{name}`; it calls {', '.join(there) or 'nothing'}."
        )
    found = next((row for row in rows if not row.refusal), None)
    if found is None:
        why = f"{rows[0].refusal}{call_form.alternative_hint(rows[0].name)}"
        raise Misuse(f"{rows[0].name} cannot become a definition: {why}.")
    return found


def find_launcher(runner: Runner, kernel: str, folder: Path, tell: Tell) -> str:
    """The operator that launched a device kernel, by a trace of some steps; on a CPU operators are the kernels.

    Raises:
        MissingInput: there is no such kernel.
        Misuse: no operator launched it.
    """
    tell("tracing steps")
    runner.trace(_TRACED, folder)
    return launching_operator(trace_read.load(folder / traces.FILE), kernel)


def launching_operator(events: Events, kernel: str) -> str:
    """As `launcher`, of a trace's events: the operator that launched most of the kernel's time."""
    if not events.work:
        return _match_name(kernel, {event.name for event in events.operators if event.name.startswith("aten::")})
    known = {trace_names.short(event.name) for event in events.work if event.kind == "kernel"}
    whole = {event.name for event in events.work if kernel == event.name}
    name = kernel if whole else _match_name(kernel, known)
    calls = {event.correlation: event for event in events.calls if event.correlation is not None}
    seconds: dict[str, int] = {}
    for event in events.work:
        if name not in (event.name, trace_names.short(event.name)) or event.correlation not in calls:
            continue
        operator = _enclosing_operator(calls[event.correlation], events.operators)
        if operator is not None:
            seconds[operator] = seconds.get(operator, 0) + event.end - event.begin
    if not seconds:
        raise Misuse(
            f"No operator of PyTorch launched {name}: it is no kernel of its own that can be replaced so."
        )
    return max(seconds, key=lambda one: seconds[one])


def _enclosing_operator(call: Event, operators: list[Event]) -> str | None:
    """The innermost of PyTorch's own operators around a call."""
    around = [
        one
        for one in operators
        if one.lane == call.lane and one.begin <= call.begin and call.end <= one.end and "::" in one.name
    ]
    return min(around, key=lambda one: one.end - one.begin).name if around else None


def _match_name(name: str, known: set[str]) -> str:
    """The one that a name, or a part of one, means."""
    for whole in (name, f"aten::{name}"):
        if whole in known:
            return whole
    holding = sorted(one for one in known if name in one)
    if len(holding) == 1:
        return holding[0]
    there = holding or difflib.get_close_matches(name, sorted(known), 5, 0.3) or sorted(known)[:5]
    what = "several kernels" if holding else "no kernel"
    raise MissingInput(f"The step runs {what} of the name `{name}`; there are: {', '.join(there[:8])}.")


def measure_step_seconds(runner: Runner) -> float:
    """Seconds a step of a started program: the median of several; raises as the runner does."""
    runner.run(_WARM, values=False)
    least, seconds = _TIMED
    times: list[float] = []
    while len(times) < least or (sum(times) < seconds and len(times) < 10 * least):
        times.append(runner.run(1, values=False).seconds)
    return sorted(times)[len(times) // 2]


def _operator_row(name: str, row: dict[str, Any], whole: float) -> OperatorRow:
    seconds = row["seconds"] / _WATCHED
    share = min(seconds / whole, 1.0)
    return OperatorRow(
        name=name, calls=row["calls"] / _WATCHED, seconds=seconds, share=share, ceiling=amdahl_bound(share),
        refusal=row["refusal"],
    )  # fmt: skip


def _parse_signatures(given: list[dict[str, Any]]) -> tuple[CallSignature, ...]:
    found = [
        CallSignature.model_validate(
            {**one, "calls": one["calls"] / _WATCHED, "seconds": one["seconds"] / _WATCHED}
        )
        for one in given
    ]
    return tuple(sorted(found, key=lambda one: -one.seconds))
