"""Steps of a running program, watched line by line."""

from __future__ import annotations

from dataclasses import dataclass

from warpsmith.program.capture.rules import Observation
from warpsmith.program.capture.watched_steps import STEPS, user_folders
from warpsmith.program.lines.raw_lines import WatchedLines
from warpsmith.program.process.runner import Runner

_CPU_STEPS = 2


@dataclass(frozen=True)
class LineReport:
    """Report of watched steps."""

    observations: tuple[Observation, ...]
    """Operations that a CUDA graph cannot hold."""
    lines: WatchedLines
    """Counts by line."""


def watch_lines(runner: Runner, *, gpu: bool) -> LineReport:
    """Watch steps of a started program: four on a GPU, whose differences a CUDA graph must know, else two.

    Raises:
        WarpsmithError: a step fails, as `Runner` says.
    """
    answer = runner.call("line_observe", folders=user_folders(runner.program), steps=STEPS if gpu else _CPU_STEPS)
    return LineReport(
        tuple(Observation(**fields) for fields in answer["observations"]),
        WatchedLines.model_validate(answer["lines"]),
    )
