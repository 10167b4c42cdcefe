"""Masked memory: a partial restart leaves half of the rounds out of planning, reversibly."""

from __future__ import annotations

import random
from collections.abc import Sequence

from warpsmith import files
from warpsmith.campaign.history import records
from warpsmith.campaign.history.store import MASKS, Campaign
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Masks, RoundRecord
from warpsmith.errors import Misuse


def mask_rounds(campaign: Campaign, seed: int) -> Masks:
    """Mask half of the maskable rounds, rounded down, drawn from `seed`; an earlier mask is replaced.

    The baseline and the best version's round are never masked.

    Raises:
        Misuse: there are fewer than two rounds that may be masked.
    """
    choices = maskable_rounds(campaign.records())
    if len(choices) < 2:
        raise Misuse(
            f"{campaign.name} has {len(choices)} rounds beside the baseline and the best;"
            " a restart needs two: go on with `warpsmith next`."
        )
    drawn = random.Random(seed).sample(choices, len(choices) // 2)
    masks = Masks(seed=seed, masked=tuple(sorted(drawn)), at=this_minute())
    files.write_file(campaign.folder / MASKS, masks.model_dump_json(indent=2) + "\n")
    return masks


def unmask_rounds(campaign: Campaign) -> bool:
    """Bring every round back; returns whether any was masked."""
    path = campaign.folder / MASKS
    there = path.exists()
    path.unlink(missing_ok=True)
    files.sync_folder(campaign.folder)
    return there


def maskable_rounds(rounds: Sequence[RoundRecord]) -> list[int]:
    """Numbers of the rounds that a restart may mask."""
    best = records.best_round(rounds)
    return [r.round for r in rounds if r is not best and r.plan.category != "baseline"]


def visible_rounds(rounds: Sequence[RoundRecord], masks: Masks | None) -> list[RoundRecord]:
    """The rounds that planning may see: all but the masked ones, never without baseline and best."""
    hidden = set(masks.masked) & set(maskable_rounds(rounds)) if masks else set()
    return [record for record in rounds if record.round not in hidden]
