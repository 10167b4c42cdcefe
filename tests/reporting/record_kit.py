"""Small valid records, and campaigns of them on disk: a kit for the tests of pages and of the site."""

from __future__ import annotations

import hashlib
from typing import Any

import yaml
from markdown_it import MarkdownIt

from warpsmith import files
from warpsmith.campaign.history import store
from warpsmith.core.campaign import Manifest, RoundRecord, Strike
from warpsmith.core.evaluation import GATE_VERSION, Evaluation
from warpsmith.core.evidence import Rerun
from warpsmith.core.race import RaceRecord
from warpsmith.project import Project

HOSTILE = (
    "a | b `c` <script>alert(1)</script> & **bold**\n| x | y |\r\n# heading\n```\n"
    "\x1b[31mred\x00\u202e [link](http://e.org) \\"
)


def comparison(against: str, speedup: float) -> dict[str, Any]:
    interval = {"low": speedup - 0.04, "high": speedup + 0.04}
    return {"against": against, "other_seconds": 1e-3, "speedup": speedup, "interval": interval, "pairs": 10}


def aggregate(against: str, speedup: float) -> dict[str, Any]:
    interval = {"low": speedup - 0.04, "high": speedup + 0.04}
    worst = {"worst_workload": "64x64", "worst": speedup - 0.1}
    return {"against": against, "speedup": speedup, "interval": interval, **worst}


def passed(workload: str = "64x64", share: float = 0.5, **sides: float) -> dict[str, Any]:
    timing = {
        "seconds": 12.3e-6, "samples": 10, "spread": 0.01, "clock": "parent", "parent_seconds": 12.4e-6,
        "comparisons": [comparison(side, speedup) for side, speedup in sides.items()],
        "floor_seconds": 12.3e-6 * share, "ceiling_share": share,
        "bandwidth": 3.21e12 * share, "rate": 1.6e12 * share,
    }  # fmt: skip
    correctness = {"calls": 3, "worst": 0.25, "relative_error": 1e-7}
    return {"workload": workload, "status": "PASSED", "timing": timing, "correctness": correctness}


def failed(message: str = "expected 1, found 2") -> dict[str, Any]:
    return {
        "workload": "64x64", "status": "INCORRECT_NUMERICAL", "message": message,
        "correctness": {"calls": 1, "worst": 3e12, "relative_error": 1.0, "detail": "y[0]"},
    }  # fmt: skip


def evaluation(version: str = "v1", verdict: str = "ACCEPT", **changes: Any) -> Evaluation:
    machine = {
        "id": "m-0", "target": "h200", "device": "Some Device", "driver": "580.1", "clocks": {"sm": 1980},
        "processor": "a cpu", "libraries": {"torch": "2.13", "python": "3.11"},
    }  # fmt: skip
    provenance = {
        "solution": f"kernels/norm/triton/{version}.py", "solution_sha256": "a" * 64,
        "definition_sha256": "b" * 64, "lab_sha256": "c" * 64, "gate_version": GATE_VERSION,
        "seed": int(version[1:]), "machine": machine, "measured": "2026-11-21 10:00",
    }  # fmt: skip
    steps = [
        {"name": "lint", "state": "noted", "notes": ["a stream"], "seconds": 0.01},
        {"name": "build", "state": "skipped", "notes": ["no compiler"], "seconds": 0.0},
        {"name": "correctness", "state": "passed", "seconds": 2.0},
    ]
    data = {
        "definition": "norm", "language": "triton", "version": version, "target": "h200",
        "provenance": provenance, "steps": steps, "results": [passed()],
        "noise": {"floor": 0.012, "trials": 20, "how": "the reference with itself"},
        "decision": {"verdict": verdict, "reason": "as the numbers say"},
    }  # fmt: skip
    return Evaluation.model_validate(data | changes)


BUSY = [
    {"name": "files", "ran": True, "how": "Landlock 7"},
    {"name": "machine idle", "ran": False, "how": "other processes keep 2.0 cores busy"},
    {"name": "sanitizers", "ran": False, "how": "compute-sanitizer needs an NVIDIA GPU"},
]
"""Protections of a judgement on a busy CPU."""


def energy(best: bool = True) -> dict[str, Any]:
    """At two workloads; without a best version before, at the baseline."""
    read = {"joules": 0.0453, "readings": 6}
    if best:
        read |= {"best_joules": 0.0544, "saving": 1.2, "interval": {"low": 1.18, "high": 1.22}}
    mean = {"aggregate": aggregate("best", 1.2), "floor": 0.011} if best else {}
    return {"workloads": {"64x64": read, "128x64": read}, **mean}


def profile(version: str = "v1", **changes: Any) -> dict[str, Any]:
    return {
        "version": version, "language": "triton", "solution_sha256": "a" * 64, "evidence": "timings", "stages": [],
        "bottleneck": "memory", "root_cause": "It waits for memory.", "opportunities": [],
        "metrics": [{"name": "dram_pct", "value": 40}], "without": "Counters would show the stalls.",
        "measured": "2026-11-21 10:00",
    } | changes  # fmt: skip


