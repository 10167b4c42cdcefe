"""Judgement of all kernels of one operator: the gate's checks for each, then one race of all that are right.

The gate sees numbered kernels in random order, and nothing of who wrote them.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from math import exp, fsum, log
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core.base import this_minute
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import BASELINES, GATE_VERSION, REFERENCE
from warpsmith.core.hardware import Measurement
from warpsmith.core.text import Tell
from warpsmith.errors import MachineFailed, MachineLacks
from warpsmith.lab.gate.judge import judge_version
from warpsmith.lab.gate.request import Candidate, Request
from warpsmith.lab.machine import identity
from warpsmith.lab.machine.hardware import HardwarePage
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.sides import SideSource
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.tuning.screen import Screen
from warpsmith.lab.workers.side import Limits
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.project import Project
from warpsmith.temporary import TemporaryFolder
from warpsmith.uplift import suite
from warpsmith.uplift.models import CellJudgement, CellRecord, WorkloadSpeed

_PATIENCE = Limits(seconds=120.0)
"""Limits of `torch.compile`, whose first calls compile."""


def judge_operator(
    results: Path, records: Sequence[CellRecord], page: HardwarePage, tell: Tell, seconds: float | None = None
) -> list[CellRecord]:
    """Judge the kernels of one operator; return their records in the same order.

    Args:
        results: folder of the submissions.
        records: submissions of one operator.
        page: page of the target.
        tell: takes lines of progress.
        seconds: seconds of each workload's timing; None: those of the gate.

    Raises:
        MachineFailed: the reference or the machine failed, which says nothing about the kernels.
    """
    (operator,) = {record.submission.cell.operator for record in records}
    with TemporaryFolder("uplift") as folder:
        root = Path(folder)
        project = Project(root, root / "kernels", root / "devlog", root / "docs" / "knowledge")
        file = suite.load_judged(operator, project)
        judgement = _OperatorJudgement(project, file, page, tell, seconds)
        kernels = [results / r.submission.cell.name / r.submission.kernel for r in records]
        order = sorted(range(len(kernels)), key=lambda _: secrets.randbits(32))
        verdicts = judgement.judge([kernels[index] for index in order])
        by_index = dict(zip(order, verdicts, strict=True))
    return [record.model_copy(update={"judgement": by_index[index]}) for index, record in enumerate(records)]


class _OperatorJudgement:
    """Judgement of one operator's kernels, which have numbers for names."""

    def __init__(
        self, project: Project, file: DefinitionFile, page: HardwarePage, tell: Tell, seconds: float | None
    ) -> None:
        self.project, self.file, self.page, self.tell = project, file, page, tell
        self.device = "cuda" if page.target.kind == "gpu" else "cpu"
        self.machine = identity.identify_machine(page.target)
        budget = TimingBudget.for_device(self.device)
        self.budget = replace(budget, seconds=seconds) if seconds else budget
        self.wrong: dict[int, str] = {}
        """Kernel to the reason why it is wrong."""

    def judge(self, kernels: Sequence[Path]) -> list[CellJudgement]:
        """Check each kernel, and race those that are right."""
        hidden = (self.project.kernels, self.project.devlog)
        with ExitStack() as stack:
            host = stack.enter_context(WorkerHost(self.device, hidden=hidden))
            candidates = {}
            for number, kernel in enumerate(kernels):
                self.tell(f"{self.file.definition.name}: checking kernel {number + 1} of {len(kernels)}")
                candidate = self._candidate(number, kernel)
                if candidate and self._passes_gate(number, candidate, host):
                    candidates[number] = candidate
            speeds = self._race(candidates, host) if candidates else {}
        return [self._judgement(number, speeds.get(number, {})) for number in range(len(kernels))]

    def _candidate(self, number: int, kernel: Path) -> Candidate | None:
        """Copy a kernel into the project as a version; None, and a reason, if no language claims it."""
        text = kernel.read_text(encoding="utf-8", errors="replace")
        language = languages.recognise(str(kernel), text)
        if language is None or languages.get(language).missing(self.page.target.kind):
            self.wrong[number] = "no language that runs on this target claims the file"
            return None
        version = f"v{number + 1}"
        path = self.project.kernels / self.file.definition.name / language / f"{version}{kernel.suffix}"
        files.write_file(path, text)
        return Candidate(path=path, language=language, version=version)

    def _passes_gate(self, number: int, candidate: Candidate, host: WorkerHost) -> bool:
        """Run the gate's correctness and probes.

        Raises:
            MachineFailed: the verdict is INVALID for another reason than that nothing was timed.
        """
        empty = Measurement(machine=self.machine, measured=this_minute(), ceilings={})
        evaluation = judge_version(
            Request(self.project, self.file, candidate, self.page, empty, timed=False, sanitized=False), host
        )
        if evaluation.correct:
            return True
        reason = evaluation.decision.reason
        if evaluation.decision.verdict == "INVALID":
            raise MachineFailed(f"{self.file.definition.name}: {reason}")
        self.wrong[number] = reason
        return False

    def _race(self, candidates: Mapping[int, Candidate], host: WorkerHost) -> dict[int, dict[str, WorkloadSpeed]]:
        """Check the kernels once more beside each other and time them; return each one's speeds by workload.

        Raises:
            MachineLacks: a language is only interpreted here, so nothing can be timed.
        """
        definition = self.file.definition
        timed = definition.select("representative")
        for candidate in candidates.values():
            if self.page.target.kind not in languages.get(candidate.language).targets:
                raise MachineLacks(f"{candidate.language} cannot be timed on {self.page.target.id}.")
        self.tell(f"{definition.name}: racing {len(candidates)} kernels")
        with TemporaryFolder("build") as folder:
            sources = {name: SideSource((self.file.path, name), limits=_PATIENCE) for name in BASELINES}
            for number, candidate in candidates.items():
                language = languages.get(candidate.language)
                build = language.build(candidate.path, definition, Path(folder) / str(number))
                sources[str(number)] = SideSource(build, candidate.language, Limits())
            screen = self._screen(host, sources, timed)
        for name in screen.failures:
            if name.isdigit():
                self.wrong[int(name)] = screen.failures[name]
            else:
                self.tell(f"{definition.name}: {name} fails: {screen.failures[name]}")
        return {number: _speeds(screen, str(number)) for number in candidates if number not in self.wrong}

    def _screen(self, host: WorkerHost, sources: Mapping[str, SideSource], timed: Sequence[Workload]) -> Screen:
        """Check and time the sides; again without those that no CUDA graph can hold, since one of them would have
        all sides launched call by call."""
        screen = Screen(
            self.file, host, self.device, sources, REFERENCE, "The reference", timed, timed, self.budget
        )
        screen.run()
        reasons: dict[str, str] = {}
        for samples in screen.samples.values():
            reasons |= samples.eager
        reasons.pop(REFERENCE, None)
        if not reasons:
            return screen
        captured = {name: source for name, source in sources.items() if name not in reasons}
        again = self._screen(host, captured, timed)
        again.failures |= {name: f"no CUDA graph can hold it: {reason}" for name, reason in reasons.items()}
        again.failures |= screen.failures
        return again

    def _judgement(self, number: int, speeds: dict[str, WorkloadSpeed]) -> CellJudgement:
        return CellJudgement(
            correct=number not in self.wrong,
            reason=" ".join(self.wrong.get(number, "").split())[:600],
            speedup=_geometric_mean([speed.speedup for speed in speeds.values()]),
            public_speedup=_geometric_mean([speed.speedup for speed in speeds.values() if speed.public]),
            workloads=speeds,
            judged=this_minute(),
            machine=self.machine.device,
            gate_version=GATE_VERSION,
        )


def _speeds(screen: Screen, name: str) -> dict[str, WorkloadSpeed]:
    """Return the median times of a side beside those of the faster baseline."""
    speeds = {}
    for workload, samples in screen.samples.items():
        medians = {side: statistics.median(times) for side, times in samples.seconds.items()}
        baseline = min((side for side in BASELINES if side in medians), key=lambda side: medians[side])
        speeds[workload] = WorkloadSpeed(
            seconds=medians[name],
            baseline_seconds=medians[baseline],
            baseline=baseline,
            public=suite.is_public(workload),
        )
    return speeds


def _geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean; 0 of nothing."""
    return exp(fsum(log(value) for value in values) / len(values)) if values else 0.0
