"""Versions and drafts of an operator by their names, and the versions that port campaigns left."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warpsmith import languages
from warpsmith.campaign.history import solutions, store
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import Campaign, Progress
from warpsmith.errors import MissingInput
from warpsmith.port.versions import PortVersion
from warpsmith.project import Project

_DRAFT = re.compile(r"([a-z][a-z0-9_]*)/(\d+_\w+)")


def find_port_version(project: Project, op: str, name: str) -> PortVersion:
    """Find the version `triton/v3`, or the draft `flydsl/01_rows` in `<kernels>/<op>/drafts/`.

    Raises:
        MissingInput: it has no file.
        Misuse: the name is none of a version, or the language is unknown.
    """
    if match := _DRAFT.fullmatch(name):
        language, version = match[1], match[2]
        suffix = languages.get(language).suffix
        path = project.kernels / op / "drafts" / language / f"{version}{suffix}"
    else:
        solution = solutions.find_solution(project, op, name)
        language, version, path = solution.language, solution.version, solution.path
    if not path.is_file():
        raise MissingInput(f"{project.relative(path)} does not exist.")
    return PortVersion(language, version, path)


def list_port_versions(project: Project, op: str, language: str) -> list[str]:
    """List the names that `find_port_version` takes of a language, versions first, each in order."""
    suffix = languages.get(language).suffix
    drafts = sorted(path.stem for path in (project.kernels / op / "drafts" / language).glob(f"[0-9]*{suffix}"))
    return [f"{language}/{each}" for each in (*solutions.list_versions(project, op, language), *drafts)]


def untimed_versions(project: Project, op: str, target: str) -> list[Solution]:
    """List the versions that passed in port campaigns on an operator and a target, the newest last.

    One that stands accepted on any target is not among them, nor one without a file. Campaigns with a corrupt
    record are left out; their own commands report them.
    """
    names = [
        name
        for campaign, reached in _port_progress(project, op)
        if campaign.manifest.target == target
        for name in reached.untimed.values()
    ]
    accepted = _accepted_anywhere(project, op) if names else set()
    versions = [
        solutions.find_solution(project, op, name) for name in dict.fromkeys(names) if name not in accepted
    ]
    return [each for each in versions if each.path.is_file()]


def unrun_versions(project: Project, op: str) -> list[str]:
    """List the names of the versions that only port campaigns judged, so that no device ever ran them."""
    names = [name for _, reached in _port_progress(project, op) for name in reached.unrun]
    accepted = _accepted_anywhere(project, op) if names else set()
    return [name for name in names if name not in accepted]


def _port_progress(project: Project, op: str) -> Iterator[tuple[Campaign, Progress]]:
    campaigns = [campaign for campaign in store.list_campaigns(project, op) if campaign.manifest.port]
    every = store.read_progress(project, [campaign.folder for campaign in campaigns])
    yield from ((campaign, reached) for campaign, reached in zip(campaigns, every, strict=True) if reached)


def _accepted_anywhere(project: Project, op: str) -> set[str]:
    every = store.read_progress(project, [campaign.folder for campaign in store.list_campaigns(project, op)])
    return {name for reached in every if reached for name in reached.accepted.values()}
