"""Final race: the best version against the reference and every peer on every workload, in `final.json`."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from warpsmith.campaign.history.store import Campaign
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.text import describe_error
from warpsmith.ledger.store import corrupt_file, write_model

NAME = "final.json"
"""Name of its file, in the campaign's folder."""


def final_race_path(campaign: Campaign) -> Path:
    """File of the final race, next to the manifest."""
    return campaign.folder / NAME


def write_final_race(campaign: Campaign, evaluation: Evaluation) -> None:
    """Write the final race; it replaces an earlier one."""
    write_model(final_race_path(campaign), evaluation)


def read_final_race(campaign: Campaign, best: RoundRecord | None) -> Evaluation | None:
    """Read the final race; None if it was not run, or ran with another version than the best one.

    Raises:
        CorruptRecord: the file does not validate.
    """
    path = final_race_path(campaign)
    try:
        race = Evaluation.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValidationError as error:
        repair = f"warpsmith race --final --campaign {campaign.name}"
        raise corrupt_file(path, f"does not validate: {describe_error(error)}", repair) from error
    current = best is not None and race.provenance.solution_sha256 == best.snapshot_sha256
    return race if current else None
