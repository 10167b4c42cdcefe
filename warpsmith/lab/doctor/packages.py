"""Requirements of Warpsmith on the Python environment, and the command that installs what is missing."""

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
    """One required package."""

    package: str
    """Name of the package."""
    bounds: str
    """Accepted versions: `>=2.11`."""
    extra: str
    """Extra that requires it; empty for the base."""


def python_bounds() -> str:
    """Return the supported versions of Python: `>=3.11,<3.14`."""
    return _package_metadata()[0]


def list_requirements(extra: str) -> list[PackageRequirement]:
    """List the requirements of an extra, or of the base if `extra` is empty."""
    return [requirement for requirement in _requirements() if requirement.extra == extra]


def list_missing(survey: Survey, extra: str) -> list[str]:
    """Describe the packages of an extra that are missing or too old."""
    return [gap for requirement in list_requirements(extra) if (gap := _describe_gap(survey, requirement))]


def advise_useful_extras(survey: Survey) -> str:
    """Advise one command that installs everything the loop would use on this machine; the same for every row."""
    useful = ("lab", "triton", "plots", "gpu") if survey.gpu else ("lab", "triton", "plots")
    return advise_install(survey, *(extra for extra in useful if list_missing(survey, extra)))


def advise_install(survey: Survey, *extras: str) -> str:
    """Advise a pip command that installs these extras for the running Python."""
    source = "warpsmith" if survey.version("warpsmith") else str(SHIPPED)
    requirement = f"{source}[{','.join(extras)}]" if extras else source
    return f"Run `{shlex.quote(sys.executable)} -m pip install {shlex.quote(requirement)}`."


def version_fits(version: str, bounds: str) -> bool:
    """Return whether a version lies within bounds such as `>=2.11` or `>=3.11,<3.14`."""
    return all(_SIGNS[sign](_release(version), _release(bound)) for sign, bound in _BOUND.findall(bounds))


def _release(version: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, match[0].split("."))) if match else ()


def _describe_gap(survey: Survey, requirement: PackageRequirement) -> str:
    version = survey.version(requirement.package)
    if version is None:
        return f"{requirement.package} is not installed"
    if version_fits(version, requirement.bounds):
        return ""
    return f"{requirement.package} {version} is not {requirement.bounds}"


def _requirements() -> Iterator[PackageRequirement]:
    for text in _package_metadata()[1]:
        match = _REQUIREMENT.match(text)
        if match:
            yield PackageRequirement(match[1], match[2].strip(), match[3] or "")


def _package_metadata() -> tuple[str, list[str]]:
    """Return Python's bounds and the requirements of the installed package, else of this checkout."""
    try:
        fields = metadata("warpsmith")
        return fields["Requires-Python"], fields.get_all("Requires-Dist") or []
    except PackageNotFoundError:
        project = tomllib.loads((SHIPPED / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].items()
    optional = [f"{text}; extra == '{extra}'" for extra, texts in extras for text in texts]
    return project["requires-python"], [*project["dependencies"], *optional]
