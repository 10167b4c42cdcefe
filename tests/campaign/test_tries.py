"""Logs of tries: a round's record says how many variants its version was chosen from."""

from __future__ import annotations

import os
from pathlib import Path

from campaign_kit import Script

from warpsmith.campaign import tries
from warpsmith.campaign.history import store

LOG = """\
{"variant": "a.toy T=1", "state": "timed", "stage": 0}
{"variant": "a.toy T=1", "state": "timed", "stage": 1}
{"variant": "a.toy T=2", "state": "timed"}
{"variant": "a.toy T=3", "state": "wrong"}
{"variant": "a.toy T=4", "state": "correct"}
[1]
{"variant": "a.toy T=5", "sta"""


def log(campaign: store.Campaign, name: str, minutes: float = 0.0) -> None:
    """Write a log that ended some minutes after now."""
    path = tries.make_log_path(campaign.project, "scale", "cpu").with_name(name)
    path.write_text(LOG)
    stat = path.stat()
    os.utime(path, (stat.st_atime, stat.st_mtime + 60 * minutes))


def test_variants_are_counted_once_a_log_and_only_of_this_operator(campaign: store.Campaign) -> None:
    for name in ("scale-cpu-20260101-000000.jsonl", "scale-cpu-20260101-000001.jsonl"):
        log(campaign, name)
    for name in ("scale-cpu-2-20260101-000000.jsonl", "scale_up-cpu-20260101-000000.jsonl", "scale-cpu.jsonl"):
        log(campaign, name)
    now = Path(campaign.folder).stat().st_mtime
    assert tries.count_variants(campaign.project, "scale", "cpu", now - 600, now + 600) == 6
    assert tries.count_variants(campaign.project, "scale", "cpu", now + 600, now + 700) == 0
    assert tries.count_variants(campaign.project, "scale", "h200", now - 600, now + 600) == 0


def test_the_record_has_the_tries_of_its_round(campaign: store.Campaign) -> None:
    log(campaign, "scale-cpu-20260101-000000.jsonl")
    log(campaign, "scale-cpu-20260101-000001.jsonl", minutes=-600)  # before the campaign
    script = Script({"v1": "ACCEPT", "v2": "ROLLBACK"})
    script.round(campaign)
    script.round(campaign)
    first, second = campaign.records()
    assert (first.tried, second.tried) == (3, 0)
    assert '"tried"' not in (campaign.rounds / "002" / "record.json").read_text()
