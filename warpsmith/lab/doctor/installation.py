"""Doctor's checks of the installation: Python, packages, and the project's folders."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from warpsmith import packages as requirements
from warpsmith.lab.doctor import packages
from warpsmith.lab.doctor.models import KINDS, DoctorRow
from warpsmith.lab.doctor.survey import Survey

_DISK = 2**30
"""Free bytes below which builds, caches of libraries and records may no longer fit."""


def check_python(survey: Survey) -> Iterator[DoctorRow]:
    """Report the version of the interpreter."""
    version, bounds = platform.python_version(), requirements.python_bounds()
    if packages.version_fits(version, bounds):
        yield DoctorRow(name="Python", state="ok", found=version)
    else:
        yield DoctorRow(
            name="Python",
            state="missing",
            found=f"{version} is not {bounds}",
            means="Warpsmith is not tested with it",
            fix=f"Create the environment with Python {bounds}.",
        )


def check_dependencies(survey: Survey) -> Iterator[DoctorRow]:
    """Report the packages that every command needs."""
    yield _packages(survey, "dependencies", "", "commands end with an ImportError")


def check_judging(survey: Survey) -> Iterator[DoctorRow]:
    """Report the packages that judging needs."""
    yield _packages(survey, "judging", "lab", "nothing can be judged, profiled or measured")


def check_plots(survey: Survey) -> Iterator[DoctorRow]:
    """Report the packages that plots need."""
    missing = packages.list_missing(survey, "plots")
    if missing:
        means = "reports are written without plots"
        yield DoctorRow(
            name="plots",
            state="missing",
            found="; ".join(missing),
            means=means,
            fix=packages.advise_useful_extras(survey),
        )
    else:
        yield DoctorRow(name="plots", state="ok", found=_versions(survey, "plots"))


def check_project(survey: Survey) -> Iterator[DoctorRow]:
    """Report the project's root, or an error in its configuration."""
    if survey.project is None:
        yield DoctorRow(name="project", state="missing", found=survey.problem, stops=KINDS)
    else:
        yield DoctorRow(name="project", state="ok", found=str(survey.project.root))


def check_writable(survey: Survey) -> Iterator[DoctorRow]:
    """Report whether the project's folders are writable, or can be created."""
    if survey.project is None:
        return
    folders = (survey.project.kernels, survey.project.devlog, survey.project.knowledge)
    read_only = [survey.project.relative(folder) for folder in folders if not _takes_files(folder)]
    if read_only:
        yield DoctorRow(
            name="writable",
            state="missing",
            found=f"{', '.join(read_only)} cannot be written",
            means="`new`, `start`, `judge` and `learn` cannot write their files",
            fix=f"Make {', '.join(read_only)} in {survey.project.root} writable, or work in a folder that is.",
            stops=KINDS,
        )
    else:
        yield DoctorRow(name="writable", state="ok", found="yes")


def check_disk(survey: Survey) -> Iterator[DoctorRow]:
    """Report the free space on the disk that holds the project."""
    if survey.project is None:
        return
    free = shutil.disk_usage(_existing(survey.project.root)).free
    if free < _DISK:
        yield DoctorRow(
            name="disk",
            state="missing",
            found=f"{free / 2**20:.0f} MiB free",
            means="builds and records may not fit; existing files stay intact",
            fix=f"Free at least {_DISK / 2**30:.0f} GiB.",
        )
    else:
        yield DoctorRow(name="disk", state="ok", found=f"{free / 2**30:.0f} GiB free")


def _packages(survey: Survey, name: str, extra: str, means: str) -> DoctorRow:
    """Build the row of packages without which nothing can be judged."""
    missing = packages.list_missing(survey, extra)
    if missing:
        gaps, fix = "; ".join(missing), packages.advise_useful_extras(survey)
        return DoctorRow(name=name, state="missing", found=gaps, means=means, fix=fix, stops=KINDS)
    return DoctorRow(name=name, state="ok", found=_versions(survey, extra) if extra else "all installed")


def _versions(survey: Survey, extra: str) -> str:
    names = [requirement.package for requirement in requirements.list_requirements(extra)]
    return ", ".join(f"{name} {survey.version(name)}" for name in names)


def _takes_files(folder: Path) -> bool:
    existing = _existing(folder)
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def _existing(path: Path) -> Path:
    """Return the path, or its nearest parent that exists."""
    return next(candidate for candidate in (path, *path.parents) if candidate.exists())
