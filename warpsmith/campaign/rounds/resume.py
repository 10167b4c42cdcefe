"""Resume: mend what a crash, a full disk or a stray hand left behind. Running it again changes nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import psutil
from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign.evidence.judgements import RERUNS
from warpsmith.campaign.history import lineage, records, solutions
from warpsmith.campaign.history.records import QUARANTINE
from warpsmith.campaign.history.store import MASKS, SPENT, Campaign
from warpsmith.campaign.rounds import lessons, rounds
from warpsmith.campaign.rounds.lessons import Learned
from warpsmith.campaign.rounds.state import STEPS
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.evaluation import Evaluation
from warpsmith.errors import CorruptRecord, Misuse


def resume(campaign: Campaign) -> list[str]:
    """Mend the campaign; returns what was done, one sentence each. The caller holds `lock.hold`.

    Raises:
        Misuse: git or the knowledge refuses what is left to do; the message says what to mend.
    """
    return list(_mend(campaign))


def _mend(campaign: Campaign) -> Iterator[str]:
    yield from _sweep(campaign)
    yield from _quarantine(campaign)
    if campaign.manifest.git == "branch":
        yield from _restore(campaign)
    yield from _acknowledge(campaign)
    yield from _open(campaign)
    yield from _finish(campaign)
    if campaign.manifest.git == "branch":
        yield from lineage.sync(campaign)


def _finish(campaign: Campaign) -> Iterator[str]:
    learned = campaign.step("lesson", Learned)
    if learned is None:
        return
    for folder in lessons.folders(campaign, learned):
        for stray in sorted(folder.glob(f"{files.TEMPORARY}*")):
            if _abandoned(stray):  # other campaigns write here too, under locks of their own
                stray.unlink(missing_ok=True)
                yield f"removed {stray.name}, which an interrupted write left"
    kept = rounds.file_round(campaign)
    if kept:
        yield f"round {kept.record.round} was being closed: finished it"


def _abandoned(stray: Path) -> bool:
    match = re.search(r"-(\d+)-[0-9a-f]+$", stray.name)
    return match is not None and not psutil.pid_exists(int(match[1]))


def _sweep(campaign: Campaign) -> Iterator[str]:
    closed = [records.folder_of(campaign.rounds, number) for number in records.numbers(campaign.rounds)]
    for folder in (campaign.folder, campaign.rounds, campaign.open, campaign.folder / RERUNS, *closed):
        for stray in files.sweep(folder):
            yield f"removed {stray.name}, which an interrupted write left"


def _quarantine(campaign: Campaign) -> Iterator[str]:
    sound = []
    for number in records.numbers(campaign.rounds):
        try:
            yield from _mend_snapshot(campaign, number)
            sound.append(kept := records.read(campaign.rounds, number, campaign.name))
            if records.seal_strike(kept):
                yield f"round {number} was being struck: finished it"
        except CorruptRecord as error:
            yield _move_round(campaign, number, _what(error))
    for broken in records.unlinked(sound):
        yield _move_round(campaign, broken.record.round, "it is not the record that the next one follows")


def _mend_snapshot(campaign: Campaign, number: int) -> Iterator[str]:
    """Take a lost snapshot from the version's own file where that still is the one that was judged."""
    folder = records.folder_of(campaign.rounds, number)
    try:
        record = RoundRecord.model_validate_json((folder / records.RECORD).read_bytes())
        source = solutions.at(campaign.project, campaign.manifest.target_op, record.solution).path
    except (OSError, ValidationError, Misuse):
        return
    broken = not records.sound_snapshot(folder / record.snapshot, record.snapshot_sha256)
    if broken and records.sound_snapshot(source, record.snapshot_sha256):
        files.write(folder / Path(record.snapshot).name, source.read_bytes())
        yield f"round {number}: took the lost snapshot from {campaign.project.relative(source)}"


def _restore(campaign: Campaign) -> Iterator[str]:
    for committed in lineage.on_branch(campaign):
        folder = records.folder_of(campaign.rounds, committed.round)
        if folder.exists():
            continue
        contents = lineage.contents(campaign, committed)
        if _sound(contents, committed.sha256):
            files.publish(dict(contents), folder)
            yield f"restored round {committed.round} from {lineage.branch(campaign.name)}"


def _acknowledge(campaign: Campaign) -> Iterator[str]:
    for number in records.missing(campaign.rounds):
        place = _free(campaign, f"{number:03d}")
        files.publish({"why.txt": f"rounds/{number:03d} was not there.\n"}, place)
        yield f"round {number} is missing, and no branch holds it: later rounds stay, with a gap before them"


def _open(campaign: Campaign) -> Iterator[str]:
    """Drop an unreadable step, and those after it, since they rest on it."""
    names = list(STEPS)
    for position, name in enumerate(names):
        if not _reads(campaign, name):
            for later in names[position:]:
                yield from _drop(campaign, campaign.open / f"{later}.json", later == name)
            break
    for path in sorted(campaign.open.glob("invalid-*.json")) if campaign.open.is_dir() else []:
        try:
            campaign.step(path.stem, Evaluation)
        except CorruptRecord:
            yield from _drop(campaign, path, True)
    try:
        campaign.spent()
    except CorruptRecord:
        yield from _drop(campaign, campaign.open / f"{SPENT}.json", True)
    try:
        campaign.masks()
    except CorruptRecord:
        yield from _drop(campaign, campaign.folder / MASKS, True)


def _reads(campaign: Campaign, name: str) -> bool:
    try:
        step = campaign.step(name, STEPS[name])
    except CorruptRecord:
        return False
    if name != "verdict" or not isinstance(step, Evaluation):
        return True
    op = campaign.manifest.target_op
    solution = solutions.at(campaign.project, op, f"{step.language}/{step.version}")
    return records.sound_snapshot(campaign.open / solution.snapshot, step.provenance.solution_sha256)


def _drop(campaign: Campaign, path: Path, first: bool) -> Iterator[str]:
    if path.exists():
        place = _free(campaign, f"open-{path.stem}")
        files.move(path, place)
        why = "does not read" if first else "rests on it"
        yield f"{path.name} {why}: moved to {campaign.project.relative(place)}"


def _move_round(campaign: Campaign, number: int, why: str) -> str:
    folder, place = records.folder_of(campaign.rounds, number), _free(campaign, f"{number:03d}")
    files.move(folder, place)
    return f"round {number} is corrupt ({why}): moved to {campaign.project.relative(place)}"


def _free(campaign: Campaign, stem: str) -> Path:
    folder = campaign.rounds / QUARANTINE
    taken = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    return next(folder / f"{stem}-{k}" for k in range(1, len(taken) + 2) if f"{stem}-{k}" not in taken)


def _sound(contents: dict[str, bytes], sha256: str) -> bool:
    return hashlib.sha256(contents.get(records.RECORD, b"")).hexdigest() == sha256


def _what(error: CorruptRecord) -> str:
    return str(error).split(";", maxsplit=1)[0]
