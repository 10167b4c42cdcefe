"""State of a campaign, computed from the files on disk and from nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass

from warpsmith.campaign.history import drafts, final_race, journal, memory, records, solutions, stopping, store
from warpsmith.campaign.history.journal import JournalLine
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import stagnation
from warpsmith.campaign.rounds.lessons import PreparedLesson
from warpsmith.core.base import Model
from warpsmith.core.campaign import (
    Closure,
    Contenders,
    Masks,
    Plan,
    RoundOutcome,
    RoundRecord,
    Selection,
    Stagnation,
)
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.profile import Profile
from warpsmith.core.spend import Spend

PARTS: dict[str, type[Model]] = {
    "profile": Profile,
    "selection": Selection,
    "contenders": Contenders,
    "plan": Plan,
    "verdict": Evaluation,
    "profile_after": Profile,
    "outcome": RoundOutcome,
    "lesson": PreparedLesson,
}
"""The parts of the open round in the order in which they are finished, each with the model of its file."""


@dataclass(frozen=True)
class OpenRound:
    """The finished parts of the round that is not closed."""

    profile: Profile | None
    """PROFILE."""
    selection: Selection | None
    """SELECT."""
    plan: Plan | None
    """STRATEGIZE."""
    verdict: Evaluation | None
    """VERIFY."""
    profile_after: Profile | None
    """VERIFY: profile of the new version."""
    outcome: RoundOutcome | None
    """EVALUATE."""
    lesson: PreparedLesson | None
    """LEARN: after it the round only has to be filed."""
    invalid: tuple[Evaluation, ...]
    """Attempts at VERIFY that failed because of the machine."""
    attempts: tuple[Evaluation, ...] = ()
    """Attempts at VERIFY whose version did not build."""
    contenders: Contenders | None = None
    """STRATEGIZE and DESIGN of several versions at once; None if the version is designed alone."""
    attempt_count: int = 0
    """Number of attempts in the round; one whose file is gone counts."""
    spent: tuple[Spend, ...] = ()
    """Cost of its agents."""

    def last(self) -> str | None:
        """Name of the last finished part; None if there is none."""
        return next((name for name in reversed(PARTS) if getattr(self, name) is not None), None)


@dataclass(frozen=True)
class CampaignState:
    """State of a campaign."""

    campaign: Campaign
    """The campaign."""
    rounds: tuple[StoredRound, ...]
    """The closed rounds in order."""
    masks: Masks | None
    """The rounds that planning does not see; None if it sees all."""
    open: OpenRound
    """The open round."""
    solution: Solution | None
    """The version that the open round works on; None before its language is selected."""
    lost: tuple[JournalLine, ...] = ()
    """Verdicts that were written and have vanished; their versions count as judged."""

    @property
    def records(self) -> list[RoundRecord]:
        """The closed rounds' records."""
        return [stored.record for stored in self.rounds]

    @property
    def visible(self) -> list[RoundRecord]:
        """The closed rounds that planning may see."""
        return memory.visible_rounds(self.records, self.masks)

    @property
    def best(self) -> RoundRecord | None:
        """The round whose version is the best: the last accepted one that was not struck."""
        return records.best_round(self.records)

    @property
    def best_name(self) -> str | None:
        """Name of the best version, such as `triton/v3`; None if there is none."""
        return self.best.solution if self.best else None

    @property
    def baseline(self) -> bool:
        """True while no version was accepted: the open round is the baseline."""
        return self.best is None

    @property
    def number(self) -> int:
        """The number that the open round will take."""
        return self.campaign.ledger.next_number()

    @property
    def filed_round(self) -> StoredRound | None:
        """The open round's record, if it was published before its closing was interrupted."""
        # Every judgement draws a fresh nonce, so equal evaluations are one judgement.
        last = self.rounds[-1] if self.rounds else None
        return last if last and last.record.evaluation == self.open.verdict else None

    @property
    def carried_profile(self) -> Profile | None:
        """Profile of the best version that the last round made after its verdict; PROFILE needs no other."""
        best = self.best
        if best is None or self.records[-1].round != best.round or best.profile_after is None:
            return None
        return best.profile_after if best.profile_after.solution_sha256 == best.snapshot_sha256 else None

    @property
    def current_profile(self) -> Profile | None:
        """Profile of the best version that the open round plans by: its own, else the last round's."""
        return self.open.profile or self.carried_profile

    @property
    def stagnation(self) -> Stagnation:
        """Demands of the visible rounds on the next plan."""
        return stagnation.assess_stagnation([record.verdict for record in self.visible])

    @property
    def spent(self) -> tuple[Spend, ...]:
        """Cost of the campaign's agents."""
        closed = tuple(spend for record in self.records for spend in record.spent)
        return closed if self.filed_round else closed + self.open.spent

    @property
    def final(self) -> Evaluation | None:
        """The final race of the best version; None if it was not run."""
        return final_race.read_final_race(self.campaign, self.best)

    @property
    def closure(self) -> Closure | None:
        """The campaign's end before a stop condition; None if it goes on."""
        return self.campaign.closure()

    @property
    def stop(self) -> str | None:
        """The stop condition that holds, in words; None if none does."""
        if self.closure:
            return f"it was {self.closure.text}"
        return stopping.recorded_stop(self.campaign.manifest, self.records)


