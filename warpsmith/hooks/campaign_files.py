"""Files that only the lab writes while a campaign is active, known by their places in the project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePath

from warpsmith.hooks import open_work
from warpsmith.hooks.open_work import CampaignView
from warpsmith.project import Project

LAB_FOLDERS = ("backups", "profiles", "programs", "redteam", "sessions", "tunings", "verdicts")
"""Folders of `.warpsmith/` that hold the lab's own files; the others are for scratch files."""

_RECORD = "is a record or a page rendered from records; only `warpsmith` commands write it (`warpsmith next`)."


def lab_file_reason(project: Project, path: Path, current: CampaignView | None) -> str:
    """Return the reason why only the lab writes this file during the current campaign; empty if anyone may."""
    if _is_repo_record(project, path):
        return _RECORD
    if current is None:
        return ""
    if path.is_relative_to(project.devlog) and not open_work.is_repository_source(project, path):
        return _RECORD
    if path.is_relative_to(project.knowledge):
        return "is knowledge or evidence; only `warpsmith learn` changes it."
    if any(path.is_relative_to(folder) for folder in _lab_folders(project)):
        return "is the lab's own: a verdict, a measurement or a backup; only `warpsmith` commands write it."
    if path.is_relative_to(project.kernels):
        return _kernel_reason(project, path, current)
    return ""


def find_lab_file(
    project: Project, folder: Path, names: Sequence[str], current: CampaignView | None
) -> Path | None:
    """Find a file below a folder that only the lab writes; None if there is none.

    Args:
        project: the project.
        folder: a folder above such files, or one that holds them.
        names: patterns, one of which the file's name, a folder of it, or its path matches, and none with `!`
            before it; empty: all files.
        current: the campaign that is worked on, if there is one.
    """
    for root in _protected_roots(project):
        base = root if root.is_relative_to(folder) else folder
        if not base.is_relative_to(root):
            continue
        for path in (base, *base.rglob("*")):
            if not path.is_file() or not _matches(path.relative_to(folder), names):
                continue
            if lab_file_reason(project, path, current):
                return path
    return None


def _protected_roots(project: Project) -> Iterator[Path]:
    yield from (project.devlog, project.knowledge, *_lab_folders(project))
    for campaign in open_work.campaign_views(project):
        folder = project.kernels / campaign.op
        yield folder / "definition.py"
        yield from (folder / name.replace("-", "/", 1) for name in campaign.judged_versions())


def _lab_folders(project: Project) -> list[Path]:
    return [project.scratch / name for name in LAB_FOLDERS]


def _matches(path: PurePath, names: Sequence[str]) -> bool:
    parts = (f"./{path}", *path.parts)
    left_out = [name[1:] for name in names if name.startswith("!")]
    searched = [name for name in names if not name.startswith("!")]
    if any(fnmatch(part, name) for name in left_out for part in parts):
        return False
    return not searched or any(fnmatch(part, name) for name in searched for part in parts)


def _is_repo_record(project: Project, path: Path) -> bool:
    """Return True for a file of a repository's campaign that is no source of its workbench."""
    if not path.is_relative_to(project.devlog / "repo") or open_work.is_repository_source(project, path):
        return False
    name, *_ = (*path.relative_to(project.devlog / "repo").parts, "")
    return bool(name) and (project.devlog / "repo" / name / "campaign.json").is_file()


def _kernel_reason(project: Project, path: Path, current: CampaignView) -> str:
    """Return the reason why nobody writes this file of an operator; empty if anyone may."""
    op, *rest = (*path.relative_to(project.kernels).parts, "")[:-1] or ("",)
    campaigns = [campaign for campaign in open_work.campaign_views(project) if campaign.op == op]
    if not campaigns:
        return ""
    if rest == ["definition.py"]:
        return (
            f"is the definition that {campaigns[0].name} judges by: its reference, inputs and tolerances"
            " must not change. To mend a wrong one, write it to another file and run `warpsmith amend"
            f" {campaigns[0].name} --definition FILE`; another operator is a new one: `warpsmith new`."
        )
    if "-".join(rest) in {version for campaign in campaigns for version in campaign.judged_versions()}:
        return "was judged, and records cite it; write the next version to a new file (`warpsmith next`)."
    if rest and not any(campaign.active for campaign in campaigns):
        return f"belongs to another campaign than {current.name}."
    return ""
