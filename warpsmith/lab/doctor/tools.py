"""The doctor's checks of programs on PATH: NVIDIA's tools, Slurm, Claude Code and git."""

from __future__ import annotations

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
    """A program that was looked for."""

    name: str
    """What it is called."""
    path: str | None
    """Where it is; None: not on PATH."""
    says: str
    """Its version, or what is wrong with it; empty where it is not there."""
    works: bool
    """Whether it told its version."""


def find_program(name: str) -> InstalledProgram:
    """Look for a program on PATH and ask for its version."""
    path = shutil.which(name)
    return ask_version(name, path) if path else InstalledProgram(name, None, "", False)


def ask_version(name: str, path: str) -> InstalledProgram:
    """Ask a program for its version."""
    try:
        done = tool.run_tool([path, "--version"], _SECONDS)
    except (OSError, TimeoutError) as error:
        return InstalledProgram(name, path, f"{path} does not answer ({error})", False)
    number = _NUMBER.search(done.output)
    if done.code or number is None:
        return InstalledProgram(name, path, f"{path} does not tell its version", False)
    return InstalledProgram(name, path, number[0], True)


def check_profilers(here: Survey) -> Iterator[DoctorRow]:
    """Nsight Compute, which `profile` collects counters with, and the package that reads its reports."""
    means = "`profile` rests on timings and the compiler's report, without counters"
    if here.gpu:
        yield _program_row("ncu", means, "Install NVIDIA Nsight Compute; its ncu belongs on PATH.")
    version = here.version("ncu-report")
    if version:
        yield DoctorRow(name="ncu-report", state="ok", found=version)
    else:
        means = means if here.gpu else "`profile --report` cannot read reports from elsewhere"
        fix = packages.advise_install(here, "ncu")
        yield DoctorRow(name="ncu-report", state="gap", found="not installed", means=means, fix=fix)


def check_disassemblers(here: Survey) -> Iterator[DoctorRow]:
    """NVIDIA's disassemblers."""
    yield _unused_programs_row(
        "disassemblers", ("cuobjdump", "nvdisasm"), "compile-only inspection takes those of Triton"
    )


def check_slurm(here: Survey) -> Iterator[DoctorRow]:
    """Slurm's commands."""
    yield _unused_programs_row("Slurm", ("sbatch", "srun"), "what is judged runs where the command runs")


def check_claude(here: Survey) -> Iterator[DoctorRow]:
    """Claude Code."""
    means = "the plugin's skills and agents have nowhere to run; every command of the loop works without"
    fix = "Install Claude Code: https://code.claude.com/docs/en/setup."
    yield _program_row("claude", means, fix)


def check_sdk(here: Survey) -> Iterator[DoctorRow]:
    """The package that drives Claude Code."""
    version = here.version("claude-agent-sdk")
    if version:
        yield DoctorRow(name="claude-agent-sdk", state="ok", found=version)
    else:
        means = "`warpsmith optimize --designer claude` cannot run"
        fix = packages.advise_install(here, "claude")
        yield DoctorRow(name="claude-agent-sdk", state="gap", found="not installed", means=means, fix=fix)


def check_git(here: Survey) -> Iterator[DoctorRow]:
    """Git."""
    means = "`start --git branch` is refused; `--git none`, the default, goes on"
    yield _program_row("git", means, "Install `git`.")


def _program_row(name: str, means: str, fix: str) -> DoctorRow:
    found = find_program(name)
    if found.works:
        return DoctorRow(name=name, state="ok", found=found.says)
    return DoctorRow(name=name, state="gap", found=found.says or "not on PATH", means=means, fix=fix)


def _unused_programs_row(name: str, programs: tuple[str, ...], instead: str) -> DoctorRow:
    """A row of programs that no command uses yet; `instead` says what is done without them."""
    every = [find_program(each) for each in programs]
    found = ", ".join(f"{each.name} {each.says or 'not on PATH'}" for each in every)
    if all(each.works for each in every):
        return DoctorRow(name=name, state="ok", found=f"{found} (not used yet)")
    return DoctorRow(name=name, state="gap", found=found, means=f"not used yet: {instead}")
