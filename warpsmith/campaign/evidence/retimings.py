"""Retimings: times of a best version that were taken again, and which time it is held against.

`retimings/<round>-<n>.json` is signed as a round is, in a `.sig` next to it. Only one that this user's key signed
on this machine counts, so a file that an agent writes there changes nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign.history.records import StoredRound
from warpsmith.campaign.history.store import Campaign
from warpsmith.core import gate_rules
from warpsmith.core.evaluation import SLOWED, Evaluation
from warpsmith.core.evidence import Retiming, Stale
from warpsmith.core.text import describe_error
from warpsmith.errors import CorruptRecord
from warpsmith.ledger import signed_file, signing
from warpsmith.ledger.store import corrupt_file

RETIMINGS = "retimings"
"""Folder of a campaign's retimings."""


def held_time(campaign: Campaign, best: StoredRound) -> tuple[Evaluation, str | None]:
    """Return the evaluation whose times a best version is held against, and the path of the retiming that is it.

    It is the round's own, and no path, unless a retiming counts; of several that do, the last one.

    Raises:
        CorruptRecord: a retiming does not read.
    """
    from warpsmith.lab.gate import incumbent

    own = best.record.evaluation
    for path, retiming in reversed(read_retimings(campaign, best)):
        if retiming.taken and not incumbent.find_retiming_fault(own, retiming.evaluation) and _is_signed(path):
            return retiming.evaluation, campaign.project.relative(path)
    return own, None


def open_disagreements(
    campaign: Campaign, best: StoredRound, invalid: tuple[Evaluation, ...]
) -> tuple[Evaluation, ...]:
    """Return the INVALID judgements of the open round that found the best version slow, and that no retiming
    answers; none while they are fewer than call for one.

    Raises:
        CorruptRecord: a retiming does not read.
    """
    answered = {seed for _, retiming in read_retimings(campaign, best) for seed in retiming.answers}
    slow = tuple(
        each
        for each in invalid
        if each.decision.reason.startswith(SLOWED) and each.provenance.seed not in answered
    )
    return slow if len(slow) >= gate_rules.RETIMING_AFTER else ()


def write_retiming(campaign: Campaign, best: StoredRound, retiming: Retiming) -> Path:
    """Write a retiming of a round's version, signed; return its file."""
    number = max((int(path.stem.rpartition("-")[2]) for path, _ in read_retimings(campaign, best)), default=0) + 1
    path = campaign.folder / RETIMINGS / f"{best.folder.name}-{number}.json"
    signed_file.write_signed_file(path, retiming.model_dump_json(indent=2).encode() + b"\n")
    return path


def read_retimings(campaign: Campaign, best: StoredRound) -> list[tuple[Path, Retiming]]:
    """Read the retimings of a round's version with their files, in order.

    Raises:
        CorruptRecord: one does not read, or belongs to another record.
    """
    stem, numbered = re.escape(best.folder.name), []
    for path in (campaign.folder / RETIMINGS).glob(f"{best.folder.name}-*.json"):
        if match := re.fullmatch(rf"{stem}-(\d+)", path.stem):
            numbered.append((int(match[1]), path, _read(path, best)))
    return [(path, retiming) for _, path, retiming in sorted(numbered, key=lambda each: each[0])]


def list_retiming_faults(campaign: Campaign, rounds: list[StoredRound]) -> list[Stale]:
    """List the retimings of a campaign that do not read, or are not what was signed."""
    findings = []
    logged = signing.logged_hashes() if (campaign.folder / RETIMINGS).is_dir() else {}
    for stored in rounds:
        try:
            retimings = read_retimings(campaign, stored)
        except CorruptRecord as error:
            findings.append(_finding(campaign, campaign.folder / RETIMINGS, str(error)))
            continue
        for path, _ in retimings:
            if fault := signed_file.file_signature_fault(path, logged):
                findings.append(_finding(campaign, path, fault))
    return findings


def _finding(campaign: Campaign, path: Path, fault: str) -> Stale:
    shown_path = campaign.project.relative(path)
    text = fault.replace(f"{campaign.project.root}/", "")
    message = text if shown_path in text else f"{shown_path} {text}; restore it from git, or remove it."
    return Stale(path=shown_path, message=message)


def _read(path: Path, best: StoredRound) -> Retiming:
    try:
        retiming = Retiming.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise corrupt_file(path, f"does not validate: {describe_error(error)}", f"rm {path}") from error
    if retiming.record_sha256 != best.sha256:
        raise corrupt_file(path, f"belongs to another record than {best.path} is now", f"rm {path}")
    return retiming


def _is_signed(path: Path) -> bool:
    """Return whether this user's key signed a retiming on this machine."""
    sha256 = files.file_sha256(path)
    return signed_file.has_signature(path) and signing.logged_hashes().get(str(path.resolve())) == sha256
