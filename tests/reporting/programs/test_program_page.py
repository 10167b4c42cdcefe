"""Page of a program's trials: goal, checklists, throughput and the share of the limit."""

from __future__ import annotations

from typing import Any

from warpsmith.core.trial import TrialRecord, TrialsTotal
from warpsmith.program.analysis.throughput import StepLimit, StepWork
from warpsmith.program.trials.goal import ProgramGoal
from warpsmith.reporting.programs.program_trials import PageContext, program_page

COMPARED = {
    "against": "original", "other_seconds": 0.2, "speedup": 1.9, "interval": {"low": 1.8, "high": 2.1}, "pairs": 5
}  # fmt: skip


def timing(seconds: float) -> dict[str, Any]:
    return {"seconds": seconds, "spread": 0, "batches": 5, "steps": 1, "first_seconds": 1, "warm_up": 1}


def record(verdict: str = "KEPT", **changes: Any) -> TrialRecord:
    checks = [
        {"name": "float32", "state": "ok", "evidence": "four products"},
        {"name": "bf16", "state": "unknown", "evidence": "no page"},
    ]
    plan = {
        "entry": "fused", "rules": {"specialist": "cuda_graph"}, "others": {}, "device": "cpu",
        "subject": {"name": "train", "path": "train.py", "step": "step"},
        "files": [{"path": "train.py", "before": "0" * 64, "after": "1" * 64}], "opened": "2026-11-21 11:00",
        "prerequisites": {"entry": "fused", "checks": checks}, "baseline": timing(0.2),
    }  # fmt: skip
    numerics = {
        "precision": "same", "steps": 8, "seed": 1,
        "checks": [{"name": "values", "worst": 0, "bound": 1, "noise": 0}],
    }  # fmt: skip
    return TrialRecord.model_validate(
        {
            "plan": plan, "decision": {"verdict": verdict, "reason": "faster: 1.9x"}, "comparisons": [COMPARED],
            "numerics": numerics, "original": timing(0.2), "edited": timing(0.1), "closed": "2026-11-21 12:00",
            **changes,
        }
    )  # fmt: skip


KEPT = record()
TOTAL = TrialsTotal.model_validate(
    {
        "files": [file.model_dump() for file in KEPT.plan.files], "comparison": COMPARED, "original": timing(0.2),
        "present": timing(0.1), "device": "cpu", "measured": "2026-11-21 12:00",
    }
)  # fmt: skip
SCALE = PageContext(
    StepWork(count=800, unit="tokens"),
    StepLimit(flops=2e9, seconds=0.05, source="h200: peak"),
    ProgramGoal(speedup=2),
)


def page(record: TrialRecord = KEPT, scale: PageContext = SCALE) -> list[str]:
    return program_page("train", {1: record}, TOTAL, KEPT.plan.files, context=scale).splitlines()


def test_prerequisites_are_a_checklist_with_what_does_not_hold() -> None:
    lines = page()
    assert "- [x] `float32`: four products" in lines
    assert "- [ ] `bf16`, unknown: no page" in lines
    assert any("`cuda_graph`" in line for line in lines if line.startswith("- Specialist"))


def test_throughput_and_share_of_the_limit_are_told_before_and_after() -> None:
    lines = page()
    rows = [line for line in lines if line.startswith("| Throughput")]
    assert len(rows) == 2, "of the trial and of the total"
    assert "4,000 tokens per second" in rows[0]
    assert "8,000 tokens per second" in rows[0]
    assert rows[0].endswith("| +90.0% |"), "the paired speedup, and not the quotient of the medians"
    assert "| Share of the limit | 25.0% | 50.0% | +25.0 points |" in lines
    unknown = page(scale=PageContext())
    assert any(line.startswith("| Share of the limit | unknown | unknown |") for line in unknown)
    assert not any("tokens" in line for line in unknown)


def test_a_goal_is_achieved_when_the_whole_interval_reaches_it() -> None:
    def goal(speedup: float) -> str:
        scale = PageContext(goal=ProgramGoal(speedup=speedup))
        return next(line for line in page(scale=scale) if line.startswith("**Goal**"))

    assert goal(1.8).endswith(": achieved")
    assert goal(1.9).endswith("not achieved")
    assert "--goal" in next(line for line in page(scale=PageContext()) if line.startswith("**Goal**"))


def test_a_trials_result_says_what_happened_to_the_edit() -> None:
    assert any(line.startswith("**Result**: SUCCESS: faster") for line in page())
    restored = record("RESTORED", decision={"verdict": "RESTORED", "reason": "slower: 0.9x"})
    assert any(line.startswith("**Result**: ROLLED BACK: slower") for line in page(restored))
