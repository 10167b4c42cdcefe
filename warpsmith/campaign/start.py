"""Creation of a campaign: its folder appears with a complete manifest, or not at all."""

from __future__ import annotations

import errno
import string
import time
from datetime import UTC, datetime

from pydantic import ValidationError

from warpsmith import files, languages
from warpsmith.campaign.history import manifests, store
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import PRIMARY_METRICS, Manifest
from warpsmith.core.text import describe_error
from warpsmith.errors import MissingInput, Misuse
from warpsmith.ledger.git import Git, campaign_ref, has_other_checkouts
from warpsmith.project import Project, mark_project

_UNTRACKED = """\
# Locks, files that `warpsmith report` renders from the records, and copies of files under kernels/.
.lock
.holder.json
.tmp-*
summary.md
performance_trend.md
*.svg
/*/*/rounds/[0-9]*/*-v[0-9]*
"""
"""The devlog's .gitignore: what a campaign's folder holds besides records, manifests and reports."""

_UNCHANGED = """\
# Records name files by their hash, so git must not change line endings.
* -text
"""
"""The .gitattributes of kernels, devlog and knowledge, without which a clone with `core.autocrlf` loses its
campaigns."""

_RENDERED = """\
# Pages are rendered from records: git merges them without conflicts, and `warpsmith report` renders them anew.
"""
"""Reason for the rest of the .gitattributes of devlog and knowledge, without which each merge of two clones ends
in conflicts of pages."""

_DIGITS = string.digits + string.ascii_lowercase
_TIME_STEP = 86400 / len(_DIGITS) ** 4
"""Seconds that one step of the last digit of a campaign's name stands for."""


def start_campaign(
    project: Project,
    op: str,
    target: str,
    language: str,
    *,
    figures: dict[str, str] | None = None,
    **settings: object,
) -> Campaign:
    """Start a campaign named `<op>-<language>-<target>-<YYYYMMDD>-<time of day>`. Names sort by time, and those of
    two clones differ unless both start within the same 51 ms. Where there are other clones, the time of day also
    ends the names of its versions.

    Args:
        project: the project.
        op: the operator; its definition must exist.
        target: the kind of device.
        language: language of the first version.
        figures: the target's figures, each as `value unit <- file:line`.
        settings: further fields of the manifest.

    Raises:
        MissingInput: there is no definition.
        Misuse: the language is unknown, a setting does not validate, or git is requested and not available.
    """
    definition = project.definition_path(op)
    if not definition.is_file():
        raise MissingInput(f"{definition} does not exist; write the operator's definition first.")
    languages.get(language)
    merged = has_other_checkouts(project.root)
    while True:
        moment = datetime.now(UTC)
        digits = _time_digits(moment)
        name = f"{op}-{language}-{target}-{moment:%Y%m%d}-{digits}"
        settings["version_suffix"] = digits if merged else None
        manifest = campaign_manifest(name, op, target, language, figures or {}, settings)
        campaign = Campaign(project, project.devlog / op / name, manifest)
        if campaign.folder.exists() or (manifest.git == "branch" and not _begin_branch(campaign)):
            time.sleep(_TIME_STEP)
            continue
        _configure_git(project)
        try:
            files.publish_folder(manifests.manifest_files(manifest), campaign.folder)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):  # these say that another start took the name
                raise
            continue
        mark_project(project)
        store.mark_started(campaign)
        (project.kernels / op / language).mkdir(exist_ok=True)  # where the first version goes
        return campaign


def _time_digits(moment: datetime) -> str:
    """Return the time of day as four digits of base 36, so that it is short: `kfx0`."""
    second = moment.hour * 3600 + moment.minute * 60 + moment.second + moment.microsecond / 1e6
    steps, digits = int(second / _TIME_STEP), ""
    for _ in range(4):
        steps, digit = divmod(steps, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits


def campaign_manifest(
    name: str, op: str, target: str, language: str, figures: dict[str, str], settings: dict[str, object]
) -> Manifest:
    """Return the manifest of a campaign with these settings; raises Misuse if one does not validate."""
    try:
        manifest = Manifest.model_validate(
            {
                "campaign": name,
                "target_op": op,
                "target": target,
                "target_language": language,
                **settings,
                "figures": figures,
                "created": this_minute(),
            }
        )
        return manifest.model_copy(update={"primary_metric": PRIMARY_METRICS[manifest.objective]})
    except ValidationError as error:
        raise Misuse(f"The campaign cannot start: {describe_error(error)}.") from error


def _begin_branch(campaign: Campaign) -> bool:
    """Create the campaign's branch at HEAD; return False if a branch of that name exists."""
    git, ref = Git(campaign.project.root), campaign_ref(campaign.name)
    git.path(campaign.project.kernels)
    git.path(campaign.folder)
    if git.commit(ref):
        return False
    head = git.commit("HEAD")
    return head is None or git.move(ref, head, None)


def _configure_git(project: Project) -> None:
    """Write what git must leave out and leave as it is, unless there are such files: a user's own lines stay."""
    shared = "".join(f"{page} merge=union\n" for page in ("experience/**/*.md", "index.md", "README.md"))
    attributes = {
        project.knowledge / ".gitattributes": _UNCHANGED + _RENDERED + shared,
        project.kernels / ".gitattributes": _UNCHANGED,
        project.devlog / ".gitattributes": _UNCHANGED + _RENDERED + "*.md merge=union\n",
    }
    for path, text in {project.devlog / ".gitignore": _UNTRACKED, **attributes}.items():
        if not path.exists():
            files.write_file(path, text)
