"""Open campaigns and trials of a project, read from file names and one record without building any model."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from warpsmith import files
from warpsmith.project import Project


@dataclass(frozen=True)
class CampaignView:
    """A campaign as its files show it."""

    folder: Path
    """Folder of the campaign: `<devlog>/<op>/<campaign>`."""

    @property
    def name(self) -> str:
        """Name of the campaign."""
        return self.folder.name

    @property
    def op(self) -> str:
        """Operator of the campaign."""
        return self.folder.parent.name

    @cached_property
    def closed(self) -> list[Path]:
        """Folders of its closed rounds, in order."""
        folders = [path for path in self.folder.glob(f"rounds/{files.NUMBERED}") if path.is_dir()]
        return sorted(folders, key=files.number_order)

    @cached_property
    def steps(self) -> set[str]:
        """Names of the finished files of its open round."""
        return {path.stem for path in self.folder.glob("rounds/open/*.json")}

    @cached_property
    def last_record(self) -> dict[str, Any]:
        """Record of its last closed round; empty before the first, or if it cannot be read."""
        try:
            record = json.loads((self.closed[-1] / "record.json").read_bytes())
        except (IndexError, OSError, ValueError):
            return {}
        return record if isinstance(record, dict) else {}

    @property
    def outcome(self) -> dict[str, Any]:
        """Outcome of its last closed round; empty before the first."""
        outcome = self.last_record.get("outcome")
        return outcome if isinstance(outcome, dict) else {}

    @property
    def active(self) -> bool:
        """True if a round is open, or no stop condition held at the last one; False once it is closed."""
        if (self.folder / "closed.json").exists():
            return False
        return bool(self.steps) or not self.outcome.get("stop")

    @property
    def phase(self) -> str:
        """Phase that is due in its round."""
        from warpsmith.campaign.rounds.loop import LAST, LOOP

        baseline = not self.outcome.get("best")
        for step in LOOP:
            if step.name not in LAST and (step.baseline or not baseline) and not self._finished(step.name):
                return step.phase
        return "LEARN"

    @property
    def progress(self) -> str:
        """Text that changes whenever a phase is finished."""
        return f"{self.name} {len(self.closed)} {' '.join(sorted(self.steps))}"

    def judged_versions(self) -> set[str]:
        """Return its judged versions, as `language-v3.suffix`: each left a copy."""
        copies = [*self.folder.glob(f"rounds/{files.NUMBERED}/*-v*.*"), *self.folder.glob("rounds/open/*-v*.*")]
        return {path.name for path in copies}

    def _carries_profile(self) -> bool:
        """Return True if the last round profiled the version that is the best since."""
        struck = (self.closed[-1] / "struck.json").exists() if self.closed else False
        accepted = self.last_record.get("solution") == self.outcome.get("best")
        return bool(accepted and not struck and self.last_record.get("profile_after"))

    def _finished(self, step: str) -> bool:
        # A version lies outside of the round's folder, and a wrong one is not profiled after its verdict.
        if step == "profile" and self._carries_profile():
            return True
        later = {"design": "verdict", "profile_after": "outcome"}.get(step, step)
        return bool(self.steps & {step, later})


def campaign_views(project: Project) -> list[CampaignView]:
    """Return every campaign of a project, the one that was changed last first."""
    views = [CampaignView(path.parent) for path in project.devlog.glob("*/*/manifest.yaml")]
    return sorted(views, key=lambda view: _last_change(view.folder), reverse=True)


def current_campaign(project: Project) -> CampaignView | None:
    """Return the campaign that is worked on: the environment's, else the active one that was changed last."""
    name = os.environ.get("WARPSMITH_CAMPAIGN")
    views = campaign_views(project)
    return next((view for view in views if (not name or view.name == name) and view.active), None)


def open_trials(project: Project) -> list[Path]:
    """Return the folders of the open trials of whole programs whose edit is not judged yet."""
    plans = project.devlog.glob("programs/*/trials/open/plan.json")
    return sorted(path.parent for path in plans if not path.with_name("record.json").exists())


def is_repository_source(project: Project, path: Path) -> bool:
    """Return True for a source in the folder where a repository's campaign works on its own copy."""
    parts = path.relative_to(project.devlog).parts
    return parts[:1] == ("repo",) and parts[2:3] == ("src",)


def _last_change(folder: Path) -> float:
    folders = (folder, folder / "rounds", folder / "rounds" / "open")
    return max(path.stat().st_mtime for path in folders if path.exists())
