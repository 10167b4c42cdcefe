"""Request: the version that is judged, and the conditions under which it is judged, raced, tuned or observed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core.base import this_minute
from warpsmith.core.campaign import Objective, Thresholds
from warpsmith.core.definition import Workload, WorkloadSet
from warpsmith.core.evaluation import GATE_VERSION, Evaluation, Provenance
from warpsmith.core.hardware import Machine, Measurement
from warpsmith.core.port.check import KernelLaunch
from warpsmith.core.text import Tell
from warpsmith.lab.machine import provenance
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.workers.side import Limits
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.project import Project


@dataclass(frozen=True)
class Candidate:
    """A version that is judged, or the best one before it."""

    path: Path
    """Path of its file."""
    language: str
    """Name of its language."""
    version: str
    """Name of the version, such as `v3`."""


@dataclass(frozen=True)
class Request:
    """A candidate, and the conditions of its judgement."""

    project: Project
    """Project of the candidate."""
    file: DefinitionFile
    """Definition of the operator."""
    candidate: Candidate
    """Version that is judged."""
    page: HardwarePage
    """Page of the target."""
    measurement: Measurement
    """Measurement of this machine: ceilings and the A/A floor."""
    best: Candidate | None = None
    """Best accepted version; None at the baseline."""
    accepted: Evaluation | None = None
    """Judgement that accepted the best version, against whose times it is held; None outside of a campaign."""
    sets: tuple[WorkloadSet, ...] = ("representative",)
    """Workload sets that are timed; odd workloads are always checked."""
    timed: bool = True
    """False for a quick check, which ends after the probes."""
    sanitized: bool = True
    """False to leave out the sanitizers, which the verdict then says."""
    peers: tuple[str, ...] = ()
    """Further sides to time: `torch.compile`, or peers of the definition."""
    objective: Objective = "time"
    """Quantity in which a version must beat the best one."""
    thresholds: Thresholds = field(default_factory=Thresholds)
    """Thresholds of the decision."""
    judgement: int = 1
    """Number of this judgement among its campaign's comparisons with a best version."""
    limits: Limits = field(default_factory=Limits)
    """Time and memory that the solution may take."""
    budget: TimingBudget | None = None
    """Rounds and seconds for which each workload is timed; None: those of the device."""
    recorded_for: str = ""
    """Architecture whose compiler gets what an interpreted version launches; empty: no launches are recorded."""
    take_launches: Callable[[Workload | None, Sequence[KernelLaunch]], None] | None = None
    """Takes each workload with what plain calls launched there, and None with what other calls did."""
    tell: Tell = lambda _: None
    """Takes lines of progress."""

    def start_host(self) -> WorkerHost:
        """Start a worker host for its judgement."""
        return start_judgement_host(self.project, self.page, self.candidate.language)

    def provenance(self, seed: int, machine: Machine) -> Provenance:
        """Return what a judgement of this request was made from.

        Args:
            seed: seed of its inputs.
            machine: machine that it ran on.
        """
        candidate, best = self.candidate.path, self.best.path if self.best else None
        return Provenance(
            solution=self.project.relative(candidate),
            solution_sha256=files.file_sha256(candidate),
            definition_sha256=self.file.sha256,
            best=self.project.relative(best) if best else None,
            best_sha256=files.file_sha256(best) if best else None,
            lab_sha256=provenance.lab_sha256(),
            gate_version=GATE_VERSION,
            seed=seed,
            machine=machine,
            measured=this_minute(),
        )


def start_judgement_host(project: Project, page: HardwarePage, language: str) -> WorkerHost:
    """Start a worker host for versions of a language on a target; they cannot read the project there.

    It imports PyTorch in the background, as the grader does when it loads the definition.
    """
    kind = page.target.kind
    device, interpret = "cuda" if kind == "gpu" else "cpu", kind not in languages.get(language).targets
    return WorkerHost(device, interpret=interpret, hidden=(project.kernels, project.devlog))
