"""Resume: repair a campaign after a crash, a full disk or an edit by hand. A second run changes nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign.evidence.retimings import RETIMINGS
from warpsmith.campaign.evidence.stored_evaluations import RERUNS
from warpsmith.campaign.history import journal, lineage, manifests, records, solutions, store
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.store import MASKS, SPENT, Campaign
from warpsmith.campaign.rounds import lessons, open_round
from warpsmith.campaign.rounds.lessons import PreparedLesson
from warpsmith.campaign.rounds.state import PARTS
from warpsmith.core.base import Model
from warpsmith.core.campaign import Masks, RoundRecord
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.spend import Spending
from warpsmith.errors import CorruptRecord, Misuse
from warpsmith.ledger import repair
from warpsmith.ledger.lock import LOCK, hold_lock
from warpsmith.ledger.store import RECORD
from warpsmith.ownership import is_abandoned
from warpsmith.project import Project


def resume_campaign(campaign: Campaign) -> list[str]:
    """Repair the campaign and return what was done, one sentence each. The caller holds `hold_campaign`.

    Raises:
        Misuse: git or the knowledge refuses a remaining action; the message says what to correct.
    """
    return list(_resume(campaign))


def restore_manifests(project: Project, name: str | None) -> list[str]:
    """Restore the manifest of the campaign of this name, without a name all that do not read, and return what was
    done. Only a named one that cannot be restored is an error; each other one is left out with a warning.

    Raises:
        CorruptRecord: no commit holds the manifest of the campaign of this name.
        Busy: another process holds the campaign.
    """
    actions: list[str] = []
    for path in store.read_campaigns(project)[1]:
        folder = path.parent
        if name in (None, folder.name):
            with hold_lock(
                folder / LOCK, folder.name, "warpsmith resume", f"warpsmith resume --campaign {folder.name}"
            ):
                try:
                    actions += manifests.restore_manifest(project, folder)
                except CorruptRecord:
                    if name:
                        raise
    return actions


def _resume(campaign: Campaign) -> Iterator[str]:
    ledger = campaign.ledger
    yield from repair.sweep((campaign.folder, campaign.folder / RERUNS, campaign.folder / RETIMINGS))
    yield from repair.sweep_ledger(ledger)
    yield from repair.quarantine_records(
        ledger,
        prepare=lambda number: _restore_snapshot(campaign, number),
        finish=_finish_strike,
    )
    if campaign.manifest.git == "branch":
        yield from _restore_rounds(campaign)
    yield from repair.acknowledge_missing(ledger, ", and no branch holds it")
    if count := journal.drop_unreadable_lines(campaign.folder):
        yield f"dropped {count} unreadable line{'s' if count > 1 else ''} of {journal.JOURNAL}"
    yield from _describe_vanished(campaign)
    yield from _restore_open_snapshot(campaign)
    parts = {f"{name}.json": model for name, model in PARTS.items()}
    yield from repair.drop_unreadable_parts(ledger, parts, lambda _, part: _is_sound(campaign, part))
    for kind in ("invalid", "attempt"):
        for path in sorted(campaign.open.glob(f"{kind}-*.json")):
            yield from repair.drop_unreadable(ledger, path, Evaluation)
    yield from repair.drop_unreadable(ledger, campaign.open / f"{SPENT}.json", Spending)
    yield from repair.drop_unreadable(ledger, campaign.folder / MASKS, Masks)
    _acknowledge_vanished(campaign)
    yield from _finish_close(campaign)
    if campaign.manifest.git == "branch":
        yield from lineage.sync_branch(campaign)


def _describe_vanished(campaign: Campaign) -> Iterator[str]:
    """Yield a sentence for each part of the open round that is gone."""
    for line in journal.vanished_parts(campaign.journal(), campaign.ledger.next_number(), campaign.open):
        if (campaign.open / f"{line.part}.json").exists():
            continue
        judged = f"; {line.solution} counts as judged" if line.solution else ""
        yield f"round {line.round}: {line.part}.json is gone{judged}"


def _acknowledge_vanished(campaign: Campaign) -> None:
    vanished = journal.vanished_parts(campaign.journal(), campaign.ledger.next_number(), campaign.open)
    vanished_files = [line for line in vanished if not (campaign.open / f"{line.part}.json").exists()]
    journal.acknowledge_vanished(campaign.folder, vanished_files)


def _finish_close(campaign: Campaign) -> Iterator[str]:
    lesson = campaign.read_part("lesson", PreparedLesson)
    if lesson is None:
        return
    for folder in lessons.lesson_folders(campaign, lesson):
        for stray in sorted(folder.glob(f"{files.TEMPORARY_PREFIX}*")):
            if is_abandoned(stray):  # other campaigns write here too, under locks of their own
                stray.unlink(missing_ok=True)
                yield f"removed {stray.name}, which an interrupted write left"
    stored = open_round.file_round(campaign)
    if stored:
        yield f"round {stored.record.round} was being closed: finished it"


def _finish_strike(stored: StoredRound) -> Iterator[str]:
    if records.seal_strike(stored):
        yield f"round {stored.number} was being struck: finished it"


def _restore_snapshot(campaign: Campaign, number: int) -> Iterator[str]:
    """Take a lost snapshot from the version's own file if that is still the one that was judged."""
    folder = campaign.ledger.folder_of(number)
    try:
        record = RoundRecord.model_validate_json((folder / RECORD).read_bytes())
        source = solutions.find_solution(campaign.project, campaign.manifest.target_op, record.solution).path
    except (OSError, ValidationError, Misuse):
        return
    intact = records.has_content(folder / record.snapshot, record.snapshot_sha256)
    if not intact and records.has_content(source, record.snapshot_sha256):
        files.write_file(folder / Path(record.snapshot).name, source.read_bytes())
        yield f"round {number}: took the lost snapshot from {campaign.project.relative(source)}"


