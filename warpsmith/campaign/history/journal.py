"""Journal of a campaign: one line for each part of a round when it is written, outside of the round's folder.

The parts of an open round have no record yet. The journal shows that one has vanished, and that a version was
judged whose verdict is gone.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from warpsmith import files, languages
from warpsmith.campaign.history.fingerprints import source_fingerprint
from warpsmith.campaign.history.records import StoredRound
from warpsmith.core.base import Model, Sha256
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.text import describe_error
from warpsmith.ledger.store import corrupt_file, unreadable_file

JOURNAL = "journal.jsonl"
"""Name of the journal in a campaign's folder."""


class JournalLine(Model):
    """One line: a part was written, or its loss was acknowledged."""

    round: int = Field(ge=1)
    """Number of the round."""
    part: str
    """Name of the part, such as `plan`."""
    event: Literal["written", "dropped", "lost"] = "written"
    """`dropped`: a command removed the part; `lost`: `warpsmith resume` found that it was gone."""
    sha256: Sha256
    """Hash of the part's file."""
    solution: str | None = None
    """With a verdict: the judged version, such as `cpp/v3`."""
    solution_sha256: Sha256 | None = None
    """With a verdict: hash of the version's file."""
    solution_fingerprint: Sha256 | None = None
    """With a verdict: fingerprint of that file, which comments and layout do not change."""
    seed: int | None = None
    """With a verdict: seed of the judgement, which tells it from every other one."""


def append_part(folder: Path, number: int, name: str, path: Path, part: Model) -> None:
    """Add a line about a part that was just written.

    Args:
        folder: the campaign's folder.
        number: number of the open round.
        name: name of the part.
        path: its file; with a verdict, a copy of the judged version lies next to it.
        part: the part itself.
    """
    line = JournalLine(round=number, part=name, sha256=files.file_sha256(path))
    if isinstance(part, Evaluation) and name == "verdict":
        origin = part.provenance
        language = languages.get(part.language)
        judged = path.with_name(f"{part.language}-{part.version}{language.suffix}")
        line = line.model_copy(
            update={
                "solution": f"{part.language}/{part.version}",
                "solution_sha256": origin.solution_sha256,
                "solution_fingerprint": source_fingerprint(language, judged),
                "seed": origin.seed,
            }
        )
    _append(folder, [line])


def drop_part_line(folder: Path, number: int, name: str, path: Path) -> None:
    """Add a line about a part that a command is about to remove; arguments as of `append_part`."""
    _append(folder, [JournalLine(round=number, part=name, event="dropped", sha256=files.file_sha256(path))])


def read_journal_lines(folder: Path, repair: str) -> list[JournalLine]:
    """Read a campaign's journal; empty for a campaign from before there was one.

    Raises:
        CorruptRecord: a line does not read; `repair` is the command that the message names.
    """
    path = folder / JOURNAL
    lines = []
    try:
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            try:
                lines.append(JournalLine.model_validate_json(line))
            except ValidationError as error:
                fault = f"does not read: line {number}: {describe_error(error)}"
                raise corrupt_file(path, fault, repair) from error
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable_file(path, error, repair) from error
    return lines


def drop_unreadable_lines(folder: Path) -> int:
    """Remove the lines that do not read; return their number."""
    path = folder / JOURNAL
    lines = path.read_text(errors="replace").splitlines() if path.exists() else []
    sound = [line for line in lines if _reads(line)]
    if sound != lines:
        files.write_file(path, "".join(f"{line}\n" for line in sound))
    return len(lines) - len(sound)


def lost_verdicts(
    lines: Iterable[JournalLine], rounds: Iterable[StoredRound], open_seed: int | None
) -> list[JournalLine]:
    """List the verdicts that neither a closed round nor the open one has, the latest last.

    Args:
        lines: the journal.
        rounds: the closed rounds.
        open_seed: seed of the open round's verdict; None if it has none.
    """
    seeds = {open_seed, *(stored.record.evaluation.provenance.seed for stored in rounds)}
    verdicts = {line.seed: line for line in lines if line.part == "verdict"}
    return [line for seed, line in verdicts.items() if seed not in seeds]


def is_edited(lines: Iterable[JournalLine], verdict: Evaluation, path: Path) -> bool:
    """Return True if the file of the open round's verdict is not what was written.

    A verdict without a line is none: the command can have been killed before it wrote the line.

    Args:
        lines: the journal.
        verdict: the verdict as its file has it.
        path: the file.
    """
    seed = verdict.provenance.seed
    hashes = {line.sha256 for line in lines if line.part == "verdict" and line.seed == seed}
    return bool(hashes) and files.file_sha256(path) not in hashes


def count_attempts(lines: Iterable[JournalLine], number: int) -> int:
    """Count the attempts that were written in a round, also those whose files are gone."""
    attempts = [line for line in lines if line.round == number and line.part.startswith("attempt-")]
    return sum(line.event == "written" for line in attempts)


def vanished_parts(lines: Iterable[JournalLine], number: int, folder: Path) -> list[JournalLine]:
    """List the parts of the open round whose files are gone or are not what was written.

    Args:
        lines: the journal.
        number: number of the open round.
        folder: folder of the open round.
    """
    last = {line.part: line for line in lines if line.round == number}
    written = [line for line in last.values() if line.event == "written"]
    paths = {line.part: folder / f"{line.part}.json" for line in written}
    return [
        line
        for line in written
        if not paths[line.part].is_file() or files.file_sha256(paths[line.part]) != line.sha256
    ]


def acknowledge_vanished(folder: Path, lines: Iterable[JournalLine]) -> None:
    """Add a line for each part that has vanished, so that it is reported once."""
    _append(folder, [line.model_copy(update={"event": "lost"}) for line in lines])


def _reads(line: str) -> bool:
    try:
        JournalLine.model_validate_json(line)
    except ValidationError:
        return False
    return True


def _append(folder: Path, lines: Iterable[JournalLine]) -> None:
    path = folder / JOURNAL
    text = "".join(line.model_dump_json(exclude_none=True) + "\n" for line in lines)
    if text:
        written = path.read_text(errors="replace") if path.exists() else ""
        written += "" if written.endswith("\n") or not written else "\n"  # an editor can take the last one
        files.write_file(path, written + text)
