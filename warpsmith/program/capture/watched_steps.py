"""Watched steps of a running program: what its process reports of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from warpsmith.program.capture.models import GraphModule
from warpsmith.program.capture.rules import Observation
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import Runner

STEPS = 4
"""Number of steps that are watched."""

WARM_UP = 2
"""Number of steps before them, because the first steps may still set things up."""


@dataclass(frozen=True)
class WatchedSteps:
    """Report of watched steps."""

    observations: tuple[Observation, ...]
    """Operations that a CUDA graph cannot hold."""
    modules: tuple[GraphModule, ...]
    """Modules that a step calls."""
    files: tuple[Path, ...]
    """The program's file, then the user's other files from which a step called an operator."""


def watch_program(runner: Runner, steps: int = STEPS) -> WatchedSteps:
    """Watch `steps` steps of a started program, after a warm-up and before one step that times its modules.

    Raises:
        WarpsmithError: a step fails, as `Runner` says.
    """
    program = runner.program
    answer = runner.call("graph_observe", folders=user_folders(program), steps=steps, warm=WARM_UP)
    return WatchedSteps(
        tuple(Observation(**fields) for fields in answer["observations"]),
        tuple(GraphModule.model_validate(fields) for fields in answer["modules"]),
        tuple(dict.fromkeys((program.path, *map(Path, answer["files"])))),
    )


def user_folders(program: Program) -> list[str]:
    """Return the folders that contain the program's own files."""
    return sorted({str(program.folder), str(program.path.parent)})
