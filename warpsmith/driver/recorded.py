"""The recorded designer: the kernels, hypotheses and lessons of an earlier real campaign, round by round.

Only the designing is recorded. Every measurement, verdict and evaluation is made anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpsmith import files
from warpsmith.campaign.history import records
from warpsmith.campaign.history.records import Kept
from warpsmith.campaign.rounds.state import State
from warpsmith.campaign.rounds.steps import NextStep
from warpsmith.core.campaign import Plan, Selection
from warpsmith.driver.proposal import LessonProposal
from warpsmith.errors import MissingInput


class Recorded:
    """Plays the closed rounds of a campaign folder."""

    name = "recorded"
    tries = 1
    cost = ""

    def __init__(self, folder: Path) -> None:
        """Read the recording at `folder`, a campaign's.

        Raises:
            MissingInput: it holds no closed round.
            CorruptRecord: a record of it is corrupt.
        """
        self._turns: Sequence[Kept] = records.read_all(folder / "rounds", folder.name)
        if not self._turns:
            raise MissingInput(f"{folder} holds no closed round to play.")

    @property
    def language(self) -> str:
        """The language of the first recorded round."""
        return self._turns[0].record.selection.language

    def select(self, state: State, step: NextStep, refused: str = "") -> Selection:
        """The recorded language."""
        return self._turn(state).record.selection

    def plan(self, state: State, step: NextStep, refused: str = "") -> Plan:
        """The recorded hypothesis and prediction."""
        return self._turn(state).record.plan

    def design(self, state: State, step: NextStep, path: Path, refused: str = "") -> None:
        """The recorded kernel."""
        kept = self._turn(state)
        files.write(path, (kept.folder / kept.record.snapshot).read_bytes())

    def learn(self, state: State, step: NextStep, refused: str = "") -> LessonProposal:
        """The recorded lesson, where the verdict here is the one that it was drawn from."""
        recorded = self._turn(state).record
        lesson, there = recorded.lesson, recorded.outcome.verdict
        here = state.open.outcome.verdict if state.open.outcome else there
        if here.accepted != there.accepted:
            reason = f"The verdict here is {here}, in the recording it was {there}: no lesson from one of each."
            return LessonProposal(action="nothing", text=reason, tip=None)
        if lesson.action == "nothing":
            return LessonProposal(action="nothing", text=lesson.reason, tip=lesson.tip)
        if not lesson.reason:
            added = f"The recorded lesson added {lesson.entry}, which ships; there is nothing to say again."
            return LessonProposal(action="nothing", text=added, tip=lesson.tip)
        action = "refute" if lesson.action == "refute" else "refine"
        return LessonProposal(action=action, entry=lesson.entry, text=lesson.reason, tip=lesson.tip)

    def finished(self, state: State) -> str | None:
        """The recording ends."""
        count = len(self._turns)
        return f"all {count} recorded rounds are played" if len(state.rounds) >= count else None

    def _turn(self, state: State) -> Kept:
        if len(state.rounds) >= len(self._turns):
            raise MissingInput("All recorded rounds are played; finish the open one with `warpsmith next`.")
        return self._turns[len(state.rounds)]
