"""Closing of a campaign before its stop condition: it is abandoned, or another one mends its definition."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from warpsmith.campaign.history import store
from warpsmith.campaign.history.store import CLOSED, MANIFEST, Campaign
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Closure
from warpsmith.core.text import describe_error
from warpsmith.errors import CorruptRecord, Misuse
from warpsmith.ledger.store import write_model
from warpsmith.project import Project


def close_campaign(campaign: Campaign, reason: str, amended_by: str | None = None) -> Closure:
    """Close a campaign for good; its records, its open round and its versions stay. The caller holds the campaign.

    Raises:
        Misuse: it is closed already, or the reason is too short.
    """
    refuse_closed(campaign)
    closure = parse_closure(reason, amended_by)
    write_model(campaign.folder / CLOSED, closure)
    return closure


def parse_closure(reason: str, amended_by: str | None = None) -> Closure:
    """Build a closure of this minute; raises Misuse if the reason is too short."""
    try:
        return Closure(reason=reason.strip(), amended_by=amended_by, at=this_minute())
    except ValidationError as error:
        raise Misuse(f"The campaign stays open: {describe_error(error)}.") from error


def refuse_closed(campaign: Campaign) -> None:
    """Raise Misuse if a campaign is closed."""
    if closure := campaign.closure():
        raise Misuse(f"{campaign.name} was {closure.text}; `warpsmith start` begins another campaign.")


def is_amended(record: Path) -> bool:
    """Return True if a record belongs to a campaign whose definition was mended since, and which says so."""
    folder = next((folder for folder in record.parents if (folder / MANIFEST).is_file()), None)
    try:
        closure = Closure.model_validate_json((folder / CLOSED).read_bytes()) if folder else None
    except (OSError, ValidationError):
        return False
    return closure is not None and closure.amended_by is not None


def list_open_campaigns(project: Project, op: str | None = None, target: str | None = None) -> list[Campaign]:
    """List the campaigns, of an operator, that are neither closed nor finished; one that does not read is open."""
    return [
        campaign
        for campaign in store.list_campaigns(project)
        if op in (None, campaign.manifest.target_op)
        and target in (None, campaign.manifest.target)
        and not _is_over(campaign)
    ]


def _is_over(campaign: Campaign) -> bool:
    try:
        return store.is_finished(campaign)
    except CorruptRecord:
        return False
