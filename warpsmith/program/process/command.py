"""A shell command that runs steps: recorded from inside every Python that it starts, read when it has ended."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith import files
from warpsmith.errors import MissingInput, SolutionFailed, TimedOut
from warpsmith.profiling.trace import script as traces
from warpsmith.profiling.trace.models import Region, Steps, Trace
from warpsmith.program.models import ProgramFacts
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import kill_group, last_output_line

INJECT = Path(__file__).resolve().parent / "inject"
"""The folder that goes on the command's PYTHONPATH."""

LOG = "output.txt"
"""The command's output, in the folder that `run` is given."""


@dataclass(frozen=True)
class CommandRun:
    """What a command left."""

    facts: ProgramFacts
    """What it was made of, with an average step observed."""
    trace: Trace
    """Of its whole run, or of its marked steps."""


def run_command(program: Program, folder: Path, *, steps: int | None, timeout: float) -> CommandRun:
    """Run the command to its end, recorded; `steps` is how many it runs where nothing marks them.

    The folder keeps the trace and the output. Where several processes use PyTorch, the first rank's is taken.

    Raises:
        SolutionFailed: it fails.
        TimedOut: it takes more than `timeout` seconds.
        MissingInput: nothing in it used PyTorch, or it was killed before it could write its trace.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="warpsmith-command-") as place:
        _run_shell(program, Path(place), folder / LOG, timeout)
        found = _busiest_facts_file(program, Path(place))
        kept = folder / traces.FILE
        files.write_file(kept, found.with_suffix(".json.gz").read_bytes())
        told: dict[str, Any] = json.loads(found.read_text())
    trace = _divide_trace(traces.read(kept).model_copy(update={"script": program.label}), steps)
    done = trace.repetitions + (trace.region.steps.ignored if trace.region.steps else 0)
    told["observed"] = {name: _average(value, done) for name, value in told["observed"].items()}
    told["observed"]["seconds"] = trace.region.seconds / trace.repetitions
    return CommandRun(ProgramFacts.model_validate(told), trace)


def _run_shell(program: Program, place: Path, log: Path, timeout: float) -> None:
    command = program.command or ""
    paths = (str(INJECT), os.environ.get("PYTHONPATH", ""))
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "WARPSMITH_RECORD": str(place)},
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


def _busiest_facts_file(program: Program, place: Path) -> Path:
    """The facts' file of the process that did the most in PyTorch."""
    best, most = None, 0
    for path in sorted(place.glob("*.facts")):
        with contextlib.suppress(ValueError, KeyError):
            count = sum(json.loads(path.read_text())["observed"]["operators"].values())
            best, most = (path, count) if count > most else (best, most)
    if best is None:
        raise MissingInput(
            f"`{program.command}` left no trace of PyTorch: nothing in it used it, or Python was killed; give a "
            "command that runs steps in Python and lets it exit by itself."
        )
    return best


def _divide_trace(trace: Trace, steps: int | None) -> Trace:
    """The trace with so many steps where it marks none; their times are averages then."""
    if trace.region.steps is not None or steps is None:
        return trace
    each = trace.region.seconds / steps
    made = Steps(
        range="--steps",
        ignored=0,
        count=steps,
        median_seconds=each,
        fastest_seconds=each,
        slowest_seconds=each,
        median_busy_seconds=trace.busy_seconds / steps,
    )
    words = f"the whole run, warm-up included, taken as {steps} equal steps"
    region = Region.model_validate({**dict(trace.region), "steps": made, "words": words})
    return trace.model_copy(update={"region": region})


def _average(value: Any, steps: int) -> Any:  # noqa: ANN401 - JSON
    """Of one step, on average; a count is rounded and never to nothing."""
    if isinstance(value, dict):
        return {name: _average(inner, steps) for name, inner in value.items()}
    if isinstance(value, bool | list | str):
        return value
    if isinstance(value, int):
        return max(1, round(value / steps)) if value else 0
    return value / steps
