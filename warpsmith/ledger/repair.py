"""Repair of a ledger after a crash, a full disk or an edit by hand; a second repair finds nothing to do.

Nothing is deleted but unfinished writes: a corrupt file moves to the quarantine. Callers hold the ledger's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from warpsmith import files
from warpsmith.core.base import Model
from warpsmith.errors import CorruptRecord, UnreadableRecord
from warpsmith.ledger.store import QUARANTINE, Ledger, R, StoredRecord, chain_faults


def sweep(folders: Iterable[Path]) -> Iterator[str]:
    """Remove what interrupted writes left in the folders; yield one sentence for each."""
    for folder in folders:
        for stray in files.sweep_unfinished(folder):
            yield f"removed {stray.name}, which an interrupted write left"


def sweep_ledger(ledger: Ledger[R]) -> Iterator[str]:
    """Remove what interrupted writes left anywhere in a ledger; yield one sentence for each."""
    return sweep((ledger.folder, ledger.open, *map(ledger.folder_of, ledger.numbers())))


def quarantine_records(
    ledger: Ledger[R],
    prepare: Callable[[int], Iterable[str]] = lambda _: (),
    finish: Callable[[StoredRecord[R]], Iterable[str]] = lambda _: (),
) -> Iterator[str]:
    """Move every corrupt closed record to the quarantine; yield one sentence for each change.

    Args:
        ledger: the ledger to repair.
        prepare: repairs what it can of a record before it is read; yields its own sentences.
        finish: completes a sound record; yields its own sentences.
    """
    sound = []
    for number in ledger.numbers():
        try:
            yield from prepare(number)
            sound.append(stored := ledger.read(number))
            yield from finish(stored)
        except UnreadableRecord:
            raise
        except CorruptRecord as error:
            yield _quarantine_record(ledger, number, str(error).split(";", maxsplit=1)[0])
    for stored, fault in chain_faults(sound):
        yield _quarantine_record(ledger, stored.number, f"it {fault}")


def acknowledge_missing(ledger: Ledger[R], reason: str = "") -> Iterator[str]:
    """Mark the numbers of lost records as used, so that the later records read again; yield a sentence each."""
    for number in ledger.missing():
        marker = free_path(ledger.folder, f"{number:03d}")
        files.publish_folder({"why.txt": f"{ledger.folder.name}/{number:03d} was not there.\n"}, marker)
        yield (
            f"{ledger.noun} {number} is missing{reason}: later {ledger.noun}s stay, with a gap before them"
        )  # fmt: skip


def drop_unreadable_parts(
    ledger: Ledger[R],
    parts: Mapping[str, type[Model]],
    sound: Callable[[str, Model], bool] = lambda name, part: True,
) -> Iterator[str]:
    """Move the first corrupt part of the open round, and the parts that depend on it, to the quarantine.

    Args:
        ledger: the ledger to repair.
        parts: file names in the order in which the parts are finished, each with its model.
        sound: returns False for a part that reads but whose other files are corrupt.
    """
    names = list(parts)
    for position, name in enumerate(names):
        try:
            part = ledger.read_model(ledger.open / name, parts[name])
            corrupt = part is not None and not sound(name, part)
        except UnreadableRecord:
            raise
        except CorruptRecord:
            corrupt = True
        if corrupt:
            for later in names[position:]:
                yield from quarantine_file(ledger, ledger.open / later, depends=later != name)
            return


def drop_unreadable(ledger: Ledger[R], path: Path, model: type[Model]) -> Iterator[str]:
    """Move a file to the quarantine if it does not read; yield one sentence if it moved."""
    try:
        ledger.read_model(path, model)
    except UnreadableRecord:
        raise
    except CorruptRecord:
        yield from quarantine_file(ledger, path)


def quarantine_file(ledger: Ledger[R], path: Path, *, depends: bool = False) -> Iterator[str]:
    """Move a file or folder to the quarantine if it is there; yield one sentence if it moved."""
    if path.exists():
        stem = path.stem if path == ledger.open else f"open-{path.stem}"
        destination = free_path(ledger.folder, stem)
        files.move_path(path, destination)
        reason = "depends on it" if depends else "is not as the lab wrote it"
        yield f"{path.name} {reason}: moved to {destination.relative_to(ledger.folder.parent)}"


def _quarantine_record(ledger: Ledger[R], number: int, fault: str) -> str:
    destination = free_path(ledger.folder, f"{number:03d}")
    files.move_path(ledger.folder_of(number), destination)
    return f"{ledger.noun} {number} is corrupt ({fault}): moved to {destination.relative_to(ledger.folder.parent)}"


def free_path(ledger: Path, stem: str) -> Path:
    """Return the path in the quarantine of a ledger's folder for a file or folder of this name: `001-1`."""
    folder = ledger / QUARANTINE
    used = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    return next(folder / f"{stem}-{k}" for k in range(1, len(used) + 2) if f"{stem}-{k}" not in used)
