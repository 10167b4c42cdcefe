"""Requirements of Warpsmith on the Python environment, and the command that installs them.

The command names the packages themselves: it works wherever Warpsmith came from, a clone, a plugin or a wheel.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from importlib.util import find_spec
from typing import NamedTuple

from warpsmith.errors import MachineLacks
from warpsmith.project import SHIPPED

_REQUIREMENT = re.compile(r"([\w.-]+)([^;]*)(?:;\s*extra\s*==\s*['\"]([\w-]+)['\"])?")


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


def install_command(*extras: str) -> str:
    """Return the pip command that installs the packages of these extras, or of the base, for this Python."""
    chosen = [requirement for extra in extras or ("",) for requirement in list_requirements(extra)]
    packages = dict.fromkeys(f"{requirement.package}{requirement.bounds}" for requirement in chosen)
    return shlex.join([sys.executable, "-m", "pip", "install", *packages])


def require_torch(subject: str) -> None:
    """Check that PyTorch is installed, without importing it.

    Args:
        subject: what needs it, as the beginning of a sentence.

    Raises:
        MachineLacks: it is missing.
    """
    if find_spec("torch") is None:
        raise MachineLacks(f"{subject} needs PyTorch, which is not installed: run `{install_command('lab')}`.")


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
