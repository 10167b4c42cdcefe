"""Obstacle of a port campaign: a language without an interpreter, or a target without a compiler here."""

from __future__ import annotations

from warpsmith import languages
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.languages.base import ReplaysLaunches


def port_obstacle(language: str, page: HardwarePage) -> str | None:
    """Say in one sentence why versions of a language cannot be judged for a target without it; None: they can."""
    compiler = languages.get(language)
    able = [name for name in languages.names() if _replays(name)]
    if not isinstance(compiler, ReplaysLaunches):
        return (
            f"A port campaign checks numbers by an interpreter, and {compiler.title} has none: take"
            f" {', '.join(languages.get(name).title for name in able)}, or compile single versions with"
            f" `warpsmith port`."
        )
    architectures = compiler.port_architectures()
    if page.target.isa not in architectures:
        return (
            f"No compiler here makes code for `{page.target.id}`, whose architecture is `{page.target.isa}`;"
            f" {compiler.title} compiles for: {', '.join(architectures)}."
        )
    return compiler.missing("cpu")


def _replays(name: str) -> bool:
    return isinstance(languages.get(name), ReplaysLaunches)
