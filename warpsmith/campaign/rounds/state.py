"""State: where a campaign stands, computed from what is on disk and from nothing else."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass

from warpsmith.campaign.history import finale, memory, records, solutions, stopping, store
from warpsmith.campaign.history.records import Kept
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import stagnation
from warpsmith.campaign.rounds.lessons import Learned
from warpsmith.core.base import Model
from warpsmith.core.campaign import Masks, Outcome, Plan, RoundRecord, Selection, Stagnation
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.profile import Profile
from warpsmith.core.spend import Spend
from warpsmith.errors import CorruptRecord

STEPS: dict[str, type[Model]] = {
    "profile": Profile,
    "selection": Selection,
    "plan": Plan,
    "verdict": Evaluation,
    "profile_after": Profile,
    "outcome": Outcome,
    "lesson": Learned,
}
"""The files of the open round in the order in which they are finished, each with its model."""


@dataclass(frozen=True)
class OpenRound:
    """The finished steps of the round that is not closed."""

    profile: Profile | None
    """PROFILE."""
    selection: Selection | None
    """SELECT."""
    plan: Plan | None
    """STRATEGIZE."""
    verdict: Evaluation | None
    """VERIFY."""
    profile_after: Profile | None
    """VERIFY, of the new version."""
    outcome: Outcome | None
    """EVALUATE."""
    lesson: Learned | None
    """LEARN: from here on the round only has to be filed."""
    invalid: tuple[Evaluation, ...]
    """Attempts at VERIFY that the machine failed."""
    spent: tuple[Spend, ...] = ()
    """What its agents cost."""

    def last(self) -> str | None:
        """The last finished step that has a file."""
        return next((name for name in reversed(STEPS) if getattr(self, name) is not None), None)


@dataclass(frozen=True)
class State:
    """Where a campaign stands."""

    campaign: Campaign
    """Which."""
    rounds: tuple[Kept, ...]
    """The closed rounds in order."""
    masks: Masks | None
    """Which of them planning does not see."""
    open: OpenRound
    """The round at work."""
    solution: Solution | None
    """The version that the open round works on; None before its language is selected."""

    @property
    def records(self) -> list[RoundRecord]:
        """The closed rounds' records."""
        return [kept.record for kept in self.rounds]

    @property
    def visible(self) -> list[RoundRecord]:
        """Those that planning may see."""
        return memory.visible(self.records, self.masks)

    @property
    def best(self) -> RoundRecord | None:
        """The round whose version is the best: the last accepted one that was not struck."""
        return records.best(self.records)

    @property
    def best_name(self) -> str | None:
        """The best version, as `language/v3`."""
        return self.best.solution if self.best else None

    @property
    def baseline(self) -> bool:
        """Whether the open round is to bring the first correct version."""
        return self.best is None

    @property
    def number(self) -> int:
        """The number that the open round will take."""
        return records.next_number(self.campaign.rounds)

    @property
    def filed(self) -> Kept | None:
        """The open round's record where it was published before its closing was interrupted."""
        # Every judgement draws a fresh nonce, so equal evaluations are one judgement.
        last = self.rounds[-1] if self.rounds else None
        return last if last and last.record.evaluation == self.open.verdict else None

    @property
    def stagnation(self) -> Stagnation:
        """What the visible rounds ask of the next plan."""
        return stagnation.assess([record.verdict for record in self.visible])

    @property
    def spent(self) -> tuple[Spend, ...]:
        """What the campaign's agents cost."""
        closed = tuple(spend for record in self.records for spend in record.spent)
        return closed if self.filed else closed + self.open.spent

    @property
    def final(self) -> Evaluation | None:
        """The race of the best version against every peer, if it was run."""
        return finale.read(self.campaign, self.best)

    @property
    def stop(self) -> str | None:
        """The stop condition that holds, in words."""
        best = self.best.evaluation if self.best else None
        return stopping.reason(self.campaign.manifest, best, len(self.rounds))


def read(campaign: Campaign) -> State:
    """Where the campaign stands.

    Raises:
        CorruptRecord: a record or a step on disk is corrupt.
    """
    rounds = tuple(campaign.kept())
    steps = {name: campaign.step(name, model) for name, model in STEPS.items()}
    opened = OpenRound(**steps, invalid=_invalid(campaign), spent=campaign.spent())  # type: ignore[arg-type]
    return State(campaign, rounds, campaign.masks(), opened, _solution(campaign, rounds, opened))


def _solution(campaign: Campaign, rounds: tuple[Kept, ...], opened: OpenRound) -> Solution | None:
    project, op = campaign.project, campaign.manifest.target_op
    if opened.verdict:
        return solutions.at(project, op, f"{opened.verdict.language}/{opened.verdict.version}")
    if records.best(kept.record for kept in rounds) is None:
        return solutions.expected(project, op, campaign.manifest.target_language, rounds, _proven(campaign))
    return solutions.expected(project, op, opened.selection.language, rounds) if opened.selection else None


def _proven(campaign: Campaign) -> list[str]:
    """What the operator's other campaigns for the same kind of device found best, the newest last.

    What one by energy found is of use to another one by energy alone.
    """
    aim = (campaign.manifest.target_op, campaign.manifest.target)
    others = [one for one in store.all(campaign.project) if one.name != campaign.name]
    found = []
    for other in sorted(others, key=lambda one: (one.manifest.created, one.name)):
        useful = other.manifest.objective in ("time", campaign.manifest.objective)
        if useful and (other.manifest.target_op, other.manifest.target) == aim:
            with suppress(CorruptRecord):  # that campaign's own commands say so
                best = records.best(kept.record for kept in other.kept())
                found += [best.solution] if best else []
    return found


def _invalid(campaign: Campaign) -> tuple[Evaluation, ...]:
    names = [path.stem for path in campaign.open.glob("invalid-*.json")] if campaign.open.is_dir() else []
    ordered = sorted((name for name in names if re.fullmatch(r"invalid-\d+", name)), key=lambda n: int(n[8:]))
    read = [campaign.step(name, Evaluation) for name in ordered]
    return tuple(evaluation for evaluation in read if evaluation is not None)
