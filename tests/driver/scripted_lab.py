"""A lab that says what it is told to, over the factories of the campaign's tests."""

from __future__ import annotations

from typing import Any

import campaign_kit as toys

from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import open_round, state
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.profile import Profile


class Lab:
    """What the lab will find by version: verdict, share of the ceiling, speedup; `ACCEPT`, 0.5, 1.2 by default."""

    def __init__(self) -> None:
        self.verdicts: dict[str, str] = {}
        self.shares: dict[str, float] = {}
        self.speedups: dict[str, float] = {}
        self.judged: list[str] = []
        self.profiled: list[str] = []

    def verify(self, campaign: Campaign, tell: Any = None) -> Evaluation:
        path = open_round.version_to_judge(campaign).path
        speedup = self.speedups.get(path.stem, 1.2) if state.read_state(campaign).best else None
        self.judged.append(path.stem)
        verdict = self.verdicts.get(path.stem, "ACCEPT")
        changes: dict[str, Any] = {}
        if path.stem in self.speedups:
            interval = {"low": 0.99 * speedup, "high": 1.01 * speedup}
            whole = {"against": "best", "speedup": speedup, "worst_workload": "small", "worst": speedup}
            changes = {"aggregates": [whole | {"interval": interval}]}
        if "typo" in path.read_text():
            verdict, speedup = "ROLLBACK", None
            changes = {"results": [{"workload": "*", "status": "COMPILE_ERROR", "message": "a typo"}]}
        found: Evaluation = toys.evaluation(path, verdict, speedup, self.shares.get(path.stem, 0.5), **changes)
        open_round.record_verdict(campaign, found)
        return found

    def profile(self, campaign: Campaign, tell: Any = None) -> Profile:
        name, solution = open_round.version_to_profile(campaign)
        self.profiled.append(f"{name} {solution.path.stem}")
        found: Profile = toys.profile(solution.path)
        stage = {"name": "small", "seconds": 1e-3, "dram_pct": 40.0, "bottleneck": "memory", "issue": "it waits"}
        found = Profile.model_validate(found.model_dump() | {"stages": [stage]})
        open_round.record_profile(campaign, found)
        return found
