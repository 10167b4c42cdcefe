"""Explain: a version's profile, from timings always and from hardware counters where the machine gives them."""

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
"""What collecting counters may take."""


def explain_version(request: Request, place: Path, workload: str | None = None, *, full: bool = False) -> Profile:
    """Observe a version and explain it; its report and every counter are kept in `place`.

    Args:
        request: the version, its target and workloads.
        place: the folder for the report.
        workload: whose counters are collected; by default the one that loses the most time against its floor.
        full: whether ncu collects every section, for its own window; no rule needs them.

    Raises:
        Misuse: the definition has no such workload.
        SolutionFailed: the version does not build or run.
    """
    _known(request, workload)
    seen = observe_version(request)
    if request.page.target.kind != "gpu":
        return timings.profile_from_timings(seen)
    chosen = _named(request, workload or max(seen.points, key=lambda p: p.seconds - p.floor_seconds).workload)
    try:
        counted = _collect(request, chosen, place, full=full)
    except (MachineLacks, TimedOut) as error:
        plain = timings.profile_from_timings(seen)
        return plain.model_copy(update={"without": f"{plain.without}. None were read: {error}"})
    work = request.file.definition.work(chosen)
    return counters.profile_from_counters(
        counted,
        version=seen.version,
        language=seen.language,
        sha256=seen.solution_sha256,
        observations=seen,
        algorithmic_bytes=work.bytes,
        dram_ceiling_pct=_dram_ceiling(request),
        asks_for_tensor_cores=_asks_for_tensor_cores(request, chosen),
        float64=chosen.dtype == "float64",
        workload=chosen.name,
        details=counted.report,
    )


def explain_report(counted: Counters) -> Profile:
    """A report from elsewhere, explained by itself: nothing is known of the operator."""
    hottest = counted.hottest
    return counters.profile_from_counters(
        counted, version="v1", language="report", sha256=counted.sha256, details=counted.report
    ).model_copy(update={"without": f"what {hottest.kernel} must move and compute at least, and its host's time"})


def _collect(request: Request, workload: Workload, place: Path, *, full: bool) -> Counters:
    """The counters of one call at one workload."""
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
    report = ncu_collect.collect_report(command, place / name, sections=sections, timeout=MOST_SECONDS)
    counted = ncu_report.read_ncu_report(report, project.root)
    files.write_file(report.with_suffix(".json"), counted.model_dump_json(indent=1) + "\n")
    return counted


def _known(request: Request, workload: str | None) -> None:
    definition = request.file.definition
    timed = [each.name for each in definition.select("representative", "full")]
    if workload is not None and workload not in timed:
        known = ", ".join(timed)
        raise Misuse(f"{definition.name} has no workload `{workload}` that is timed; it has: {known}.")


def _named(request: Request, name: str) -> Workload:
    return next(each for each in request.file.definition.workloads if each.name == name)


def _dram_ceiling(request: Request) -> float:
    """Percent of the DRAM's documented peak that a copy reached on this machine."""
    peak = hardware.documented_rate(request.page, "memory_bandwidth")
    copy = hardware.measured_rate(request.project, request.measurement, "copy")
    return 100 * copy.value / peak.value if peak and copy else DRAM_CEILING


def _asks_for_tensor_cores(request: Request, workload: Workload) -> bool | None:
    """Whether the operator's arithmetic takes longer on the plain pipes than its bytes take; None: not known."""
    plain = hardware.documented_rate(request.page, "peak_fp32")
    memory = hardware.documented_rate(request.page, "memory_bandwidth")
    if plain is None or memory is None:
        return None
    work = request.file.definition.work(workload)
    return work.flops / plain.value > work.bytes / memory.value
