"""What the doctor's checks look at: the project, the GPU, and the packages that are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path

from warpsmith import project as projects
from warpsmith.errors import Misuse
from warpsmith.lab.doctor import nvml as doctor_nvml
from warpsmith.lab.doctor.models import DoctorRow, Kind
from warpsmith.lab.doctor.nvml import GpuState
from warpsmith.lab.machine import identity
from warpsmith.lab.machine.identity import Gpu
from warpsmith.project import Project


def package_version(package: str) -> str | None:
    """The version of an installed package, read without importing it."""
    try:
        return installed_version(package)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True)
class Survey:
    """Where the checks are made."""

    project: Project | None
    """The project at hand; None where its configuration does not parse."""
    problem: str = ""
    """What is wrong with the configuration."""
    gpu: Gpu | None = None
    """The first visible GPU."""
    readings: GpuState | None = None
    """What NVIDIA's management library says of it; None: it cannot be asked."""
    version: Callable[[str], str | None] = package_version
    """The version of a package, None where it is not installed."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of target that this machine has a device of."""
        return ("cpu", "gpu") if self.gpu else ("cpu",)


DoctorCheck = Callable[[Survey], Iterable[DoctorRow]]
"""Looks at one thing; no row where the question does not arise."""


def take_survey(start: Path | None = None) -> Survey:
    """This machine and the project that `start` (default: the working folder) lies in."""
    try:
        project, problem = projects.find_project(start), ""
    except Misuse as error:
        project, problem = None, str(error)
    gpu = identity.visible_gpu()
    return Survey(project, problem, gpu, doctor_nvml.read_gpu_state(gpu.uuid) if gpu else None)