def _restore_open_snapshot(campaign: Campaign) -> Iterator[str]:
    """Take the lost copy of the judged version from the version's own file if that is still the one."""
    with suppress(CorruptRecord):  # a verdict that does not read is dropped afterwards
        verdict = campaign.read_part("verdict", Evaluation)
        if verdict is None or _has_judged_file(campaign, verdict):
            return
        version = f"{verdict.language}/{verdict.version}"
        solution = solutions.find_solution(campaign.project, campaign.manifest.target_op, version)
        if records.has_content(solution.path, verdict.provenance.solution_sha256):
            files.write_file(campaign.open / solution.snapshot, solution.path.read_bytes())
            yield f"took the lost copy of {solution.name} from {campaign.project.relative(solution.path)}"


def _restore_rounds(campaign: Campaign) -> Iterator[str]:
    for committed in lineage.rounds_on_branch(campaign):
        folder = campaign.ledger.folder_of(committed.round)
        if folder.exists():
            continue
        contents = lineage.committed_files(campaign, committed)
        if hashlib.sha256(contents.get(RECORD, b"")).hexdigest() == committed.sha256:
            files.publish_folder(dict(contents), folder)
            yield f"restored round {committed.round} from commit {committed.commit[:12]}"


def _is_sound(campaign: Campaign, part: Model) -> bool:
    """Return False for a verdict that was edited, or lacks the file that it judged."""
    is_edited = isinstance(part, Evaluation) and journal.is_edited(
        campaign.journal(), part, campaign.open / "verdict.json"
    )
    return not is_edited and _has_judged_file(campaign, part)


def _has_judged_file(campaign: Campaign, part: Model) -> bool:
    """Return False for a verdict without the file that it judged."""
    if not isinstance(part, Evaluation):
        return True
    version = f"{part.language}/{part.version}"
    solution = solutions.find_solution(campaign.project, campaign.manifest.target_op, version)
    return records.has_content(campaign.open / solution.snapshot, part.provenance.solution_sha256)
