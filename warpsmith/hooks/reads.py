"""Reads of earlier work during a campaign that hides it: agents are refused, and the session's own are recorded.

It sees paths that a tool or a command line names. A program that opens a file by itself stays unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from glob import iglob
from itertools import islice
from pathlib import Path

from warpsmith import project as projects
from warpsmith.campaign import earlier_work
from warpsmith.campaign.earlier_work import EarlierWork
from warpsmith.hooks import open_work
from warpsmith.hooks.event import Answer, HookEvent, permission_answer

READING_TOOLS = {"Read": "file_path", "Grep": "path", "Glob": "path"}
"""Tools that read files, each with the argument that names a file or a folder."""

_HIDDEN = re.compile(rb"^earlier_work: hidden$", re.MULTILINE)
_WORDS = re.compile(r"[^\s'\"`;|&<>()=:,]+")
_VERSION = re.compile(r"[a-z]\w*/v\d+(\.\w+)?")
_WILD = frozenset("*?[")
_MOST_MATCHES = 1000


def read_objection(event: HookEvent) -> Answer:
    """Refuse an agent's read of hidden work; record one of the session itself. Empty: no objection."""
    names = list(_names(event))
    project = projects.find_project(event.folder)
    view = open_work.current_campaign(project) if names else None
    if view is None or not _HIDDEN.search((view.folder / "manifest.yaml").read_bytes()):
        return {}
    work = EarlierWork(project, view.op, view.folder)
    versions = [name for name in names if _VERSION.fullmatch(name)]  # as commands name them
    paths = (*_paths(event.folder, names), *_paths(project.kernels / view.op, versions))
    path = next(filter(work.includes, paths), None)
    if path is None:
        return {}
    name = project.relative(path)
    if event.is_plugin_agent:
        return permission_answer(
            "deny", f"{name} is earlier work on {view.op}, which {view.name} hides; design without it."
        )
    earlier_work.record_read(view.folder, name, event.agent or "main")
    return {}


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
