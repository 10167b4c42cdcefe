"""Goal of a program's trials: `devlog/programs/<name>/goal.json`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, ValidationError

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.core.text import describe_error
from warpsmith.core.trial import TrialsTotal
from warpsmith.errors import CorruptRecord
from warpsmith.program.trials.trial_store import Trials


class ProgramGoal(Model):
    """The goal that a person set for a program."""

    speedup: float = Field(gt=1)
    """Speedup of a step over the first original."""

    def is_reached(self, total: TrialsTotal) -> bool:
        """Return whether the whole interval of the total reaches it."""
        return total.comparison.interval.low >= self.speedup


def write_goal(trials: Trials, goal: ProgramGoal) -> None:
    """Write the goal of a program."""
    files.write_file(_goal_path(trials), goal.model_dump_json(indent=2) + "\n")


def read_goal(trials: Trials) -> ProgramGoal | None:
    """Read the goal of a program; None if none is set.

    Raises:
        CorruptRecord: it does not validate.
    """
    path = _goal_path(trials)
    if not path.is_file():
        return None
    try:
        return ProgramGoal.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise CorruptRecord(
            f"{path} is not a valid goal ({describe_error(error)}); set it again with `warpsmith program report "
            "--goal`."
        ) from error


def _goal_path(trials: Trials) -> Path:
    return trials.folder.parent / "goal.json"
