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
from warpsmith.lab.doctor.models import DoctorGroup, DoctorReport, DoctorRow
from warpsmith.lab.doctor.survey import DoctorCheck, Survey, take_survey

CHECKS: Mapping[str, tuple[DoctorCheck, ...]] = {
    "lab": (
        installation.check_python,
        installation.check_dependencies,
        installation.check_judging,
        installation.check_plots,
        installation.check_project,
        installation.check_writable,
        installation.check_disk,
    ),
    "languages": (doctor_targets.check_languages,),
    "CPU": (doctor_targets.check_cores, doctor_targets.check_openmp, doctor_targets.check_cpu_measurement),
    "GPU": (
        doctor_gpu.check_device,
        doctor_gpu.check_target,
        doctor_gpu.check_cuda,
        doctor_gpu.check_c_compiler,
        doctor_gpu.check_clocks,
        doctor_gpu.check_persistence,
        doctor_gpu.check_mig,
        doctor_gpu.check_counters,
    ),
    "trust": (doctor_trust.check_walls, doctor_trust.check_sanitizer),
    "tools": (
        doctor_tools.check_profilers,
        doctor_tools.check_disassemblers,
        doctor_tools.check_slurm,
    ),
    "agents": (doctor_tools.check_claude, doctor_tools.check_sdk, doctor_tools.check_git),
}
"""Every check by group, in the order that they are shown in."""


def examine_machine(start: Path | None = None) -> DoctorReport:
    """Look at this machine and the project that `start` (default: the working folder) lies in."""
    return run_checks(take_survey(start))


def run_checks(here: Survey, checks: Mapping[str, tuple[DoctorCheck, ...]] = CHECKS) -> DoctorReport:
    """Make the checks, several at a time: most of them wait for a program to tell its version."""
    with ThreadPoolExecutor() as pool:
        waiting = {name: [pool.submit(_rows, check, here) for check in group] for name, group in checks.items()}
        found = {name: [row for one in group for row in one.result()] for name, group in waiting.items()}
    return DoctorReport.of(DoctorGroup(name=name, rows=tuple(rows)) for name, rows in found.items())


def _rows(check: DoctorCheck, here: Survey) -> list[DoctorRow]:
    """A check's rows; one that cannot be made is a finding too."""
    try:
        return list(check(here))
    except (WarpsmithError, OSError, ValueError) as error:
        found = f"could not be checked: {' '.join(str(error).split())}"
        name = getattr(check, "__name__", "check").replace("_", " ")
        return [DoctorRow(name=name, state="missing", found=found)]
