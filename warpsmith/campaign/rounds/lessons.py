"""LEARN's knowledge entry: prepared while the round is open, written once the round is filed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.base import Model, this_minute
from warpsmith.core.campaign import Lesson, Tip
from warpsmith.errors import Misuse

if TYPE_CHECKING:
    from warpsmith.knowledge.gate import Prepared


class PreparedLesson(Model):
    """The open round's last step."""

    lesson: Lesson
    """What the record keeps."""
    entry: dict[str, str] | None = None
    """The knowledge entry as `knowledge.gate` prepared it: a dump, so that `next` need not import the gate."""

    @classmethod
    def of(cls, prepared: Prepared, reason: str, tip: Tip | None) -> PreparedLesson:
        """What a change of the knowledge teaches."""
        lesson = Lesson(action=prepared.action, entry=prepared.entry, reason=reason, tip=tip)
        return cls(lesson=lesson, entry=prepared.model_dump(mode="json"))


def prepare_lesson(
    campaign: Campaign, action: str, *, record: str, entry: str | None, text: str, reason: str, tip: Tip | None
) -> PreparedLesson:
    """Check what is to be learned from the open round; changes nothing.

    Args:
        campaign: whose round.
        action: `add`, `refine`, `refute` or `nothing`.
        record: where the round's record will be, relative to the project: `rounds.to_learn`.
        entry: the entry to refine or refute.
        text: the page to add, the note that refines, or why it is refuted or nothing new.
        reason: what the record keeps of a change; by default the text of a note.
        tip: a short reusable lesson.

    Raises:
        BadEntry: the knowledge's gate refuses it.
        Misuse: there is no such entry, or the reason for nothing new is missing.
    """
    if action == "nothing":
        if len(text) < 10:
            raise Misuse("Nothing new needs a reason of a few words at least.")
        return PreparedLesson(lesson=Lesson(action="nothing", reason=text, tip=tip))
    from warpsmith.knowledge import gate

    project, when = campaign.project, this_minute()
    if action == "add":
        return PreparedLesson.of(gate.prepare_add(project, text, record, when), reason, tip)
    if not entry:
        raise Misuse(f"Name the entry to {action}.")
    prepare_note = gate.prepare_refine if action == "refine" else gate.prepare_refute
    return PreparedLesson.of(prepare_note(project, entry, text, record, when), reason or text.strip(), tip)


def apply_lesson(campaign: Campaign, kept: StoredRound, learned: PreparedLesson) -> None:
    """Write the entry with the record's hash; doing it again leaves the same bytes.

    Raises:
        Misuse: the knowledge has changed so that the entry no longer fits.
    """
    if learned.entry is None:
        return
    from warpsmith.knowledge.evidence import EvidenceRow
    from warpsmith.knowledge.gate import Prepared

    prepared = Prepared.model_validate(learned.entry)
    place = campaign.project.relative(kept.folder / "record.json")
    if place != prepared.record:  # an earlier filing was lost to quarantine, and the number with it
        prepared = prepared.model_copy(update={"record": place})
    prepared.write(campaign.project, kept.sha256, EvidenceRow.of(kept.record, place))


def lesson_folders(campaign: Campaign, learned: PreparedLesson) -> list[Path]:
    """The folders that `apply` writes to."""
    if learned.entry is None:
        return []
    project = campaign.project
    return [(project.root / learned.entry["path"]).parent, project.knowledge]
