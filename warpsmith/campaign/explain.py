"""Profile of a version, from timings, and from hardware counters if the machine provides them."""

from __future__ import annotations

from pathlib import Path

from warpsmith import files
from warpsmith.core.definition import Workload
from warpsmith.core.profile import Profile
from warpsmith.errors import MachineLacks, Misuse, TimedOut
from warpsmith.lab.gate.request import Request
from warpsmith.lab.instrumented import ncu_target
from warpsmith.lab.machine import hardware
from warpsmith.lab.tuning.observe import observe_version
from warpsmith.profiling.counters import Counters
from warpsmith.profiling.diagnosis import from_counters as counters
from warpsmith.profiling.diagnosis import from_timings as timings
from warpsmith.profiling.diagnosis.symptom import DRAM_CEILING
from warpsmith.profiling.ncu import collect as ncu_collect
from warpsmith.profiling.ncu import metrics as ncu_metrics
from warpsmith.profiling.ncu import report as ncu_report

MOST_SECONDS = 300.0
"""Time limit for collecting counters."""


def explain_version(request: Request, folder: Path, workload: str | None = None, *, full: bool = False) -> Profile:
    """Observe a version and explain it; its report and every counter are written to `folder`.

    Args:
        request: the version, its target and workloads.
        folder: the folder for the report.
        workload: the workload to collect counters of; by default the one with the most time above its floor.
        full: collect every section, for the window of ncu; no rule needs them.

    Raises:
        Misuse: the definition has no such workload.
        SolutionFailed: the version does not build or run.
    """
    _require_workload(request, workload)
    observations = observe_version(request)
    if request.page.target.kind != "gpu":
        return timings.profile_from_timings(observations)
    chosen = _workload(
        request, workload or max(observations.points, key=lambda p: p.seconds - p.floor_seconds).workload
    )
    try:
        counted = _collect(request, chosen, folder, full=full)
    except (MachineLacks, TimedOut) as error:
        plain = timings.profile_from_timings(observations)
        return plain.model_copy(update={"without": f"{plain.without}. None were read: {error}"})
    work = request.file.definition.work(chosen)
    return counters.profile_from_counters(
        counted,
        version=observations.version,
        language=observations.language,
        sha256=observations.solution_sha256,
        observations=observations,
        algorithmic_bytes=work.bytes,
        dram_ceiling_pct=_dram_ceiling(request),
        asks_for_tensor_cores=_asks_for_tensor_cores(request, chosen),
        float64=chosen.dtype == "float64",
        workload=chosen.name,
        details=counted.report,
    )


def explain_report(counted: Counters) -> Profile:
    """Explain a report from another tool on its own, without knowledge of the operator."""
    hottest = counted.hottest
    return counters.profile_from_counters(
        counted, version="v1", language="report", sha256=counted.sha256, details=counted.report
    ).model_copy(update={"without": f"what {hottest.kernel} must move and compute at least, and its host's time"})


def _collect(request: Request, workload: Workload, folder: Path, *, full: bool) -> Counters:
    """Collect the counters of one call at one workload."""
    lacks = ncu_collect.unavailable_reason()
    if lacks:
        raise MachineLacks(lacks)
    candidate, project = request.candidate, request.project
    request.tell(f"counters: {workload.name}")
    command = ncu_target.ncu_target_command(
        request.file.path,
        candidate.path,
        candidate.language,
        candidate.version,
        workload.name,
        request.page.target.id,
    )
    name = f"{candidate.language}-{candidate.version}-{workload.name}"
    sections = "full" if full else ncu_metrics.SECTIONS
    report = ncu_collect.collect_report(command, folder / name, sections=sections, timeout=MOST_SECONDS)
    counted = ncu_report.read_ncu_report(report, project.root)
    files.write_file(report.with_suffix(".json"), counted.model_dump_json(indent=1) + "\n")
    return counted


def _require_workload(request: Request, workload: str | None) -> None:
    definition = request.file.definition
    timed = [each.name for each in definition.select("representative", "full")]
    if workload is not None and workload not in timed:
        names = ", ".join(timed)
        raise Misuse(f"{definition.name} has no workload `{workload}` that is timed; it has: {names}.")


def _workload(request: Request, name: str) -> Workload:
    return next(each for each in request.file.definition.workloads if each.name == name)


def _dram_ceiling(request: Request) -> float:
    """Percentage of the DRAM's documented peak that a copy reached on this machine."""
    peak = hardware.documented_rate(request.page, "memory_bandwidth")
    copy = hardware.measured_rate(request.project, request.measurement, "copy")
    return 100 * copy.value / peak.value if peak and copy else DRAM_CEILING


def _asks_for_tensor_cores(request: Request, workload: Workload) -> bool | None:
    """Return whether the arithmetic takes longer on the plain pipes than the bytes take; None if not known."""
    plain = hardware.documented_rate(request.page, "peak_fp32")
    memory = hardware.documented_rate(request.page, "memory_bandwidth")
    if plain is None or memory is None:
        return None
    work = request.file.definition.work(workload)
    return work.flops / plain.value > work.bytes / memory.value
