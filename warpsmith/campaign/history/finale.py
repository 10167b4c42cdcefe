"""The final race: the best version against the reference and every peer on every workload, `final.json`."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.problem import problem
from warpsmith.errors import CorruptRecord

_NAME = "final.json"


def path(campaign: Campaign) -> Path:
    """Its file, beside the manifest."""
    return campaign.folder / _NAME


def write(campaign: Campaign, evaluation: Evaluation) -> None:
    """Keep the race, in place of an earlier one."""
    files.write(path(campaign), evaluation.model_dump_json(indent=2) + "\n")


def read(campaign: Campaign, best: RoundRecord | None) -> Evaluation | None:
    """The race of the best version, None where it was not run, or not with this one.

    Raises:
        CorruptRecord: the file does not validate.
    """
    try:
        found = Evaluation.model_validate_json(path(campaign).read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        raise CorruptRecord(
            f"{path(campaign)} does not validate: {problem(error)}; remove it and run"
            f" `warpsmith bench --campaign {campaign.name}`."
        ) from error
    raced = best is not None and found.provenance.solution_sha256 == best.snapshot_sha256
    return found if raced else None
