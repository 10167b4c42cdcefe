"""Records of maps with scripted times: one version is faster at some shapes, and was shown so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from warpsmith.core.definition import Workload
from warpsmith.core.hardware import Machine
from warpsmith.lab.performance_map.models import MapVersion, PerformanceMap

MACHINE = Machine(
    id="cpu-0", target="cpu", device="a cpu", processor="a cpu, 2 cores", libraries={"python": "3.12"}
)

CORRECT = {"calls": 3, "worst": 0.25, "relative_error": 1e-7}


def time_of(solution: str, seconds: float, over: str = "", speedup: float = 1.0) -> dict[str, Any]:
    interval = {"low": speedup - 0.02, "high": speedup + 0.02}
    comparison = {"against": over, "other_seconds": 1e-3, "speedup": speedup, "interval": interval, "pairs": 20}
    return {"solution": solution, "seconds": seconds, "samples": 20, "correctness": CORRECT,
            "comparison": comparison if over else None}  # fmt: skip


def confirmation(solution: str, speedup: float = 1.5) -> dict[str, Any]:
    return {"solution": solution, "seconds": 1e-3 / speedup, "best_seconds": 1e-3, "speedup": speedup, "twin": 1.0,
            "interval": {"low": speedup - 0.1, "high": speedup + 0.1}, "pairs": 30,
            "correctness": CORRECT}  # fmt: skip


def cell(workload: Workload, best: str, other: str, *, faster: bool) -> dict[str, Any]:
    """A shape at which `other` was shown faster, or not."""
    times = [time_of(best, 1e-3), time_of(other, 1e-3 / 1.5 if faster else 2e-3, best, 1.5 if faster else 0.5)]
    shown = confirmation(other) if faster else None
    return {"workload": workload.model_dump(), "times": times, "confirmation": shown,
            "solution": other if faster else best}  # fmt: skip


def make_map(
    workloads: Iterable[Workload], faster: Mapping[str, bool], versions: Iterable[MapVersion] = (), **changes: Any
) -> PerformanceMap:
    """A map of two versions; `faster` says by a workload's name where the second one was shown faster."""
    chosen = list(versions) or [
        MapVersion(solution=f"toy/v{number}", language="toy", sha256=f"{number}" * 64) for number in (1, 2)
    ]
    best, other = (version.solution for version in chosen)
    facts = {
        "definition": "affine", "target": "cpu", "definition_sha256": "a" * 64, "lab_sha256": "b" * 64,
        "gate_version": 3, "machine": MACHINE, "measured": "2026-11-24 10:00", "versions": chosen, "best": best,
        "best_reason": "no other version is shown faster over all shapes", "floor": 0.03, "confidence": 0.99,
        "cells": [cell(each, best, other, faster=faster.get(each.name, False)) for each in workloads],
    }  # fmt: skip
    return PerformanceMap.model_validate({**facts, **changes})


def plane(*sizes: tuple[int, int], axes: tuple[str, str] = ("rows", "groups")) -> list[Workload]:
    """Workloads named `<rows>x<groups>`."""
    return [
        Workload(name=f"{rows}x{groups}", axes=dict(zip(axes, (rows, groups), strict=True)))
        for rows, groups in sizes
    ]