def record(number: int = 1, judged: Evaluation | None = None, **changes: Any) -> RoundRecord:
    judged = judged or evaluation(f"v{number}")
    plan = {
        "hypothesis": "Wider loads make it faster.", "category": "memory" if number > 1 else "baseline",
        "entries": ["wide-loads"], "predicted_gain": 0.2, "metric": "dram_pct", "expected_change": 15,
    }  # fmt: skip
    stagnation = {"rollbacks_in_a_row": 0, "not_improving": 0, "review": False, "change_forced": False}
    outcome = {
        "verdict": judged.decision.verdict, "best": None, "gain": 0.11 if number > 1 else None,
        "predicted_gain": 0.2, "movement": None, "stop": None, "stagnation": stagnation,
    }  # fmt: skip
    data = {
        "campaign": "norm-triton-h200-20261121", "round": number, "solution": f"triton/v{number}",
        "parent": f"triton/v{number - 1}" if number > 1 else None, "snapshot": f"v{number}.py",
        "snapshot_sha256": hashlib.sha256(b"code").hexdigest(),
        "selection": {"language": "triton", "because": "tiles are enough here"}, "plan": plan,
        "evaluation": judged, "outcome": outcome,
        "lesson": {"action": "nothing", "reason": "It was known already."},
        "opened": "2026-11-21 10:00", "closed": f"2026-11-21 10:{20 + number}", "previous_sha256": None,
    }  # fmt: skip
    return RoundRecord.model_validate(data | changes)


def manifest(**changes: Any) -> Manifest:
    data = {
        "campaign": "norm-triton-h200-20261121", "target_op": "norm", "target": "h200",
        "target_language": "triton", "created": "2026-11-21 09:59",
        "figures": {"bandwidth": "4.2 TB/s <- docs/knowledge/hardware/h200.md:12"},
    }  # fmt: skip
    return Manifest.model_validate(data | changes)


def campaign_of_three() -> list[RoundRecord]:
    """A baseline, a failure, and a better version that learned something."""
    tip = {"context": "Rows.", "signal": "Low dram_pct.", "takeaway": "Load wide.", "applicability": "Long rows."}
    sides = {"reference": 1.83, "torch.compile": 1.10, "best": 1.11}
    return [
        record(1, evaluation("v1", results=[passed(reference=1.2)], aggregates=[aggregate("reference", 1.2)])),
        record(2, evaluation("v2", "ROLLBACK", results=[failed()]), outcome=lost()),
        record(
            3,
            evaluation(
                "v3",
                results=[passed(share=0.8, **sides), passed("128x64", 0.7, **sides)],
                aggregates=[aggregate(side, speedup) for side, speedup in sides.items()],
            ),
            profile=profile("v1"),
            profile_after=profile("v3"),
            lesson={"action": "refine", "entry": "wide-loads", "reason": "It held again.", "tip": tip},
            outcome=won(),
        ),
    ]


def won() -> dict[str, Any]:
    movement = {"metric": "dram_pct", "before": 40, "after": 52.5, "predicted": 15, "as_predicted": True}
    return lost() | {"verdict": "ACCEPT", "gain": 0.11, "movement": movement, "best": "triton/v3"}


def lost() -> dict[str, Any]:
    stagnation = {"rollbacks_in_a_row": 1, "not_improving": 1, "review": False, "change_forced": False}
    return {
        "verdict": "ROLLBACK", "best": "triton/v1", "gain": None, "predicted_gain": 0.2, "movement": None,
        "stop": None, "stagnation": stagnation,
    }  # fmt: skip


def rerun(judged: Evaluation, claim: str = "HOLDS", **changes: Any) -> Rerun:
    data = {
        "record": "r", "record_sha256": "0" * 64, "claim": claim, "reason": "It is as fast.", "evaluation": judged,
    }  # fmt: skip
    return Rerun.model_validate(data | changes)


def strike(found: RoundRecord, reason: str = "It keeps earlier results.") -> RoundRecord:
    struck = Strike(record_sha256="0" * 64, reason=reason, at="2026-11-22 08:00")
    return found.model_copy(update={"struck": struck})


def on_disk(project: Project, about: Manifest, rounds: list[RoundRecord]) -> store.Campaign:
    """A campaign as its closed rounds leave it, chained."""
    folder = project.devlog / about.target_op / about.campaign
    previous = None
    for found in rounds:
        chained = found.model_copy(update={"previous_sha256": previous, "campaign": about.campaign})
        ledger = store.Campaign(project, folder, about).ledger
        previous = ledger.publish(found.round, chained, {chained.snapshot: b"code"}).sha256
    files.write_file(folder / store.MANIFEST, yaml.safe_dump(about.model_dump(mode="json"), sort_keys=False))
    return store.read_campaign(project, folder)


def tables(page: str) -> list[list[list[str]]]:
    """The tables of a page as a Markdown reader sees them: rows of cells."""
    found: list[list[list[str]]] = []
    cell = False
    for token in MarkdownIt("commonmark").enable("table").parse(page):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type in ("th_open", "td_open"):
            cell = True
        elif token.type == "inline" and cell:
            found[-1][-1].append("".join(child.content for child in token.children or ()))
            cell = False
    return found


def structure(page: str) -> list[str]:
    """What a page is built of, without its words: blocks, emphasis, links, code."""
    kinds: list[str] = []
    for token in MarkdownIt("commonmark").enable("table").parse(page):
        inner = [child.type for child in token.children or ()]
        kinds += [f"{token.type} {token.tag}", *(kind for kind in inner if kind != "text")]
    return kinds


def race(sha256: str, status: str = "PASSED", **speedups: float) -> RaceRecord:
    """Of the version that has that hash, `triton/v3`."""
    graded = {"calls": 2, "worst": 3.0, "relative_error": 1e-3}
    sides = [{"side": name, "status": status, "message": "off", "correctness": graded} for name in speedups]
    provenance = evaluation("v3").provenance.model_copy(update={"solution_sha256": sha256})
    means = [aggregate(name, speedup) for name, speedup in speedups.items()]
    timing = passed(**speedups)["timing"]
    return RaceRecord.model_validate(
        {"definition": "norm", "solution": "triton/v3", "target": "h200", "provenance": provenance,
         "results": [{"workload": "64x64", "set": "full", "sides": sides, "eager": timing, "graph": timing}],
         "aggregates": {"eager": means, "graph": means[1:]}}
    )  # fmt: skip
