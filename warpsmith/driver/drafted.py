"""The drafts designer: versions that somebody prepared, each played as a round with the plan that lies beside it.

Only the designing is done already. A draft that a closed round judged is not played again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import yaml
from pydantic import Field, ValidationError

from warpsmith import files, languages
from warpsmith.campaign.rounds.state import State
from warpsmith.campaign.rounds.steps import NextStep
from warpsmith.core.base import Model
from warpsmith.core.campaign import Plan, Selection
from warpsmith.core.problem import problem
from warpsmith.driver.proposal import LessonProposal
from warpsmith.errors import MissingInput, Misuse

Sentence = Annotated[str, Field(min_length=10)]
"""Long enough to say something: a placeholder is no lesson."""


class Teaches(Model):
    """What a draft refines the first entry of its plan with; the knowledge's gate looks at it."""

    accepted: Sentence | None = None
    """Where it is accepted."""
    rolled_back: Sentence | None = None
    """Where it is not."""


class Draft(Model):
    """The page beside a draft: `01_wider.yaml` of `01_wider.py`."""

    plan: Plan
    """STRATEGIZE."""
    teaches: Teaches = Teaches()
    """LEARN."""


class Drafted:
    """Plays the drafts of a folder that is named for their language, by name."""

    name = "drafts"
    tries = 2
    """A lesson that the knowledge's gate refuses is left out then."""
    cost = ""

    def __init__(self, folder: Path) -> None:
        """Look at `folder`.

        Raises:
            Misuse: it is named for no language.
            MissingInput: it holds no file of its language.
        """
        self.language = folder.name
        try:
            suffix = languages.get(self.language).suffix
        except Misuse as error:
            raise Misuse(f"{folder} is not named for the language of its drafts. {error}") from error
        self.drafts = tuple(sorted(folder.glob(f"*{suffix}")))
        self._by_digest = {files.sha256(path): path for path in self.drafts}
        if not self.drafts:
            raise MissingInput(f"{folder} holds no draft, a *{suffix} file.")

    def select(self, state: State, step: NextStep, refused: str = "") -> Selection:
        """The folder's language."""
        draft = self._next(state)
        return Selection(language=self.language, because=f"The draft {draft.name} is written in it.")

    def plan(self, state: State, step: NextStep, refused: str = "") -> Plan:
        """As it lies beside the next draft."""
        return self.page(self._next(state)).plan

    def design(self, state: State, step: NextStep, path: Path, refused: str = "") -> None:
        """The next draft."""
        files.write(path, self._next(state).read_bytes())

    def learn(self, state: State, step: NextStep, refused: str = "") -> LessonProposal:
        """What the draft teaches, where its page says so and the knowledge's gate has not refused it."""
        draft, plan, outcome = self._judged(state), state.open.plan, state.open.outcome
        accepted = outcome is not None and outcome.verdict.accepted
        said = "accepted" if accepted else "not accepted"
        if draft is None or plan is None:
            return LessonProposal(action="nothing", text=f"A baseline, {said}: it tries nothing.")
        teaches = self.page(draft).teaches
        taught = teaches.accepted if accepted else teaches.rolled_back
        if taught and plan.entries and not refused:
            return LessonProposal(action="refine", entry=plan.entries[0], text=taught)
        return LessonProposal(action="nothing", text=refused or f"{draft.name} was {said}; it teaches no more.")

    def finished(self, state: State) -> str | None:
        """All drafts were judged."""
        return None if self._left(state) else f"all {len(self.drafts)} drafts are played"

    def _left(self, state: State) -> list[Path]:
        played = {record.snapshot_sha256 for record in state.records}
        return [path for digest, path in self._by_digest.items() if digest not in played]

    def _next(self, state: State) -> Path:
        left = self._left(state)
        if not left:
            raise MissingInput("All drafts are played; finish the open round with `warpsmith next`.")
        return left[0]

    def _judged(self, state: State) -> Path | None:
        """The draft that the open round judged; None: a version that was there already."""
        if state.open.verdict is None:
            return None
        return self._by_digest.get(state.open.verdict.provenance.solution_sha256)

    def page(self, draft: Path) -> Draft:
        """What lies beside a draft; raises MissingInput or Misuse."""
        path = draft.with_suffix(".yaml")
        try:
            return Draft.model_validate(yaml.safe_load(path.read_text()))
        except FileNotFoundError as error:
            raise MissingInput(f"{draft} has no plan; write it to {path}.") from error
        except ValidationError as error:
            raise Misuse(f"{path} does not validate: {problem(error)}.") from error
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise Misuse(f"{path} does not read: {problem(error)}; mend it.") from error
