"""Recorded designer: replays the kernels, hypotheses and lessons of an earlier real campaign, round by round.

Only the designs are recorded. Every measurement, verdict and evaluation is made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warpsmith import files
from warpsmith.campaign import texts
from warpsmith.campaign.history import records
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.rounds.due_phase import DuePhase
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.campaign import Plan, Selection
from warpsmith.driver.proposal import LessonProposal
from warpsmith.errors import MissingInput
from warpsmith.project import find_project, shipped_project


class RecordedDesigner:
    """Replay the closed rounds of a campaign folder."""

    name = "recorded"
    tries = 1
    fixes = False
    cost = ""

    def __init__(self, folder: Path) -> None:
        """Read the closed rounds of the campaign folder `folder`, `<devlog>/<op>/<campaign>`.

        Raises:
            MissingInput: it holds no closed round.
            CorruptRecord: a record is corrupt.
        """
        self._turns: Sequence[StoredRound] = records.round_ledger(folder / "rounds", folder.name).read_all()
        shipped = shipped_project()
        project = shipped if folder.is_relative_to(shipped.devlog) else find_project(folder)
        self._versions = project.kernels / folder.parent.name
        if not self._turns:
            raise MissingInput(f"{folder} holds no closed round to play.")

    @property
    def language(self) -> str:
        """Return the language of the first recorded round."""
        return self._turns[0].record.selection.language

    def select(self, state: CampaignState, step: DuePhase, refused: str = "") -> Selection:
        """Return the recorded language."""
        return self._turn(state).record.selection

    def plan(self, state: CampaignState, step: DuePhase, refused: str = "") -> Plan:
        """Return the recorded hypothesis and prediction, without figures that this run has not measured."""
        return drop_plan_figures(self._turn(state).record.plan)

    def design(self, state: CampaignState, step: DuePhase, path: Path, refused: str = "") -> None:
        """Write the recorded kernel."""
        turn = self._turn(state)
        files.write_file(path, records.judged_file(turn, self._versions).read_bytes())

    def learn(self, state: CampaignState, step: DuePhase, refused: str = "") -> LessonProposal:
        """Return the recorded lesson if this run's verdict agrees with the recorded one."""
        record = self._turn(state).record
        lesson, recorded = record.lesson, record.outcome.verdict
        verdict = state.open.outcome.verdict if state.open.outcome else recorded
        if (verdict.accepted, verdict.stands) != (recorded.accepted, recorded.stands):
            reason = f"The verdict is {verdict}, but {recorded} in the recording: they support no common lesson."
            return LessonProposal(action="nothing", text=reason, tip=None)
        tip = lesson.tip and lesson.tip.model_copy(
            update={name: texts.drop_figures(text) for name, text in lesson.tip.model_dump().items()}
        )
        reason = texts.drop_figures(lesson.reason) or "The recorded lesson is one of figures alone."
        if lesson.action == "nothing":
            return LessonProposal(action="nothing", text=reason, tip=tip)
        if not lesson.reason:
            reason = f"The recorded lesson added {lesson.entry}, which ships, so there is nothing to add."
            return LessonProposal(action="nothing", text=reason, tip=tip)
        action = "refute" if lesson.action == "refute" else "refine"
        return LessonProposal(action=action, entry=lesson.entry, text=reason, tip=tip)

    def finished(self, state: CampaignState) -> str | None:
        """Return a reason once all recorded rounds were played."""
        count = len(self._turns)
        return f"all {count} recorded rounds have been played" if len(state.rounds) >= count else None

    def _turn(self, state: CampaignState) -> StoredRound:
        if len(state.rounds) >= len(self._turns):
            raise MissingInput("All recorded rounds have been played; finish the open one with `warpsmith next`.")
        return self._turns[len(state.rounds)]


def drop_plan_figures(plan: Plan) -> Plan:
    """Return a recorded plan without the figures in its text, which a new run has not measured."""
    free = {name: texts.drop_figures(getattr(plan, name)) for name in ("hypothesis", "risks", "rollback")}
    free["hypothesis"] = free["hypothesis"] or f"As recorded: {plan.category}."
    return plan.model_copy(
        update={**free, "search_log": tuple(filter(None, map(texts.drop_figures, plan.search_log)))}
    )
