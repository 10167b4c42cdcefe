"""A shell command that runs steps: every Python process that it starts records itself."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith import files
from warpsmith.errors import MissingInput, SolutionFailed, TimedOut
from warpsmith.profiling.trace import script as traces
from warpsmith.profiling.trace.models import Region, Trace, TraceSteps
from warpsmith.program.models import ProgramFacts
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import kill_group, last_output_line
from warpsmith.temporary import TemporaryFolder

INJECT = Path(__file__).resolve().parent / "inject"
"""Folder on the PYTHONPATH of the command, with a `sitecustomize` that records."""

LOG = "output.txt"
"""Name of the file with the command's output."""


@dataclass(frozen=True)
class ShellRun:
    """Result of a command."""

    facts: ProgramFacts
    """Facts of the program, with an average step observed."""
    trace: Trace
    """Trace of the whole run, or of its marked steps."""
    rank_facts: tuple[ProgramFacts, ...] = ()
    """Facts of each rank, in order; empty if it has only one."""
    rank_traces: tuple[Path, ...] = ()
    """File of the trace of each rank; empty if it has only one."""


def run_shell_program(program: Program, folder: Path, *, steps: int | None, timeout: float) -> ShellRun:
    """Run the command to its end and record it.

    If several processes use PyTorch, all ranks of a distributed run are read, or else the one with the most
    operators.

    Args:
        program: the command.
        folder: folder for the trace and the output.
        steps: number of steps that the command runs, used if it does not mark them.
        timeout: seconds until the command is killed.

    Raises:
        SolutionFailed: it fails.
        TimedOut: it takes more than `timeout` seconds.
        MissingInput: no process used PyTorch, or it was killed before it wrote its trace.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryFolder("command") as records:
        _run_shell(program, Path(records), folder / LOG, timeout)
        facts_files = _rank_files(Path(records)) or [_busiest_facts_file(program, Path(records))]
        trace_files = [folder / traces.rank_file(rank) for rank in range(len(facts_files))]
        for path, trace_file in zip(facts_files, trace_files, strict=True):
            files.write_file(trace_file, path.with_suffix(".json.gz").read_bytes())
        raw_facts: list[dict[str, Any]] = [json.loads(path.read_text()) for path in facts_files]
    trace = _divide_trace(
        traces.analyze_trace_file(trace_files[0]).model_copy(update={"script": program.label}), steps
    )
    facts = tuple(_average_facts(fields, trace) for fields in raw_facts)
    if len(facts) == 1:
        return ShellRun(facts[0], trace)
    return ShellRun(facts[0], trace, facts, tuple(trace_files))


def _average_facts(fields: dict[str, Any], trace: Trace) -> ProgramFacts:
    """Return facts with an average step observed."""
    count = trace.repetitions + (trace.region.steps.ignored if trace.region.steps else 0)
    observed = {name: _average(value, count) for name, value in fields["observed"].items()}
    observed["seconds"] = trace.region.seconds / trace.repetitions
    return ProgramFacts.model_validate({**fields, "observed": observed})


def _rank_files(records: Path) -> list[Path]:
    """Return the file of facts of each rank of a distributed run, in order; empty if a rank's is missing."""
    by_rank: dict[int, Path] = {}
    world = 1
    for path in records.glob("*.facts"):
        with contextlib.suppress(ValueError, KeyError):
            fields = json.loads(path.read_text())
            if fields["world"] > 1:
                by_rank[fields["rank"]], world = path, fields["world"]
    return [by_rank[rank] for rank in sorted(by_rank)] if len(by_rank) == world > 1 else []


def _run_shell(program: Program, records: Path, log: Path, timeout: float) -> None:
    command = program.command or ""
    paths = (str(INJECT), os.environ.get("PYTHONPATH", ""))
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
                "WARPSMITH_RECORD": str(records),
            },
            start_new_session=True,
        )
    try:
        code = process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise TimedOut(
            f"`{command}` took more than {timeout:g} s and was killed; have it run fewer steps, or give --timeout."
        ) from None
    finally:
        kill_group(process)
    if code:
        raise SolutionFailed(
            f"`{command}` failed with exit code {code}: {last_output_line(log)} Its output: {log}"
        )


def _busiest_facts_file(program: Program, records: Path) -> Path:
    """Return the file of facts of the process with the most PyTorch operators."""
    best, most = None, 0
    for path in sorted(records.glob("*.facts")):
        with contextlib.suppress(ValueError, KeyError):
            count = sum(json.loads(path.read_text())["observed"]["operators"].values())
            best, most = (path, count) if count > most else (best, most)
    if best is None:
        raise MissingInput(
            f"`{program.command}` left no trace of PyTorch: no process used it, or Python was killed; give a "
            "command that runs steps in Python and lets it exit by itself."
        )
    return best


def _divide_trace(trace: Trace, steps: int | None) -> Trace:
    """Divide a trace without marked steps into `steps` equal ones; their times are averages."""
    if trace.region.steps is not None or steps is None:
        return trace
    seconds = trace.region.seconds / steps
    average = TraceSteps(
        range="--steps",
        ignored=0,
        count=steps,
        median_seconds=seconds,
        fastest_seconds=seconds,
        slowest_seconds=seconds,
        median_busy_seconds=trace.busy_seconds / steps,
    )
    words = f"the whole run, warm-up included, taken as {steps} equal steps"
    region = Region.model_validate({**dict(trace.region), "steps": average, "words": words})
    return trace.model_copy(update={"region": region})


def _average(value: Any, steps: int) -> Any:  # noqa: ANN401 - JSON
    """Return the average per step of a value from JSON; a count above 0 is at least 1."""
    if isinstance(value, dict):
        return {name: _average(inner, steps) for name, inner in value.items()}
    if isinstance(value, bool | list | str):
        return value
    if isinstance(value, int):
        return max(1, round(value / steps)) if value else 0
    return value / steps
