"""Knowledge entry of LEARN: prepared while the round is open, written after the round is filed."""

from __future__ import annotations

import re
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
    """Last part of the open round."""

    lesson: Lesson
    """Lesson for the round's record."""
    entry: dict[str, str] | None = None
    """Knowledge entry that the knowledge gate prepared, dumped so that `next` need not import the gate."""

    @classmethod
    def of(cls, prepared: Prepared, reason: str, tip: Tip | None) -> PreparedLesson:
        """Build the lesson of a prepared change of the knowledge."""
        lesson = Lesson(action=prepared.action, entry=prepared.entry, reason=reason, tip=tip)
        return cls(lesson=lesson, entry=prepared.model_dump(mode="json"))


def prepare_lesson(
    campaign: Campaign, action: str, *, record: str, entry: str | None, text: str, reason: str, tip: Tip | None
) -> PreparedLesson:
    """Prepare and check the lesson of the open round; nothing is written.

    Args:
        campaign: the campaign.
        action: `add`, `refine`, `refute` or `nothing`.
        record: path that the round's record will have, relative to the project: `rounds.to_learn`.
        entry: the entry to refine or refute.
        text: the page to add, the note that refines, or the reason why an entry is refuted or nothing is new.
        reason: reason for the record; by default the text of a note.
        tip: a short reusable lesson.

    Raises:
        BadEntry: the knowledge gate refuses the entry.
        Misuse: there is no such entry, or the reason for nothing new is missing.
    """
    if action == "nothing":
        if len(text) < 10:
            raise Misuse("Give a reason of at least ten characters why nothing is new.")
        return PreparedLesson(lesson=Lesson(action="nothing", reason=text, tip=tip))
    from warpsmith.knowledge import gate

    project, when = campaign.project, this_minute()
    if action == "add":
        return PreparedLesson.of(gate.prepare_add(project, text, record, when), reason, tip)
    if not entry:
        raise Misuse(f"Name the entry to {action}.")
    if action == "refute" and campaign.manifest.port:
        raise Misuse(f"A port campaign times nothing, so its rounds cannot refute `{entry}`; refine it instead.")
    prepare_note = gate.prepare_refine if action == "refine" else gate.prepare_refute
    return PreparedLesson.of(prepare_note(project, entry, text, record, when), reason or text.strip(), tip)


def apply_lesson(campaign: Campaign, stored: StoredRound, prepared_lesson: PreparedLesson) -> None:
    """Write the entry with the record's hash; a second call writes the same bytes.

    Raises:
        Misuse: the knowledge has changed so that the entry no longer fits.
    """
    if prepared_lesson.entry is None:
        return
    from warpsmith.knowledge.evidence import EvidenceRow
    from warpsmith.knowledge.gate import Prepared

    prepared = Prepared.model_validate(prepared_lesson.entry)
    path = campaign.project.relative(stored.path)
    if path != prepared.record:  # an earlier filing went to the quarantine, and its number with it
        prepared = prepared.model_copy(update={"record": path})
    prepared.write(campaign.project, stored.sha256, EvidenceRow.of(stored.record, path))


def prepared_texts(prepared_lesson: PreparedLesson) -> dict[str, str]:
    """Return the agent's texts in a prepared lesson by their names; code of a new page is left out."""
    from warpsmith.campaign import texts  # its patterns take a while to compile, and `status` needs none

    entry = prepared_lesson.entry
    if entry is None:
        return texts.lesson_texts(prepared_lesson.lesson)
    page = re.sub(r"^```.*?^```", "", entry["text"], flags=re.MULTILINE | re.DOTALL)
    return {
        "new entry" if entry["action"] == "add" else "note": page,
        **texts.lesson_texts(prepared_lesson.lesson),
    }


def lesson_folders(campaign: Campaign, prepared_lesson: PreparedLesson) -> list[Path]:
    """List the folders that `apply_lesson` writes to."""
    if prepared_lesson.entry is None:
        return []
    project = campaign.project
    return [(project.root / prepared_lesson.entry["path"]).parent, project.knowledge]
