"""Masked rounds: a partial restart hides half of the rounds from planning, and can be undone."""

from __future__ import annotations

import random
from collections.abc import Sequence

from warpsmith import files
from warpsmith.campaign.history import records
from warpsmith.campaign.history.store import MASKS, Campaign
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Masks, RoundRecord
from warpsmith.errors import Misuse
from warpsmith.ledger.store import write_model


def mask_rounds(campaign: Campaign, seed: int) -> Masks:
    """Mask half of the maskable rounds, rounded down, drawn with `seed`; an earlier mask is replaced.

    The baseline and the best version's round are never masked.

    Raises:
        Misuse: fewer than two rounds may be masked.
    """
    choices = maskable_rounds(campaign.records())
    if len(choices) < 2:
        raise Misuse(
            f"{campaign.name} has {len(choices)} rounds other than the baseline and the best;"
            " a restart needs two: continue with `warpsmith next`."
        )
    drawn = random.Random(seed).sample(choices, len(choices) // 2)
    masks = Masks(seed=seed, masked=tuple(sorted(drawn)), at=this_minute())
    write_model(campaign.folder / MASKS, masks)
    return masks


def mask_numbered_rounds(campaign: Campaign, numbers: Sequence[int]) -> Masks:
    """Mask rounds by their numbers, in addition to those that are masked.

    Raises:
        Misuse: a number is no closed round, the baseline, or the best version's round.
    """
    choices = maskable_rounds(campaign.records())
    refused = [str(number) for number in numbers if number not in choices]
    if refused:
        names = ", ".join(map(str, choices)) or "none"
        raise Misuse(
            f"Round {', '.join(refused)} of {campaign.name} cannot be masked: it is not closed, a baseline, or the"
            f" best version's; these can: {names}."
        )
    earlier = campaign.masks()
    masked = {*numbers, *(earlier.masked if earlier else ())}
    masks = Masks(seed=None, masked=tuple(sorted(masked)), at=this_minute())
    write_model(campaign.folder / MASKS, masks)
    return masks


def unmask_rounds(campaign: Campaign) -> bool:
    """Unmask every round; return whether there was a mask."""
    path = campaign.folder / MASKS
    masked = path.exists()
    path.unlink(missing_ok=True)
    files.sync_folder(campaign.folder)
    return masked


def maskable_rounds(rounds: Sequence[RoundRecord]) -> list[int]:
    """List the numbers of the rounds that a restart may mask."""
    best = records.best_round(rounds)
    return [r.round for r in rounds if r is not best and r.plan.category != "baseline"]


def visible_rounds(rounds: Sequence[RoundRecord], masks: Masks | None) -> list[RoundRecord]:
    """List the rounds that planning may see; the baseline and the best version's round are always among them."""
    hidden = set(masks.masked) & set(maskable_rounds(rounds)) if masks else set()
    return [record for record in rounds if record.round not in hidden]
