"""Survey of this machine, which the doctor's checks examine: the project, the GPU and the installed packages."""

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
    """Return the version of an installed package without importing it; None if it is not installed."""
    try:
        return installed_version(package)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True)
class Survey:
    """Facts that the checks examine."""

    project: Project | None
    """The project; None if its configuration does not parse."""
    problem: str = ""
    """Error in the project's configuration."""
    gpu: Gpu | None = None
    """First visible GPU."""
    readings: GpuState | None = None
    """State of the GPU from NVIDIA's management library; None if the library is unavailable."""
    version: Callable[[str], str | None] = package_version
    """Function that returns the version of a package, or None if it is not installed."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Kinds of target for which this machine has a device."""
        return ("cpu", "gpu") if self.gpu else ("cpu",)


DoctorCheck = Callable[[Survey], Iterable[DoctorRow]]
"""One check; it yields no rows if it does not apply to this machine."""


def take_survey(start: Path | None = None) -> Survey:
    """Survey this machine and the project that contains `start` (default: the working folder)."""
    try:
        project, problem = projects.find_project(start), ""
    except Misuse as error:
        project, problem = None, str(error)
    gpu = identity.visible_gpu()
    return Survey(project, problem, gpu, doctor_nvml.read_gpu_state(gpu.uuid) if gpu else None)
