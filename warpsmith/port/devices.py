"""Targets of a port: architectures and device kinds, as users name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from warpsmith.core.arithmetic.occupancy import MultiprocessorLimits
from warpsmith.errors import Misuse, UnknownFigure
from warpsmith.lab.machine import hardware
from warpsmith.project import Project


class PortDevice(NamedTuple):
    """A device to compile for."""

    arch: str
    """Architecture as the compiler names it."""
    target: str | None
    """Device kind; None if no hardware page has the architecture."""
    limits: MultiprocessorLimits | None
    """Limits of a multiprocessor; None if no page states them."""


def parse_devices(project: Project, text: str, architectures: Sequence[str]) -> list[PortDevice]:
    """Parse `gfx942,a100`: architectures, each with the first device kind that has it, and device kinds.

    Raises:
        Misuse: a name is neither, or the language does not compile for the device; or there is none.
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise Misuse("--to names no target; write architectures or device kinds, such as `gfx942,a100`.")
    return [find_device(project, name, architectures) for name in names]


def find_device(project: Project, name: str, architectures: Sequence[str]) -> PortDevice:
    """Return the device of an architecture or a device kind; raises Misuse."""
    by_plain_name = {arch.removesuffix("a"): arch for arch in architectures}
    if arch := by_plain_name.get(name.removesuffix("a")):
        page = hardware.find_page_by_isa(project, arch)
        return PortDevice(arch, page.target.id if page else None, _limits(page))
    kinds = hardware.list_targets(project)
    if name not in kinds and hardware.find_page_by_isa(project, name):
        raise Misuse(f"Versions are not compiled for `{name}`; there are: {', '.join(architectures)}.")
    if name not in kinds:
        raise Misuse(
            f"Unknown target `{name}`; write an architecture ({', '.join(architectures)}) or a device kind"
            f" ({', '.join(kind for kind in kinds if kind != 'cpu')})."
        )
    page = hardware.read_target_page(project, name)
    if page.target.isa not in architectures:
        raise Misuse(
            f"Versions are not compiled for `{name}`, whose architecture is `{page.target.isa}`;"
            f" there are: {', '.join(architectures)}."
        )
    return PortDevice(page.target.isa, name, _limits(page))


def _limits(page: hardware.HardwarePage | None) -> MultiprocessorLimits | None:
    try:
        return hardware.multiprocessor_limits(page) if page else None
    except UnknownFigure:
        return None
