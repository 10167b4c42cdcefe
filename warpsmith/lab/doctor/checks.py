"""Checks of `warpsmith doctor`: they examine what this machine offers, and measure and change nothing.

The rule that derives the answer from the rows is in `warpsmith.lab.doctor.models`.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from warpsmith.errors import WarpsmithError
from warpsmith.lab.doctor import gpu, installation, targets, tools, trust
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
    "languages": (targets.check_languages,),
    "CPU": (targets.check_cores, targets.check_openmp, targets.check_cpu_measurement),
    "GPU": (
        gpu.check_device,
        gpu.check_target,
        gpu.check_cuda,
        gpu.check_c_compiler,
        gpu.check_gpu_clocks,
        gpu.check_persistence,
        gpu.check_mig,
        gpu.check_counters,
    ),
    "trust": (trust.check_walls, trust.check_sanitizer),
    "tools": (
        tools.check_profilers,
        tools.check_disassemblers,
        tools.check_slurm,
    ),
    "agents": (tools.check_claude, tools.check_sdk, tools.check_git),
}
"""Checks by group, in the order of the output."""


def examine_machine(start: Path | None = None) -> DoctorReport:
    """Examine this machine and the project that contains `start` (default: the working folder)."""
    return run_checks(take_survey(start))


def run_checks(survey: Survey, checks: Mapping[str, tuple[DoctorCheck, ...]] = CHECKS) -> DoctorReport:
    """Run the checks in parallel, since most of them wait for a program to report its version."""
    with ThreadPoolExecutor() as pool:
        futures = {name: [pool.submit(_rows, check, survey) for check in group] for name, group in checks.items()}
        rows = {name: [row for future in group for row in future.result()] for name, group in futures.items()}
    return DoctorReport.of(DoctorGroup(name=name, rows=tuple(group_rows)) for name, group_rows in rows.items())


def _rows(check: DoctorCheck, survey: Survey) -> list[DoctorRow]:
    """Return the rows of a check; a check that fails is reported as a row."""
    try:
        return list(check(survey))
    except (WarpsmithError, OSError, ValueError) as error:
        message = f"could not be checked: {' '.join(str(error).split())}"
        name = getattr(check, "__name__", "check").removeprefix("check_").replace("_", " ")
        return [DoctorRow(name=name, state="missing", found=message)]
