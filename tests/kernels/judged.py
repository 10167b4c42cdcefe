"""What the records say of the versions that ship."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from warpsmith.core.evaluation import Verdict

DEVLOG = Path(__file__).parents[2] / "devlog"


@functools.cache
def rolled_back() -> set[str]:
    """Hashes of the versions that every record of theirs turned away, or that a review struck."""
    accepted: dict[str, bool] = {}
    campaigns = (path.parent for path in DEVLOG.glob("*/*/manifest.yaml"))
    for path in (path for campaign in campaigns for path in campaign.glob("rounds/*/record.json")):
        record = json.loads(path.read_bytes())
        verdict = Verdict(record["evaluation"]["decision"]["verdict"])
        known = accepted.get(record["snapshot_sha256"], False)
        stands = verdict.accepted and not path.with_name("struck.json").exists()
        accepted[record["snapshot_sha256"]] = known or stands
    return {digest for digest, once in accepted.items() if not once}
