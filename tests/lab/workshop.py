"""A project to judge in, and short ways to its parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from warpsmith.core.hardware import Ceiling, Measurement, Noise
from warpsmith.lab.gate.request import Candidate, Request
from warpsmith.lab.machine import hardware, identity
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.project import Project


@dataclass
class Workshop:
    """A project, and short ways to its parts."""

    project: Project

    def define(self, name: str, text: str) -> Path:
        """Write a definition; its file."""
        path = self.project.definition_path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def load(self, name: str, text: str) -> DefinitionFile:
        """Write a definition and import it."""
        return definition_file.load_definition(self.define(name, text))

    def solution(self, text: str, language: str = "cpp", version: str = "v1") -> Candidate:
        """Write a solution."""
        path = self.project.root / f"{version}{'.cpp' if language == 'cpp' else '.py'}"
        path.write_text(dedent(text))
        return Candidate(path, language, version)

    def measurement(self, target: str = "cpu", floor: float = 0.5) -> Measurement:
        """What a measurement of this machine might say, made up."""
        page = hardware.read_target_page(self.project, target)
        ceilings = {
            name: Ceiling(value=10.0, unit="GB/s", best=11.0, spread=0.01, how="made up")
            for name in ("copy", "read")
        }
        return Measurement(
            machine=identity.identify_machine(page.target),
            measured="2026-01-01 00:00",
            ceilings=ceilings,
            noise=Noise(floor=floor, trials=2, how="made up"),
        )

    def request(self, file: DefinitionFile, candidate: Candidate, **changes: object) -> Request:
        """A request that is judged fast on the CPU."""
        usual = {
            "page": hardware.read_target_page(self.project, "cpu"),
            "measurement": self.measurement(),
            "budget": TimingBudget(rounds=3, most=3, seconds=0),
        }
        return Request(project=self.project, file=file, candidate=candidate, **{**usual, **changes})
