"""What Warpsmith asks of the Python environment, and the one command that brings what is lacking."""

from __future__ import annotations

import operator
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from typing import NamedTuple

from warpsmith.lab.doctor.survey import Survey
from warpsmith.project import SHIPPED

_REQUIREMENT = re.compile(r"([\w.-]+)([^;]*)(?:;\s*extra\s*==\s*['\"]([\w-]+)['\"])?")
_BOUND = re.compile(r"(>=|==|<)\s*(\d+(?:\.\d+)*)")
_SIGNS = {">=": operator.ge, "==": operator.eq, "<": operator.lt}


class PackageRequirement(NamedTuple):
    """One package that is asked for."""

    package: str
    """Its name."""
    bounds: str
    """The versions that do: `>=2.11`."""
    extra: str
    """The extra that asks for it; empty: the base."""


def python_bounds() -> str:
    """The versions of Python that do: `>=3.11,<3.14`."""
    return _package_metadata()[0]


def list_requirements(extra: str) -> list[PackageRequirement]:
    """What one extra asks for, or the base where `extra` is empty."""
    return [requirement for requirement in _requirements() if requirement.extra == extra]


def list_missing(here: Survey, extra: str) -> list[str]:
    """What of an extra is not there or too old, in a few words each."""
    return [words for requirement in list_requirements(extra) if (words := _describe_gap(here, requirement))]


def advise_useful_extras(here: Survey) -> str:
    """What brings everything that the loop would use here: one command, the same for every row."""
    useful = ("lab", "triton", "plots", "gpu") if here.gpu else ("lab", "triton", "plots")
    return advise_install(here, *(extra for extra in useful if list_missing(here, extra)))


def advise_install(here: Survey, *extras: str) -> str:
    """What brings these extras: a pip command for the Python that runs now."""
    source = "warpsmith" if here.version("warpsmith") else str(SHIPPED)
    asked = f"{source}[{','.join(extras)}]" if extras else source
    return f"Run `{shlex.quote(sys.executable)} -m pip install {shlex.quote(asked)}`."


def version_fits(version: str, bounds: str) -> bool:
    """Whether a version's release lies within bounds such as `>=2.11` or `>=3.11,<3.14`."""
    return all(_SIGNS[sign](_release(version), _release(bound)) for sign, bound in _BOUND.findall(bounds))


def _release(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _describe_gap(here: Survey, requirement: PackageRequirement) -> str:
    version = here.version(requirement.package)
    if version is None:
        return f"{requirement.package} is not installed"
    if version_fits(version, requirement.bounds):
        return ""
    return f"{requirement.package} {version} is not {requirement.bounds}"


def _requirements() -> Iterator[PackageRequirement]:
    for text in _package_metadata()[1]:
        found = _REQUIREMENT.match(text)
        if found:
            yield PackageRequirement(found[1], found[2].strip(), found[3] or "")


def _package_metadata() -> tuple[str, list[str]]:
    """Python's bounds and the requirements, of the installed package, else of the checkout that this runs in."""
    try:
        fields = metadata("warpsmith")
        return fields["Requires-Python"], fields.get_all("Requires-Dist") or []
    except PackageNotFoundError:
        described = tomllib.loads((SHIPPED / "pyproject.toml").read_text())["project"]
    extras = described["optional-dependencies"].items()
    optional = [f"{text}; extra == '{extra}'" for extra, texts in extras for text in texts]
    return described["requires-python"], [*described["dependencies"], *optional]