def read_state(campaign: Campaign) -> CampaignState:
    """Read the state of a campaign.

    Raises:
        CorruptRecord: a record or a part of the open round is corrupt.
    """
    rounds = tuple(campaign.closed_rounds())
    parts = {name: campaign.read_part(name, model) for name, model in PARTS.items()}
    invalid, attempts = (_numbered(campaign, name) for name in ("invalid", "attempt"))
    lines = campaign.journal()
    count = max(len(attempts), journal.count_attempts(lines, campaign.ledger.next_number()))
    opened = OpenRound(**parts, invalid=invalid, attempts=attempts, attempt_count=count, spent=campaign.spent())  # type: ignore[arg-type]
    verdict_file = campaign.open / "verdict.json"
    if opened.verdict and journal.is_edited(lines, opened.verdict, verdict_file):
        raise campaign.ledger.corrupt(
            verdict_file, "was edited after the judgement; put it back, else the verdict is lost"
        )
    seed = opened.verdict.provenance.seed if opened.verdict else None
    lost = tuple(journal.lost_verdicts(lines, rounds, seed))
    solution = _solution(campaign, rounds, opened, lost)
    return CampaignState(campaign, rounds, campaign.masks(), opened, solution, lost)


def _solution(
    campaign: Campaign, rounds: tuple[StoredRound, ...], opened: OpenRound, lost: tuple[JournalLine, ...]
) -> Solution | None:
    """Version that the open round works on; None before its language is selected."""
    project, op = campaign.project, campaign.manifest.target_op
    if opened.verdict:
        return solutions.find_solution(project, op, f"{opened.verdict.language}/{opened.verdict.version}")
    if records.best_round(stored.record for stored in rounds) is None:
        manifest, proven = campaign.manifest, _earlier_best(campaign)
        unrun = () if manifest.port else drafts.unrun_versions(project, op)
        return solutions.due_solution(
            project, op, manifest.target_language, rounds, proven, lost,
            suffix=manifest.version_suffix, from_scratch=manifest.earlier_work == "hidden",
            left_out=unrun,
        )  # fmt: skip
    if opened.selection is None:
        return None
    return solutions.due_solution(
        project, op, opened.selection.language, rounds, lost=lost, suffix=campaign.manifest.version_suffix
    )


def _earlier_best(campaign: Campaign) -> list[str]:
    """List the best versions of the operator's other campaigns for the same target, the newest last.

    A campaign for energy serves only other campaigns for energy. A port campaign goes on from what was accepted on
    any target; the last version that passed in an earlier one of its own target comes last.
    """
    manifest = campaign.manifest
    others = [
        other
        for other in store.list_campaigns(campaign.project, manifest.target_op)
        if other.name != campaign.name
        and (manifest.port or other.manifest.target == manifest.target)
        and other.manifest.objective in ("time", manifest.objective)
    ]
    others.sort(key=lambda other: (other.manifest.created, other.name))
    # A campaign with a corrupt record is left out; its own commands report it.
    progress = store.read_progress(campaign.project, [other.folder for other in others])
    best = [list(reached.accepted.values())[-1] for reached in progress if reached and reached.accepted]
    if manifest.port:
        ported = drafts.untimed_versions(campaign.project, manifest.target_op, manifest.target)
        best += [solution.name for solution in ported]
    return best


def _numbered(campaign: Campaign, kind: str) -> tuple[Evaluation, ...]:
    """Read the judgements of the open round that are no verdict, `invalid-<k>.json` or `attempt-<k>.json`."""
    names = [path.stem for path in campaign.open.glob(f"{kind}-*.json")]
    numbers = sorted(int(match[1]) for name in names if (match := re.fullmatch(rf"{kind}-(\d+)", name)))
    ordered = [f"{kind}-{number}" for number in numbers]
    evaluations = [campaign.read_part(name, Evaluation) for name in ordered]
    return tuple(evaluation for evaluation in evaluations if evaluation is not None)
