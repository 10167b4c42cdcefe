"""Measurement of a transfer: the program is timed on both sides in turns, and traced."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from warpsmith.core.evaluation import Aggregate
from warpsmith.core.repo import ProgramReach, RepoSettings, Side, TimeBucket
from warpsmith.lab.timing import statistics
from warpsmith.repo import row_results
from warpsmith.repo.side_runner import FAILURES, SideRunner
from warpsmith.repo.transfer import kernel_trace
from warpsmith.repo.worktrees import BASE, CANDIDATE

_MOST_BUCKETS = 5
_MOST_FUNCTIONS = 4
_LEAST_SHARE = 0.01
_INTERPRETER = re.compile(
    r"(?<![\w./-])(?P<python>(?:\S*/)?python(?:3(?:\.\d+)?)?(?:\s+-(?:[XW]\s+\S+|(?![mcXW]\b)\S+))*)\s+(?!-c\b)(?=\S)"
)
"""A Python interpreter with its options, before a script or `-m`."""


def measure_transfer(runner: SideRunner, aggregate: Aggregate) -> ProgramReach:
    """Time the program of the settings on both sides and trace it; without a program, trace the benchmark.

    Args:
        runner: both sides, built.
        aggregate: the kernel's gain in the benchmark.

    Raises:
        CommandFailed, CommandTimedOut: the program runs in the base and fails in the candidate.
    """
    settings, missing = runner.settings, []
    reach = ProgramReach(traced="program" if settings.program else "benchmark")
    try:
        timed = _time_program(runner) if settings.program else {}
    except FAILURES as error:
        if "worktree candidate" in str(error):
            raise
        return reach.model_copy(update={"missing": (f"the program fails in the base too: {error}",)})
    if not settings.program:
        missing.append(
            "`program` is not in the settings, so the benchmark was traced, and whether a whole program gains is"
            " not shown"
        )
    reach = reach.model_copy(
        update={**timed, **_trace_sides(runner, settings.program or settings.benchmark, missing)}
    )
    share, predicted = reach.kernel_share, None
    if share is not None and settings.program:
        predicted = 1 / (1 - share + share / aggregate.speedup)
    return reach.model_copy(update={"predicted": predicted, "missing": tuple(missing)})


def traced_command(settings: RepoSettings, text: str, result: Path, root: Path, mode: str) -> str | None:
    """Return a command that traces the kernel in the first Python program of `text`; None if it starts none."""
    kernels = shlex.quote(json.dumps(list(settings.kernel)))
    tracer = f"{shlex.quote(str(kernel_trace.__file__))} {shlex.quote(str(result))} {shlex.quote(str(root))}"
    command, count = _INTERPRETER.subn(
        lambda match: f"{match['python']} {tracer} {kernels} {mode} ", text, count=1
    )
    return command if count else None


def _time_program(runner: SideRunner) -> dict[str, object]:
    """Time both sides in turns, as often as the benchmark runs; the side that begins alternates."""
    text = runner.settings.program or ""
    seconds: dict[Side, list[float]] = {BASE: [], CANDIDATE: []}
    for number in range(runner.settings.repeats):
        for side in (BASE, CANDIDATE) if number % 2 == 0 else (CANDIDATE, BASE):
            try:
                seconds[side].append(runner.program(side, text))
            except FAILURES:
                if side == CANDIDATE:
                    runner.program(BASE, text)  # if it fails there as well, the change is not to blame
                raise
    speedup, interval = statistics.paired_speedup(seconds[CANDIDATE], seconds[BASE])
    middle = row_results.middle_pair(seconds[CANDIDATE], seconds[BASE])
    return {"measured": speedup, "interval": interval, "seconds": middle}


def _trace_sides(runner: SideRunner, text: str, missing: list[str]) -> dict[str, object]:
    """Trace both sides; add a sentence to `missing` for each part that could not be traced."""
    runs: list[tuple[Side, str]] = [(BASE, "calls"), (BASE, "buckets"), (CANDIDATE, "calls")]
    traces = []
    for side, mode in runs:
        result = runner.folder / f"trace-{side}-{mode}.json"
        command = traced_command(runner.settings, text, result, runner.root(side), mode)
        if command is None:
            missing.append(f"calls are traced where a command starts `python`, and `{text}` starts none")
            return {}
        result.unlink(missing_ok=True)
        try:
            runner.program(side, command)
            traces.append(json.loads(result.read_text()))
        except (*FAILURES, OSError, ValueError) as error:
            missing.append(f"the traced run in {side} failed: {error}")
            return {}
    base, buckets, candidate = traces
    if not base["modules"]:
        missing.append(
            f"the traced process never imported {' or '.join(runner.settings.kernel)}, or a module built from it"
        )
    if base["opaque"]:
        names = ", ".join(base["opaque"][:_MOST_FUNCTIONS])
        missing.append(f"calls of {names} were not traced: they are methods in compiled code, or numba's")
    functions = dict(sorted(base["calls"].items(), key=lambda item: -item[1])[:_MOST_FUNCTIONS])
    counted = {
        "calls": sum(base["calls"].values()),
        "candidate_calls": sum(candidate["calls"].values()),
        "functions": functions,
    }
    if base["device"]:
        missing.append(
            "on a GPU a call returns before its work is done, so the kernel's share was not taken;"
            " `warpsmith program analyze --command` measures it"
        )
        return counted
    if not counted["calls"] and base["opaque"]:
        return counted
    return {
        **counted,
        "kernel_seconds": (base["kernel_seconds"], candidate["kernel_seconds"]),
        "buckets": _divide_time(base, buckets["buckets"]),
    }


def _divide_time(trace: dict[str, float], others: dict[str, float]) -> tuple[TimeBucket, ...]:
    """Divide the time into the kernel's share and, in the proportions of the watched run, that of the others."""
    share = min(trace["kernel_seconds"] / trace["seconds"], 1.0)
    total = sum(others.values()) or 1.0
    ordered = sorted(others.items(), key=lambda item: -item[1])
    large = [item for item in ordered[:_MOST_BUCKETS] if item[1] >= _LEAST_SHARE * total]
    rest = 1 - share
    buckets = [TimeBucket(name="the kernel", share=share)]
    buckets += [TimeBucket(name=name, share=rest * spent / total) for name, spent in large]
    left = sum(spent for _, spent in ordered[len(large) :])
    return (*buckets, *([TimeBucket(name="others", share=rest * left / total)] if left else []))
