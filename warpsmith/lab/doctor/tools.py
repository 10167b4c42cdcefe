"""The doctor's checks of programs on PATH: NVIDIA's tools, Slurm, Claude Code and git."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from typing import NamedTuple

from warpsmith.lab.doctor import packages
from warpsmith.lab.doctor.models import Row
from warpsmith.lab.doctor.survey import Here
from warpsmith.languages.shared import tool

_SECONDS = 5.0
_NUMBER = re.compile(r"\d+(?:\.\d+)+")


class Program(NamedTuple):
    """A program that was looked for."""

    name: str
    """What it is called."""
    path: str | None
    """Where it is; None: not on PATH."""
    says: str
    """Its version, or what is wrong with it; empty where it is not there."""
    works: bool
    """Whether it told its version."""


def program(name: str) -> Program:
    """Look for a program on PATH and ask for its version."""
    path = shutil.which(name)
    return version(name, path) if path else Program(name, None, "", False)


def version(name: str, path: str) -> Program:
    """Ask a program for its version."""
    try:
        done = tool.run([path, "--version"], _SECONDS)
    except (OSError, TimeoutError) as error:
        return Program(name, path, f"{path} does not answer ({error})", False)
    number = _NUMBER.search(done.output)
    if done.code or number is None:
        return Program(name, path, f"{path} does not tell its version", False)
    return Program(name, path, number[0], True)


def profilers(here: Here) -> Iterator[Row]:
    """Nsight Compute, which `profile` collects counters with, and the package that reads its reports."""
    means = "`profile` rests on timings and the compiler's report, without counters"
    if here.gpu:
        yield _program("ncu", means, "Install NVIDIA Nsight Compute; its ncu belongs on PATH.")
    version = here.version("ncu-report")
    if version:
        yield Row(name="ncu-report", state="ok", found=version)
    else:
        means = means if here.gpu else "`profile --report` cannot read reports from elsewhere"
        fix = packages.install(here, "ncu")
        yield Row(name="ncu-report", state="gap", found="not installed", means=means, fix=fix)


def disassemblers(here: Here) -> Iterator[Row]:
    """NVIDIA's disassemblers."""
    yield _unused("disassemblers", ("cuobjdump", "nvdisasm"), "compile-only inspection takes those of Triton")


def slurm(here: Here) -> Iterator[Row]:
    """Slurm's commands."""
    yield _unused("Slurm", ("sbatch", "srun"), "what is judged runs where the command runs")


def claude(here: Here) -> Iterator[Row]:
    """Claude Code."""
    means = "the plugin's skills and agents have nowhere to run; every command of the loop works without"
    fix = "Install Claude Code: https://code.claude.com/docs/en/setup."
    yield _program("claude", means, fix)


def sdk(here: Here) -> Iterator[Row]:
    """The package that drives Claude Code."""
    version = here.version("claude-agent-sdk")
    if version:
        yield Row(name="claude-agent-sdk", state="ok", found=version)
    else:
        means = "`warpsmith optimize --designer claude` cannot run"
        fix = packages.install(here, "claude")
        yield Row(name="claude-agent-sdk", state="gap", found="not installed", means=means, fix=fix)


def git(here: Here) -> Iterator[Row]:
    """Git."""
    means = "`start --git branch` is refused; `--git none`, the default, goes on"
    yield _program("git", means, "Install `git`.")


def _program(name: str, means: str, fix: str) -> Row:
    found = program(name)
    if found.works:
        return Row(name=name, state="ok", found=found.says)
    return Row(name=name, state="gap", found=found.says or "not on PATH", means=means, fix=fix)


def _unused(name: str, programs: tuple[str, ...], instead: str) -> Row:
    """A row of programs that no command uses yet; `instead` says what is done without them."""
    every = [program(each) for each in programs]
    found = ", ".join(f"{each.name} {each.says or 'not on PATH'}" for each in every)
    if all(each.works for each in every):
        return Row(name=name, state="ok", found=f"{found} (not used yet)")
    return Row(name=name, state="gap", found=found, means=f"not used yet: {instead}")
