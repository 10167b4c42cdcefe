"""`warpsmith doctor`: looks at what this machine has for the loop; measures and changes nothing.

The checks are one list; the rule that makes an answer of their rows stands in `warpsmith.lab.doctor.models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from warpsmith.errors import WarpsmithError
from warpsmith.lab.doctor import (
    gpu as doctor_gpu,
)
from warpsmith.lab.doctor import installation
from warpsmith.lab.doctor import (
    targets as doctor_targets,
)
from warpsmith.lab.doctor import (
    tools as doctor_tools,
)
from warpsmith.lab.doctor import (
    trust as doctor_trust,
)
from warpsmith.lab.doctor.models import Diagnosis, Group, Row
from warpsmith.lab.doctor.survey import Check, Here, survey

CHECKS: Mapping[str, tuple[Check, ...]] = {
    "lab": (
        installation.python,
        installation.dependencies,
        installation.judging,
        installation.plots,
        installation.project,
        installation.writable,
        installation.disk,
    ),
    "languages": (doctor_targets.each_language,),
    "CPU": (doctor_targets.cores, doctor_targets.openmp, doctor_targets.cpu_measured),
    "GPU": (
        doctor_gpu.device,
        doctor_gpu.page,
        doctor_gpu.cuda,
        doctor_gpu.c_compiler,
        doctor_gpu.clocks,
        doctor_gpu.persistence,
        doctor_gpu.mig,
        doctor_gpu.counters,
    ),
    "trust": (doctor_trust.walls, doctor_trust.sanitizer),
    "tools": (
        doctor_tools.profilers,
        doctor_tools.disassemblers,
        doctor_tools.slurm,
    ),
    "agents": (doctor_tools.claude, doctor_tools.sdk, doctor_tools.git),
}
"""Every check by group, in the order that they are shown in."""


def diagnose(start: Path | None = None) -> Diagnosis:
    """Look at this machine and the project that `start` (default: the working folder) lies in."""
    return examine(survey(start))


def examine(here: Here, checks: Mapping[str, tuple[Check, ...]] = CHECKS) -> Diagnosis:
    """Make the checks, several at a time: most of them wait for a program to tell its version."""
    with ThreadPoolExecutor() as pool:
        waiting = {name: [pool.submit(_rows, check, here) for check in group] for name, group in checks.items()}
        found = {name: [row for one in group for row in one.result()] for name, group in waiting.items()}
    return Diagnosis.of(Group(name=name, rows=tuple(rows)) for name, rows in found.items())


def _rows(check: Check, here: Here) -> list[Row]:
    """A check's rows; one that cannot be made is a finding too."""
    try:
        return list(check(here))
    except (WarpsmithError, OSError, ValueError) as error:
        found = f"could not be checked: {' '.join(str(error).split())}"
        name = getattr(check, "__name__", "check").replace("_", " ")
        return [Row(name=name, state="missing", found=found)]
