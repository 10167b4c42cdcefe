"""The doctor's checks of the lab itself: Python, packages, and the project's folders."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path

from warpsmith.lab.doctor import packages
from warpsmith.lab.doctor.models import KINDS, DoctorRow
from warpsmith.lab.doctor.survey import Survey

_DISK = 2**30
"""Free bytes below which builds, the libraries' caches and records may not fit any more."""


def check_python(here: Survey) -> Iterator[DoctorRow]:
    """The interpreter's version."""
    version, bounds = platform.python_version(), packages.python_bounds()
    if packages.version_fits(version, bounds):
        yield DoctorRow(name="Python", state="ok", found=version)
    else:
        yield DoctorRow(
            name="Python",
            state="missing",
            found=f"{version} is not {bounds}",
            means="Warpsmith is not tested with it",
            fix=f"Make the environment with a Python {bounds}.",
        )


def check_dependencies(here: Survey) -> Iterator[DoctorRow]:
    """The packages that every command needs."""
    yield _packages(here, "dependencies", "", "commands end with an ImportError")


def check_judging(here: Survey) -> Iterator[DoctorRow]:
    """The packages that judging needs."""
    yield _packages(here, "judging", "lab", "nothing can be judged, profiled or measured")


def check_plots(here: Survey) -> Iterator[DoctorRow]:
    """The packages that plots need."""
    lacking = packages.list_missing(here, "plots")
    if lacking:
        means = "reports are written without plots"
        yield DoctorRow(
            name="plots",
            state="missing",
            found="; ".join(lacking),
            means=means,
            fix=packages.advise_useful_extras(here),
        )
    else:
        yield DoctorRow(name="plots", state="ok", found=_versions(here, "plots"))


def check_project(here: Survey) -> Iterator[DoctorRow]:
    """The project's root and configuration."""
    if here.project is None:
        yield DoctorRow(name="project", state="missing", found=here.problem, stops=KINDS)
    else:
        yield DoctorRow(name="project", state="ok", found=str(here.project.root))


def check_writable(here: Survey) -> Iterator[DoctorRow]:
    """Whether the project's folders take files, or can be made."""
    if here.project is None:
        return
    folders = (here.project.kernels, here.project.devlog, here.project.knowledge)
    closed = [here.project.relative(folder) for folder in folders if not _takes_files(folder)]
    if closed:
        yield DoctorRow(
            name="writable",
            state="missing",
            found=f"{', '.join(closed)} cannot be written",
            means="`new`, `start`, `judge` and `learn` cannot keep what they make",
            fix=f"Make {', '.join(closed)} in {here.project.root} writable, or work in a folder that is.",
            stops=KINDS,
        )
    else:
        yield DoctorRow(name="writable", state="ok", found="yes")


def check_disk(here: Survey) -> Iterator[DoctorRow]:
    """Free space where the project lies."""
    if here.project is None:
        return
    free = shutil.disk_usage(_existing(here.project.root)).free
    if free < _DISK:
        yield DoctorRow(
            name="disk",
            state="missing",
            found=f"{free / 2**20:.0f} MiB free",
            means="builds and records may not fit; what was kept stays whole",
            fix=f"Free at least {_DISK / 2**30:.0f} GiB.",
        )
    else:
        yield DoctorRow(name="disk", state="ok", found=f"{free / 2**30:.0f} GiB free")


def _packages(here: Survey, name: str, extra: str, means: str) -> DoctorRow:
    """The row of packages without which nothing is judged."""
    lacking = packages.list_missing(here, extra)
    if lacking:
        found, fix = "; ".join(lacking), packages.advise_useful_extras(here)
        return DoctorRow(name=name, state="missing", found=found, means=means, fix=fix, stops=KINDS)
    return DoctorRow(name=name, state="ok", found=_versions(here, extra) if extra else "all installed")


def _versions(here: Survey, extra: str) -> str:
    names = [requirement.package for requirement in packages.list_requirements(extra)]
    return ", ".join(f"{name} {here.version(name)}" for name in names)


def _takes_files(folder: Path) -> bool:
    place = _existing(folder)
    return place.is_dir() and os.access(place, os.W_OK | os.X_OK)


def _existing(path: Path) -> Path:
    """The path, or the nearest folder above that is there."""
    return next(place for place in (path, *path.parents) if place.exists())
