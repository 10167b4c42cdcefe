"""Campaigns in a temporary project: a small language of its own, valid records, and a scripted campaign."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from warpsmith import languages
from warpsmith import project as projects
from warpsmith.campaign import start
from warpsmith.campaign.history import manifests, store
from warpsmith.campaign.history.solutions import version_number
from warpsmith.campaign.rounds import due_phase, open_round, state
from warpsmith.campaign.rounds.lessons import PreparedLesson
from warpsmith.core.campaign import Direction, Lesson, Manifest, Plan, Selection
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.knowledge import SECTIONS
from warpsmith.core.profile import Profile
from warpsmith.knowledge import gate
from warpsmith.project import Project

TOY, OTHER = (
    SimpleNamespace(
        name=name,
        agent=f"{name}-specialist",
        suffix=".toy",
        targets=("cpu",),
        architectures=("cpu",),
        normalise=lambda source: "".join(source.split()),
    )
    for name in ("toy", "other")
)
INTERVAL = {"low": 1.0, "high": 1.3}
OP = "scale"


@pytest.fixture(autouse=True)
def toy_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two languages without a compiler; the real ones have tests of their own."""
    use_toys(monkeypatch)


def use_toys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Toy languages, no knowledge but the project's own, and no campaign in the environment."""
    known = {"toy": TOY, "other": OTHER}
    real = languages.get
    monkeypatch.setattr(languages, "get", lambda name: known[name] if name in known else real(name))
    monkeypatch.setattr(projects, "SHIPPED", Path("/nowhere"))
    monkeypatch.delenv(store.ENVIRONMENT, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


@pytest.fixture
def campaign(project: Project) -> store.Campaign:
    return start.start_campaign(project, OP, "cpu", "toy")


def change_manifest(folder: Path, old: str, new: str) -> None:
    """Give a campaign other settings, as if it had begun with them."""
    text = (folder / manifests.MANIFEST).read_text()
    assert old in text
    changed = Manifest.model_validate(yaml.safe_load(text.replace(old, new)))
    for name, content in manifests.manifest_files(changed).items():
        (folder / name).write_text(str(content))


def make_project(root: Path) -> Project:
    root.mkdir()
    made = Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")
    made.definition_path(OP).parent.mkdir(parents=True)
    made.definition_path(OP).write_text("# the reference\n")
    return made


def git(root: Path, *arguments: str) -> str:
    """Plain git as a user runs it, apart from this machine's own settings."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", "-C", str(root), *arguments], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_repository(root: Path) -> None:
    git(root, "init", "-q", "-b", "main", "--template=")
    git(root, "add", "-A")
    git(root, "-c", "user.name=u", "-c", "user.email=u@example.org", "commit", "-q", "-m", "begin")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def evaluation(
    path: Path, verdict: str = "ACCEPT", speedup: float | None = 1.2, share: float = 0.5, **changes: Any
) -> Evaluation:
    """A verdict on a version's file; `speedup` None is a baseline."""
    failed = verdict == "INVALID"
    comparison = {"against": "best", "other_seconds": 1.2, "speedup": speedup, "interval": INTERVAL, "pairs": 10}
    timing = {
        "seconds": 1.0, "samples": 10, "spread": 0.01, "clock": "parent", "parent_seconds": 1.0,
        "comparisons": [comparison] if speedup else [], "floor_seconds": share, "ceiling_share": share,
        "bandwidth": 1.0, "rate": 1.0,
    }  # fmt: skip
    passed = {
        "workload": "small", "status": "PASSED", "timing": timing,
        "correctness": {"calls": 1, "worst": 0.1, "relative_error": 0.1},
    }  # fmt: skip
    broken = {"workload": "small", "status": "MACHINE_FAILED", "message": "the clock stood still"}
    aggregate = {
        "against": "best", "speedup": speedup, "interval": INTERVAL, "worst_workload": "small", "worst": speedup,
    }  # fmt: skip
    machine = {"id": "cpu-0", "target": "cpu", "device": "a cpu", "processor": "a cpu", "libraries": {}}
    data = {
        "definition": OP, "language": path.parent.name, "version": path.stem, "target": "cpu",
        "provenance": {
            "solution": str(path), "solution_sha256": sha256(path), "definition_sha256": "0" * 64,
            "lab_sha256": "1" * 64, "gate_version": 1, "seed": version_number(path.stem), "machine": machine,
            "measured": "2026-11-21 10:00",
        },
        "steps": [], "results": [broken if failed else passed],
        "aggregates": [aggregate] if speedup and not failed else [],
        "decision": {"verdict": verdict, "reason": "as the numbers say"},
    }  # fmt: skip
    return Evaluation.model_validate(data | changes)


def profile(path: Path, **metrics: float) -> Profile:
    """A profile of a version's file."""
    return Profile.model_validate(
        {
            "version": path.stem, "language": path.parent.name, "solution_sha256": sha256(path),
            "evidence": "timings", "stages": [], "bottleneck": "memory", "root_cause": "It waits for memory.",
            "opportunities": [], "measured": "2026-11-21 10:00",
            "metrics": [{"name": name, "value": value} for name, value in ({"dram_pct": 40} | metrics).items()],
        }
    )  # fmt: skip


def plan(category: str = "memory", predicted: float = 0.2, **changes: Any) -> Plan:
    return Plan.model_validate(
        {
            "hypothesis": "Wider loads make it faster.", "category": category, "predicted_gain": predicted,
            "metric": "dram_pct", "expected_change": 15,
        }
        | changes
    )  # fmt: skip


def review(first: str = "memory", second: str = "compute") -> tuple[Direction, ...]:
    kinds = (first, second, second)
    return tuple(
        Direction.model_validate({"name": f"way {k}", "category": kind, "expected": "some"})
        for k, kind in enumerate(kinds)
    )


NOTHING = PreparedLesson(lesson=Lesson(action="nothing", reason="It was known already."))


ENTRY = """---
id: wider-loads
title: Load wider
kind: optimization
scope: shared
language: null
category: memory
applies_to: {targets: [cpu], ops: [any]}
metrics: [dram_pct]
---

""" + "\n\n".join(
    f"## {section}\n\n" + ("- dram_pct: up" if section == "Affected metrics" else "As the round showed.")
    for section in SECTIONS
)


class Script:
    """Plays every part of a campaign from what is on disk, so that it can go on after any crash.

    `verdicts` says what the lab will find, by version: `ACCEPT`, `ROLLBACK`, or `INVALID` for a first attempt
    that fails before an `ACCEPT`. The lesson of `teaches` adds a knowledge entry.
    """

    def __init__(
        self,
        verdicts: dict[str, str],
        said: Callable[[str], None] = lambda _: None,
        teaches: str | None = None,
    ) -> None:
        self.verdicts = verdicts
        self.said = said
        self.teaches = teaches

    def run(self, campaign: store.Campaign) -> None:
        while (step := due_phase.find_due_phase(state.read_state(campaign))).phase != "REPORT":
            self.do(campaign, step)

    def round(self, campaign: store.Campaign) -> None:
        """Play up to the end of the open round."""
        number = len(campaign.records())
        while len(campaign.records()) == number:
            self.do(campaign, due_phase.find_due_phase(state.read_state(campaign)))

    def until(self, campaign: store.Campaign, name: str) -> None:
        """Play until a step is due."""
        while (step := due_phase.find_due_phase(state.read_state(campaign))).step != name:
            self.do(campaign, step)

    def do(self, campaign: store.Campaign, step: due_phase.DuePhase) -> None:
        getattr(self, step.step)(campaign, state.read_state(campaign))

    def profile(self, campaign: store.Campaign, now: state.CampaignState) -> None:
        open_round.record_profile(campaign, profile(open_round.version_to_profile(campaign)[1].path))

    def selection(self, campaign: store.Campaign, now: state.CampaignState) -> None:
        open_round.record_selection(campaign, Selection(language="toy", because="It is simple."))

    def plan(self, campaign: store.Campaign, now: state.CampaignState) -> None:
        count = len(now.rounds)
        category = ("memory", "compute", "latency", "launch")[count % 4]
        other = "fusion" if category != "fusion" else "memory"
        open_round.record_plan(campaign, plan(category, review=review(category, other)))

    def design(self, campaign: store.Campaign, now: state.CampaignState) -> None:
        assert now.solution is not None
        now.solution.path.parent.mkdir(parents=True, exist_ok=True)
        now.solution.path.write_text(f"multiply by {now.solution.number}\n")

    def verdict(self, campaign: store.Campaign, now: state.CampaignState) -> None:
        path = open_round.version_to_judge(campaign).path
        verdict = self.verdicts[f"v{version_number(path.stem)}"]
        if verdict == "INVALID" and now.open.invalid:
            verdict = "ACCEPT"
        open_round.record_verdict(campaign, evaluation(path, verdict, 1.2 if now.best else None))
        self.said(f"{path.stem} {verdict}")

    def profile_after(self, campaign: store.Campaign, now: state.CampaignState) -> None:
        open_round.record_profile(campaign, profile(open_round.version_to_profile(campaign)[1].path, dram_pct=50))

    def outcome(self, campaign: store.Campaign, now: state.CampaignState) -> None:
        open_round.record_outcome(campaign)

    def lesson(self, campaign: store.Campaign, now: state.CampaignState) -> None:
        learned, place = NOTHING, open_round.planned_record_path(campaign)
        assert now.solution is not None
        if now.solution.path.stem == self.teaches:
            prepared = gate.prepare_add(campaign.project, ENTRY, place, "2026-11-21 10:00")
            learned = PreparedLesson.of(prepared, "It was not written down.", None)
        kept = open_round.close_round(campaign, learned)
        self.said(f"round {kept.record.round}")

    def close(self, campaign: store.Campaign, now: state.CampaignState) -> None:
        from warpsmith.campaign.rounds.resume import resume_campaign

        resume_campaign(campaign)
