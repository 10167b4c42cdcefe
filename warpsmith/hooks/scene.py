"""Scene: the campaigns and trials of a project as far as names of files and one record tell; no model is built."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from warpsmith.campaign.rounds.loop import LAST, LOOP
from warpsmith.project import Project


@dataclass(frozen=True)
class Standing:
    """A campaign, seen from outside."""

    folder: Path
    """`<devlog>/<op>/<campaign>`."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.folder.name

    @property
    def op(self) -> str:
        """Its operator."""
        return self.folder.parent.name

    @cached_property
    def closed(self) -> list[Path]:
        """The folders of its closed rounds in order."""
        return sorted(path for path in self.folder.glob("rounds/[0-9][0-9][0-9]") if path.is_dir())

    @cached_property
    def steps(self) -> set[str]:
        """The finished steps of its open round."""
        return {path.stem for path in self.folder.glob("rounds/open/*.json")}

    @cached_property
    def outcome(self) -> dict[str, Any]:
        """The outcome of its last closed round; empty before the first, or where it does not read."""
        try:
            found = json.loads((self.closed[-1] / "record.json").read_bytes())["outcome"]
        except (IndexError, OSError, ValueError, KeyError, TypeError):
            return {}
        return found if isinstance(found, dict) else {}

    @property
    def active(self) -> bool:
        """Whether rounds are still due: one is open, or no stop condition held at the last."""
        return bool(self.steps) or not self.outcome.get("stop")

    @property
    def phase(self) -> str:
        """The phase that its round stands at."""
        baseline = not self.outcome.get("best")
        for step in LOOP:
            if step.name not in LAST and (step.baseline or not baseline) and not self._finished(step.name):
                return step.phase
        return "LEARN"

    @property
    def progress(self) -> str:
        """Changes whenever a step is finished."""
        return f"{self.name} {len(self.closed)} {' '.join(sorted(self.steps))}"

    def judged(self) -> set[str]:
        """Its judged versions, as `language-v3.suffix`: each left a copy."""
        copies = [*self.folder.glob("rounds/[0-9][0-9][0-9]/*-v*.*"), *self.folder.glob("rounds/open/*-v*.*")]
        return {path.name for path in copies}

    def _finished(self, step: str) -> bool:
        # A version stands outside of the round's folder, and a wrong one is not profiled after its verdict.
        later = {"design": "verdict", "profile_after": "outcome"}.get(step, step)
        return bool(self.steps & {step, later})


def campaigns(project: Project) -> list[Standing]:
    """Every campaign of a project, the one touched last first."""
    found = [Standing(path.parent) for path in project.devlog.glob("*/*/manifest.yaml")]
    return sorted(found, key=lambda standing: _touched(standing.folder), reverse=True)


def at_work(project: Project) -> Standing | None:
    """The campaign that is worked on: the environment's, else the active one that was touched last."""
    active = [standing for standing in campaigns(project) if standing.active]
    named = os.environ.get("WARPSMITH_CAMPAIGN")
    return next((s for s in active if s.name == named), active[0] if active and not named else None)


def trials(project: Project) -> list[Path]:
    """The folders of the open trials of whole programs whose edit is not judged yet."""
    found = project.devlog.glob("programs/*/trials/open/plan.json")
    return sorted(path.parent for path in found if not path.with_name("record.json").exists())


def workbench(project: Project, path: Path) -> bool:
    """Whether a file is of the sources that a repository's campaign works on in its own folder."""
    parts = path.relative_to(project.devlog).parts
    return parts[:1] == ("repo",) and parts[2:3] == ("src",)


def _touched(folder: Path) -> float:
    places = (folder, folder / "rounds", folder / "rounds" / "open")
    return max(place.stat().st_mtime for place in places if place.exists())
