"""Toolchain of a judgement: the libraries under which it was made, against those that are here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from warpsmith import languages
from warpsmith.core.evaluation import Evaluation


def judged_under(evaluation: Evaluation) -> dict[str, str]:
    """Return package to version, for PyTorch and the packages of the version's language."""
    libraries, language = evaluation.provenance.machine.libraries, evaluation.language
    packages = languages.get(language).packages if language in languages.names() else ()
    return {name: libraries[name] for name in ("torch", *packages) if name in libraries}


def differing_libraries(evaluation: Evaluation) -> dict[str, tuple[str, str]]:
    """Return package to the versions of then and of now, for installed packages that have changed since."""
    differences = {}
    for name, then in judged_under(evaluation).items():
        installed = _installed(name)
        if installed is not None and _release(installed) != _release(then):
            differences[name] = (then, installed)
    return differences


def describe_differences(differences: Mapping[str, tuple[str, str]]) -> str:
    """Describe the differences: `torch 2.11.0 (here 2.13.0), triton 3.6.0 (here 3.7.1)`."""
    return ", ".join(
        f"{name} {then} (here {installed})" for name, (then, installed) in sorted(differences.items())
    )


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _release(text: str) -> str:
    """Return a version without its build: `2.13.0` of `2.13.0+cu130`."""
    return text.partition("+")[0]
