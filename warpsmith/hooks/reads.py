"""Reads of what a campaign hides, earlier work or entries of an experiment: agents are refused, the session's own
are recorded.

It sees paths that a tool or a command line names. A program that opens a file by itself stays unseen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from glob import iglob
from itertools import islice
from pathlib import Path

from warpsmith import project as projects
from warpsmith.campaign import earlier_work
from warpsmith.campaign.earlier_work import EarlierWork
from warpsmith.hooks import open_work
from warpsmith.hooks.event import Answer, HookEvent, permission_answer
from warpsmith.hooks.open_work import CampaignView
from warpsmith.project import Project

READING_TOOLS = {"Read": "file_path", "Grep": "path", "Glob": "path"}
"""Tools that read files, each with the argument that names a file or a folder."""

_WITHHELD = re.compile(rb"^withheld:\n((?:- [\w-]+\n)+)", re.MULTILINE)
_HIDDEN = re.compile(rb"^earlier_work: hidden$", re.MULTILINE)
_WORDS = re.compile(r"[^\s'\"`;|&<>()=:,]+")
_VERSION = re.compile(r"[a-z]\w*/v\d\w*(\.\w+)?")
_WILD = frozenset("*?[")
_MOST_MATCHES = 1000


def read_objection(event: HookEvent) -> Answer:
    """Refuse an agent's read of hidden work; record one of the session itself. Empty: no objection."""
    names = list(_names(event))
    project = projects.find_project(event.folder)
    view = open_work.current_campaign(project) if names else None
    if view is None:
        return {}
    manifest = (view.folder / "manifest.yaml").read_bytes()
    versions = [name for name in names if _VERSION.fullmatch(name)]  # as commands name them
    paths = (*_paths(event.folder, names), *_paths(project.kernels / view.op, versions))
    hidden = _hidden_files(manifest, project, view)
    matches = ((project.relative(path), reason) for path in paths for hides, reason in hidden if hides(path))
    name, reason = next(matches, ("", ""))
    if not name:
        return {}
    if event.is_plugin_agent:
        return permission_answer("deny", f"{name} is {reason}; design without it.")
    earlier_work.record_read(view.folder, name, event.agent or "main")
    return {}


def _hidden_files(
    manifest: bytes, project: Project, view: CampaignView
) -> list[tuple[Callable[[Path], bool], str]]:
    """List what a campaign hides, each as a test of a path and the reason."""
    hidden: list[tuple[Callable[[Path], bool], str]] = []
    if _HIDDEN.search(manifest):
        work = EarlierWork(project, view.op, view.folder)
        hidden.append((work.includes, f"earlier work on {view.op}, which {view.name} hides"))
    if withheld := _WITHHELD.search(manifest):
        pages = {f"{id}.md" for id in withheld[1].decode().replace("- ", "").split()}
        layers = [layer.resolve() for layer in project.knowledge_layers]
        hidden.append(
            (
                lambda path: path.name in pages and any(map(path.is_relative_to, layers)),
                f"an entry that {view.name} withholds, to measure what it is worth",
            )
        )
    return hidden


def _names(event: HookEvent) -> Iterator[str]:
    """Yield the texts that may name a file or a version."""
    if event.tool in READING_TOOLS:
        name = event.argument(READING_TOOLS[event.tool])
        yield from [name] if name else []
    elif event.tool == "Bash":
        yield from _WORDS.findall(event.argument("command"))


def _paths(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yield what each name may mean below a folder, patterns expanded."""
    for name in dict.fromkeys(names):
        try:
            yield (folder / Path(name).expanduser()).resolve()
            if _WILD.intersection(name):
                matches = iglob(str(folder / name))  # noqa: PTH207 - a pattern may be absolute
                yield from (Path(match).resolve() for match in islice(matches, _MOST_MATCHES))
        except (OSError, RuntimeError, ValueError):  # no file has this name
            continue
