"""Packages that a machine lacks or has too old, and the command that installs them."""

from __future__ import annotations

import operator
import re

from warpsmith import packages
from warpsmith.lab.doctor.survey import Survey
from warpsmith.packages import PackageRequirement, list_requirements

_BOUND = re.compile(r"(>=|==|<)\s*(\d+(?:\.\d+)*)")
_SIGNS = {">=": operator.ge, "==": operator.eq, "<": operator.lt}


def list_missing(survey: Survey, extra: str) -> list[str]:
    """Describe the packages of an extra that are missing or too old."""
    return [gap for requirement in list_requirements(extra) if (gap := _describe_gap(survey, requirement))]


def advise_useful_extras(survey: Survey) -> str:
    """Advise one command that installs everything the loop would use on this machine; the same for every row."""
    useful = ("lab", "triton", "plots", "gpu") if survey.gpu else ("lab", "triton", "plots")
    extras = [extra for extra in useful if list_missing(survey, extra)]
    return advise_install(*extras)


def advise_install(*extras: str) -> str:
    """Advise a pip command that installs these extras for the running Python."""
    return f"Run `{packages.install_command(*extras)}`."


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
