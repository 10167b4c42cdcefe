"""A project with knowledge in it, and a round's record for it to cite."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from warpsmith import project as projects
from warpsmith.core.campaign import RoundRecord
from warpsmith.core.knowledge import SECTIONS
from warpsmith.project import Project

URL = "https://example.org/report"

TEXTS = dict.fromkeys(SECTIONS, "Words.") | {
    "When to apply": "- Rows are long\n- and few",
    "Affected metrics": "- waves: up\n- time_us: down",
    "Implementation": "```python\n# comment\n## When to apply\n```",
    "Evidence": "Source type: external\n\n| Config | Before | After | Change | Source |\n"
    f"| --- | --- | --- | --- | --- |\n| decode | 20 us | 10 us | 2x | [report]({URL}) |",
}

HEAD = """\
---
id: {id}
title: Split the rows
kind: optimization
scope: shared
language: null
category: occupancy
applies_to: {{targets: [gpu], ops: [any]}}
metrics: [waves, time_us]
evidence:
  - {{source: external, citation: "A report", url: "{url}"}}
status: active
---
"""

BARE = """\
---
id: split
title: Split the rows
kind: optimization
scope: shared
language: null
category: occupancy
applies_to: {targets: [gpu], ops: [any]}
metrics: [waves]
---
## When to apply
Below 50 % occupancy.
## Mechanism
Words.
## Affected metrics
waves: up
## Implementation
Words.
## Evidence
## Generalization
Words.
## Pitfalls
- One.
## Interactions
None.
"""

SYMPTOMS = """\
symptoms:
- title: Rows are slow
  also: [slow columns, waves at 3, l2 misses too]
  means: Words.
  shows: {{dram_pct: low}}
  optimizations: {tries}
  anti_patterns: {rules_out}
"""

HARDWARE = """\
---
id: h1
name: A GPU
kind: gpu
vendor: V
architecture: A
isa: any
figures:
  memory_bandwidth: {value: 4.8, unit: TB/s, source: sheet}
sources:
  sheet: {title: "Sheet", url: "https://example.org/sheet", read: 2026-11-21}
measured: []
---
# A GPU
"""

Page = Callable[..., str]
Put = Callable[..., Path]


@pytest.fixture
def text() -> Page:
    """Text of an entry; keyword arguments replace front matter values, `sections` replaces section texts."""

    def make(id: str = "split", sections: dict[str, str] | None = None, **matter: str) -> str:
        head = HEAD.format(id=id, url=URL)
        for key, value in matter.items():
            head = re.sub(rf"^{key}:.*$", f"{key}: {value}", head, flags=re.MULTILINE)
        body = "".join(f"## {name}\n{text}\n\n" for name, text in (TEXTS | (sections or {})).items())
        return head + body

    return make


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project, with an empty shipped layer beside it."""
    root = tmp_path / "mine"
    root.mkdir()
    (root / "warpsmith.toml").write_text("")
    monkeypatch.setattr(projects, "SHIPPED", tmp_path / "shipped")
    return projects.find_project(root)


@pytest.fixture
def shipped(project: Project) -> Project:
    """The project that Warpsmith ships from, so that `put` can write there."""
    root = project.root.parent / "shipped"
    return replace(project, root=root, knowledge=root / "docs" / "knowledge", devlog=root / "devlog")


@pytest.fixture
def put(project: Project, text: Page) -> Put:
    """Write an entry in its place; `into` is the project whose layer it goes to."""

    def write(
        id: str = "split", into: Project = project, folder: str = "optimizations", **changes: object
    ) -> Path:
        path = into.knowledge / folder / f"{id}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(changes.get("raw") or text(id, **changes)))
        return path

    return write


@pytest.fixture
def bare() -> str:
    """An entry as an agent hands it to LEARN: no status, no evidence."""
    return BARE


@pytest.fixture
def put_hardware(project: Project) -> Put:
    """Write the page of the target h1, with one text replaced."""

    def write(old: str = "", new: str = "") -> Path:
        path = project.knowledge / "hardware" / "h1.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HARDWARE.replace(old, new) if old else HARDWARE)
        return path

    return write


@pytest.fixture
def put_symptoms(project: Project) -> Put:
    """Write a table of one symptom that leads to these entries, with one text replaced."""

    def write(tries: str, rules_out: str, into: Project = project, old: str = "", new: str = "") -> Path:
        path = into.knowledge / "symptoms.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SYMPTOMS.format(tries=tries, rules_out=rules_out).replace(old or "\0", new))
        return path

    return write


@pytest.fixture
def put_tip(project: Project) -> Put:
    """Write a page of tips for rmsnorm in cpp on h1."""

    def write() -> Path:
        path = project.knowledge / "experience" / "h1" / "rmsnorm" / "cpp.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# Tips\n")
        return path

    return write


@pytest.fixture(scope="session")
def record() -> RoundRecord:
    """A second round that was accepted: twice as fast on one workload."""
    machine = {"id": "h1-a", "target": "h1", "device": "GPU | one", "processor": "p", "libraries": {}}
    interval = {"low": 1.9, "high": 2.1}
    sha = "a" * 64
    return RoundRecord.model_validate(
        {
            "campaign": "c",
            "round": 2,
            "solution": "triton/v2",
            "parent": "triton/v1",
            "snapshot": "v2.py",
            "snapshot_sha256": sha,
            "selection": {"language": "triton", "because": "it is enough here"},
            "plan": {
                "hypothesis": "splitting fills the device",
                "category": "occupancy",
                "predicted_gain": 0.5,
                "metric": "waves",
                "expected_change": 1,
            },
            "evaluation": {
                "definition": "rmsnorm",
                "language": "triton",
                "version": "v2",
                "target": "h1",
                "provenance": {
                    "solution": "kernels/rmsnorm/triton/v2.py",
                    "solution_sha256": sha,
                    "definition_sha256": sha,
                    "lab_sha256": sha,
                    "gate_version": 1,
                    "seed": 1,
                    "machine": machine,
                    "measured": "2026-11-21 10:00",
                },
                "steps": [],
                "results": [
                    {
                        "workload": "w",
                        "status": "PASSED",
                        "correctness": {"calls": 1, "worst": 0.1, "relative_error": 0.0},
                        "timing": {
                            "seconds": 1e-5,
                            "samples": 10,
                            "spread": 0.01,
                            "clock": "parent",
                            "parent_seconds": 1e-5,
                            "comparisons": [
                                {
                                    "against": "best",
                                    "other_seconds": 2e-5,
                                    "speedup": 2,
                                    "interval": interval,
                                    "pairs": 10,
                                }
                            ],
                            "floor_seconds": 5e-6,
                            "ceiling_share": 0.5,
                            "bandwidth": 1e9,
                            "rate": 1e9,
                        },
                    }
                ],
                "aggregates": [
                    {"against": "best", "speedup": 2, "interval": interval, "worst_workload": "w", "worst": 2}
                ],
                "decision": {"verdict": "ACCEPT", "reason": "faster"},
            },
            "outcome": {
                "verdict": "ACCEPT",
                "best": "triton/v2",
                "gain": 1.0,
                "predicted_gain": 0.5,
                "movement": None,
                "stop": None,
                "stagnation": {
                    "rollbacks_in_a_row": 0,
                    "not_improving": 0,
                    "review": False,
                    "change_forced": False,
                },
            },
            "lesson": {"action": "add", "entry": "split"},
            "opened": "2026-11-21 09:00",
            "closed": "2026-11-21 10:05",
            "previous_sha256": None,
        }
    )
