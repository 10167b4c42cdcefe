"""Toolchain of a judgement: the libraries under which it was made, against those that are here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from warpsmith import languages
from warpsmith.core.evaluation import Evaluation


def judged_under(evaluation: Evaluation) -> dict[str, str]:
    """Return package to version, for PyTorch and the packages of the version's language."""
    return _relevant(evaluation.provenance.machine.libraries, [evaluation.language])


def differing_libraries(evaluation: Evaluation) -> dict[str, tuple[str, str]]:
    """Return package to the versions of then and of now, for installed packages that have changed since."""
    return differing_packages(evaluation.provenance.machine.libraries, [evaluation.language])


def differing_packages(libraries: Mapping[str, str], names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return package to the versions of then and of now, as `differing_libraries`.

    Args:
        libraries: package to version of then.
        names: names of the languages whose packages count, beside PyTorch.
    """
    differences = {}
    for name, then in _relevant(libraries, names).items():
        installed = _installed(name)
        if installed is not None and _release(installed) != _release(then):
            differences[name] = (then, installed)
    return differences


def describe_differences(differences: Mapping[str, tuple[str, str]]) -> str:
    """Describe the differences: `torch 2.11.0 (here 2.13.0), triton 3.6.0 (here 3.7.1)`."""
    return ", ".join(
        f"{name} {then} (here {installed})" for name, (then, installed) in sorted(differences.items())
    )


def _relevant(libraries: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    existing = languages.names()
    packages = [package for name in names if name in existing for package in languages.get(name).packages]
    return {name: libraries[name] for name in dict.fromkeys(("torch", *packages)) if name in libraries}


@cache
def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _release(text: str) -> str:
    """Return a version without its build: `2.13.0` of `2.13.0+cu130`."""
    return text.partition("+")[0]
