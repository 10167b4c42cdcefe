"""Drafts designer: plays each prepared version of a folder as a round, with the plan in the YAML file next to it.

Only the design is prepared; everything is measured and judged. A draft that a closed round judged is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import yaml
from pydantic import Field, ValidationError

from warpsmith import files, languages
from warpsmith.campaign.rounds.due_phase import DuePhase
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.base import Model
from warpsmith.core.campaign import Plan, Selection
from warpsmith.core.evaluation import BEST
from warpsmith.core.spend import Spend
from warpsmith.core.text import describe_error
from warpsmith.driver.contenders.difference import is_new_plan
from warpsmith.driver.contenders.recipe import Recipe
from warpsmith.driver.proposal import LessonProposal
from warpsmith.errors import MissingInput, Misuse

if TYPE_CHECKING:
    from warpsmith.campaign.history.store import Campaign
    from warpsmith.core.text import Tell

Sentence = Annotated[str, Field(min_length=10)]
"""Text that is too long for a placeholder."""


class DraftLessons(Model):
    """Notes that refine the first entry of a draft's plan, if the knowledge gate accepts them."""

    accepted: Sentence | None = None
    """Note for an accepted version."""
    rolled_back: Sentence | None = None
    """Note for a version that was not accepted, and was not faster on the whole either."""


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
        self._folder = folder
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

    def plan_beside(
        self, state: CampaignState, step: DuePhase, others: Sequence[Plan], refused: str = ""
    ) -> Plan | None:
        """Return the plan of the next draft that differs from the others' plans; None if there is none."""
        plans = (self.read_page(draft).plan for draft in self._drafts_left(state))
        return next((plan for plan in plans if is_new_plan(plan, others)), None)

    def recipe(self, left: int) -> Recipe:
        """Return what creates this designer again."""
        return Recipe(factory=f"{__name__}:create_drafts_designer", arguments={"folder": str(self._folder)})

    def charge(self, recipe: Recipe | None, spends: Sequence[Spend]) -> None:
        """Count nothing: drafts cost nothing."""

    def design(self, state: CampaignState, step: DuePhase, path: Path, refused: str = "") -> None:
        """Copy the draft of the plan to `path`, or the next one if the plan is of none."""
        planned = (draft for draft in self._drafts_left(state) if self._is_planned(draft, state.open.plan))
        files.write_file(path, next(planned, self._next(state)).read_bytes())

    def learn(self, state: CampaignState, step: DuePhase, refused: str = "") -> LessonProposal:
        """Return the lesson of the draft's page, if it has one and the knowledge gate has not refused it."""
        draft, plan, outcome = self._judged(state), state.open.plan, state.open.outcome
        accepted = outcome is not None and outcome.verdict.accepted
        untimed = outcome is not None and outcome.verdict.stands and not accepted
        outcome_text = "accepted" if accepted else "UNTIMED" if untimed else "not accepted"
        if draft is None or plan is None:
            return LessonProposal(action="nothing", text=f"The baseline was {outcome_text}; it tries nothing.")
        teaches = self.read_page(draft).teaches
        if untimed:
            reason = f"{draft.name} passed the interpreter and the compiler; nothing is known of its speed."
            return LessonProposal(action="nothing", text=reason)
        note = teaches.accepted if accepted else _describe_mixed_result(state) or teaches.rolled_back
        if note and plan.entries and not refused:
            return LessonProposal(action="refine", entry=plan.entries[0], text=note)
        rest = "its prepared lesson was refused" if refused else "it teaches no more"
        return LessonProposal(action="nothing", text=f"{draft.name} was {outcome_text}; {rest}.")

    def finished(self, state: CampaignState) -> str | None:
        """Return a reason once all drafts were judged."""
        return None if self._drafts_left(state) else f"all {len(self.drafts)} drafts have been played"

    def _drafts_left(self, state: CampaignState) -> list[Path]:
        """List the drafts to play: no round judged them or, among its contenders, found them slower or wrong."""
        played = {record.snapshot_sha256 for record in state.records}
        for record in state.records:
            beaten = record.evaluation.correct
            played |= {each.sha256 for each in record.lost if each.sha256 and (beaten or each.end == "failed")}
        return [path for digest, path in self._by_digest.items() if digest not in played]

    def _is_planned(self, draft: Path, plan: Plan | None) -> bool:
        return plan is not None and draft.with_suffix(".yaml").is_file() and self.read_page(draft).plan == plan

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


def _describe_mixed_result(state: CampaignState) -> str:
    """Return a note for a version that is faster on the whole and was rolled back all the same, for one slower
    workload perhaps; empty for any other. A page that was written before cannot know of it."""
    verdict = state.open.verdict
    gain = verdict.aggregate(BEST) if verdict and verdict.correct else None
    if gain is None or gain.interval.low <= 1 + state.campaign.manifest.thresholds.small_gain:
        return ""  # the machine may show less by chance
    return "Faster on the whole, and rolled back all the same; the verdict says why."


def create_drafts_designer(campaign: Campaign, tell: Tell, folder: str) -> DraftsDesigner:
    """Create the designer in a process of its own."""
    return DraftsDesigner(Path(folder))
