"""Drafts designer: plays each prepared version of a folder as a round, with the plan in the YAML file next to it.

Only the design is prepared; everything is measured and judged. A draft that a closed round judged is skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, ValidationError

from warpsmith import files, languages
from warpsmith.campaign.rounds.due_phase import DuePhase
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.base import Model
from warpsmith.core.campaign import Plan, Selection
from warpsmith.core.text import describe_error
from warpsmith.driver.proposal import LessonProposal
from warpsmith.errors import MissingInput, Misuse

Sentence = Annotated[str, Field(min_length=10)]
"""Text that is too long for a placeholder."""


class DraftLessons(Model):
    """Notes that refine the first entry of a draft's plan, if the knowledge gate accepts them."""

    accepted: Sentence | None = None
    """Note for an accepted version."""
    rolled_back: Sentence | None = None
    """Note for a version that was not accepted."""


class DraftPage(Model):
    """YAML page next to a draft: `01_wider.yaml` for `01_wider.py`."""

    plan: Plan
    """Plan for STRATEGIZE."""
    teaches: DraftLessons = DraftLessons()
    """Lessons for LEARN."""


class DraftsDesigner:
    """Play the drafts of a folder in the order of their names; the folder is named after their language."""

    name = "drafts"
    tries = 2
    """The second attempt at LEARN leaves out a lesson that the knowledge gate refused."""
    fixes = False
    cost = ""

    def __init__(self, folder: Path) -> None:
        """List the drafts of `folder`.

        Raises:
            Misuse: its name is not a language.
            MissingInput: it holds no file of its language.
        """
        self.language = folder.name
        try:
            suffix = languages.get(self.language).suffix
        except Misuse as error:
            raise Misuse(f"{folder} is not named after the language of its drafts. {error}") from error
        self.drafts = tuple(sorted(folder.glob(f"*{suffix}")))
        self._by_digest = {files.file_sha256(path): path for path in self.drafts}
        if not self.drafts:
            raise MissingInput(f"{folder} holds no draft: no *{suffix} file.")

    def select(self, state: CampaignState, step: DuePhase, refused: str = "") -> Selection:
        """Return the folder's language."""
        draft = self._next(state)
        return Selection(language=self.language, because=f"The draft {draft.name} is written in it.")

    def plan(self, state: CampaignState, step: DuePhase, refused: str = "") -> Plan:
        """Return the plan of the next draft."""
        return self.read_page(self._next(state)).plan

    def design(self, state: CampaignState, step: DuePhase, path: Path, refused: str = "") -> None:
        """Copy the next draft to `path`."""
        files.write_file(path, self._next(state).read_bytes())

    def learn(self, state: CampaignState, step: DuePhase, refused: str = "") -> LessonProposal:
        """Return the lesson of the draft's page, if it has one and the knowledge gate has not refused it."""
        draft, plan, outcome = self._judged(state), state.open.plan, state.open.outcome
        accepted = outcome is not None and outcome.verdict.accepted
        outcome_text = "accepted" if accepted else "not accepted"
        if draft is None or plan is None:
            return LessonProposal(action="nothing", text=f"The baseline was {outcome_text}; it tries nothing.")
        teaches = self.read_page(draft).teaches
        note = teaches.accepted if accepted else teaches.rolled_back
        if note and plan.entries and not refused:
            return LessonProposal(action="refine", entry=plan.entries[0], text=note)
        rest = "its prepared lesson was refused" if refused else "it teaches no more"
        return LessonProposal(action="nothing", text=f"{draft.name} was {outcome_text}; {rest}.")

    def finished(self, state: CampaignState) -> str | None:
        """Return a reason once all drafts were judged."""
        return None if self._drafts_left(state) else f"all {len(self.drafts)} drafts have been played"

    def _drafts_left(self, state: CampaignState) -> list[Path]:
        played = {record.snapshot_sha256 for record in state.records}
        return [path for digest, path in self._by_digest.items() if digest not in played]

    def _next(self, state: CampaignState) -> Path:
        left = self._drafts_left(state)
        if not left:
            raise MissingInput("All drafts have been played; finish the open round with `warpsmith next`.")
        return left[0]

    def _judged(self, state: CampaignState) -> Path | None:
        """Return the draft that the open round judged, or None for a version that existed before."""
        if state.open.verdict is None:
            return None
        return self._by_digest.get(state.open.verdict.provenance.solution_sha256)

    def read_page(self, draft: Path) -> DraftPage:
        """Read the page next to a draft; raises MissingInput or Misuse."""
        path = draft.with_suffix(".yaml")
        try:
            return DraftPage.model_validate(yaml.safe_load(path.read_text()))
        except FileNotFoundError as error:
            raise MissingInput(f"{draft} has no plan; write it to {path}.") from error
        except ValidationError as error:
            raise Misuse(f"{path} does not validate: {describe_error(error)}.") from error
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise Misuse(f"{path} cannot be read: {describe_error(error)}; correct it.") from error
