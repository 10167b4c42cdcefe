"""Support of architectures: where a language runs, and which is the nearest one where it does not."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith.core.hardware import Target
    from warpsmith.languages.base import Language

AMD_PREFIX = "gfx"
"""Beginning of the names of AMD's architectures."""


def runs_on(language: Language, architecture: str | None) -> bool:
    """Return True if a language runs on an architecture, or if that is unknown; `sm_80+` includes newer ones."""
    if architecture is None:
        return True
    number = re.fullmatch(r"sm_([0-9]+)", architecture)
    for pattern in language.architectures:
        if pattern == architecture or (number and pattern.endswith("+") and int(number[1]) >= int(pattern[3:-1])):
            return True
    return False


def architecture_of(target: Target) -> str:
    """Return the architecture of a kind of device as `runs_on` takes it: `cpu`, `sm_90`, `gfx942`."""
    return "cpu" if target.kind == "cpu" else re.sub(r"^(sm_[0-9]+)[a-z]$", r"\1", target.isa)


def list_fitting(architecture: str | None, languages: Iterable[Language]) -> list[Language]:
    """Return the languages to propose for an architecture if none is asked for, best first; empty if none runs.

    Args:
        architecture: `cpu`, `sm_90`, `gfx942`; None: unknown.
        languages: languages of the lab, those first that are proposed unasked, the best one first.
    """
    fitting = [language for language in languages if runs_on(language, architecture)]
    return [language for language in fitting if language.preference is not None] or fitting


def amd_advice(device: str) -> str:
    """Say in one sentence what the lab does for an architecture or a kind of device of AMD's."""
    return (
        f"Nothing is timed on AMD devices: `warpsmith start OP --target {device} --language triton` opens a port "
        f"campaign, and `warpsmith port OP --to {device}` compiles a version; both count what it takes and check "
        "its numbers."
    )


def describe_nearest(language: Language, architecture: str, languages: Iterable[Language]) -> str:
    """Say in one sentence which language to take where one does not run, and what is lost by that.

    Args:
        language: a language that does not run there.
        architecture: `cpu`, `sm_90`, `gfx942`.
        languages: as for `list_fitting`.
    """
    device = "a CPU" if architecture == "cpu" else architecture
    fitting = list_fitting(architecture, languages)
    if not fitting:
        return f"{language.title} does not run on {device}, nor does any other language of the lab."
    loss = f", without {language.control}" if language.control else ""
    return f"{language.title} does not run on {device}: take {fitting[0].title}, the nearest that does{loss}."
