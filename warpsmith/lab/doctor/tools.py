"""Doctor's checks of programs on PATH: NVIDIA's tools, Slurm, Claude Code and git."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from typing import NamedTuple

from warpsmith.lab.doctor import packages
from warpsmith.lab.doctor.models import DoctorRow
from warpsmith.lab.doctor.survey import Survey
from warpsmith.languages.shared import tool

_SECONDS = 5.0
_NUMBER = re.compile(r"\d+(?:\.\d+)+")


class InstalledProgram(NamedTuple):
    """Program that was searched for."""

    name: str
    """Name of the program."""
    path: str | None
    """Path of the program; None if it is not on PATH."""
    report: str
    """Version, or an error; empty if the program is not on PATH."""
    works: bool
    """True if it reported its version."""


def find_program(name: str) -> InstalledProgram:
    """Find a program on PATH and ask it for its version."""
    path = shutil.which(name)
    return ask_version(name, path) if path else InstalledProgram(name, None, "", False)


def ask_version(name: str, path: str) -> InstalledProgram:
    """Ask a program for its version."""
    try:
        result = tool.run_tool([path, "--version"], _SECONDS)
    except (OSError, TimeoutError) as error:
        return InstalledProgram(name, path, f"{path} does not answer ({error})", False)
    number = _NUMBER.search(result.output)
    if result.code or number is None:
        return InstalledProgram(name, path, f"{path} does not report its version", False)
    return InstalledProgram(name, path, number[0], True)


def check_profilers(survey: Survey) -> Iterator[DoctorRow]:
    """Report Nsight Compute, with which `profile` collects counters, and the package that reads its reports."""
    means = "`profile` uses timings and the compiler's report, without counters"
    if survey.gpu:
        yield _program_row("ncu", means, "Install NVIDIA Nsight Compute and put its ncu on PATH.")
    version = survey.version("ncu-report")
    if version:
        yield DoctorRow(name="ncu-report", state="ok", found=version)
    else:
        means = means if survey.gpu else "`profile --report` cannot read reports from other machines"
        fix = packages.advise_install("ncu")
        yield DoctorRow(name="ncu-report", state="gap", found="not installed", means=means, fix=fix)


def check_disassemblers(survey: Survey) -> Iterator[DoctorRow]:
    """Report NVIDIA's disassemblers."""
    yield _unused_programs_row(
        "disassemblers", ("cuobjdump", "nvdisasm"), "compile-only inspection uses the disassemblers of Triton"
    )


def check_slurm(survey: Survey) -> Iterator[DoctorRow]:
    """Report Slurm's commands."""
    yield _unused_programs_row("Slurm", ("sbatch", "srun"), "versions run on the machine where the command runs")


def check_claude(survey: Survey) -> Iterator[DoctorRow]:
    """Report the Claude Code program."""
    means = "the plugin's skills and agents cannot run; every command of the loop works without them"
    fix = "Install Claude Code: https://code.claude.com/docs/en/setup."
    program = find_program("claude")
    if os.environ.get("CLAUDECODE") == "1" and not program.works:
        yield DoctorRow(name="claude", state="ok", found="this command runs in Claude Code")
        return
    yield _program_row("claude", means, fix)


def check_sdk(survey: Survey) -> Iterator[DoctorRow]:
    """Report the package that drives Claude Code."""
    version = survey.version("claude-agent-sdk")
    if version:
        yield DoctorRow(name="claude-agent-sdk", state="ok", found=version)
    else:
        means = "`warpsmith optimize --designer claude` cannot run"
        fix = packages.advise_install("claude")
        yield DoctorRow(name="claude-agent-sdk", state="gap", found="not installed", means=means, fix=fix)


def check_git(survey: Survey) -> Iterator[DoctorRow]:
    """Report the git program."""
    means = "accepted rounds are not committed; `start --git branch` is refused"
    yield _program_row("git", means, "Install `git`.")


def _program_row(name: str, means: str, fix: str) -> DoctorRow:
    program = find_program(name)
    if program.works:
        return DoctorRow(name=name, state="ok", found=program.report)
    return DoctorRow(name=name, state="gap", found=program.report or "not on PATH", means=means, fix=fix)


def _unused_programs_row(name: str, programs: tuple[str, ...], instead: str) -> DoctorRow:
    """Build a row of programs that no command uses yet; `instead` says how commands work without them."""
    installed = [find_program(program) for program in programs]
    versions = ", ".join(f"{program.name} {program.report or 'not on PATH'}" for program in installed)
    if all(program.works for program in installed):
        return DoctorRow(name=name, state="ok", found=f"{versions} (not used yet)")
    return DoctorRow(name=name, state="gap", found=versions, means=f"not used yet: {instead}")
