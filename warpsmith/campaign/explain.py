"""Profile of a version, from timings, and from hardware counters if the machine provides them."""

from __future__ import annotations

import math
from pathlib import Path

from warpsmith import files, languages
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.profile import Observations, Profile
from warpsmith.errors import MachineLacks, Misuse, TimedOut
from warpsmith.lab.gate.request import Request
from warpsmith.lab.instrumented import ncu_target
from warpsmith.lab.machine import hardware, system
from warpsmith.lab.tuning.observe import observe_version
from warpsmith.languages.base import BuildFailed
from warpsmith.profiling.assembly.inspect import inspect_assembly
from warpsmith.profiling.counters import Counters
from warpsmith.profiling.diagnosis import from_counters as counters
from warpsmith.profiling.diagnosis import from_timings as timings
from warpsmith.profiling.diagnosis.cpu_code import read_code, read_source
from warpsmith.profiling.diagnosis.cpu_rules import DataSizes
from warpsmith.profiling.diagnosis.symptom import DRAM_CEILING
from warpsmith.profiling.ncu import collect as ncu_collect
from warpsmith.profiling.ncu import metrics as ncu_metrics
from warpsmith.profiling.ncu import report as ncu_report

PRODUCT_FLOPS = 8.0
"""Operations for each element of inputs and outputs from which an operator counts as a product."""

_HALF = ("float16", "bfloat16")

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
    requested = _requested_workload(request, workload) if workload else None
    observations = observe_version(request)
    if request.page.target.kind != "gpu":
        return _explain_cpu(request, observations)
    slowest = max(observations.points, key=lambda p: p.seconds - p.floor_seconds)
    chosen = requested or _workload(request, slowest.workload)
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
        half_product=_is_half_product(request.file.definition, chosen),
        workload=chosen.name,
        details=counted.report,
    )


def _explain_cpu(request: Request, observations: Observations) -> Profile:
    """Explain a CPU version by its timings, its assembly and the sizes of its data."""
    candidate, definition = request.candidate, request.file.definition
    if "cpu" not in languages.get(candidate.language).targets:
        return timings.profile_from_timings(observations)  # interpreted: its code is for a GPU
    source = candidate.path.read_text(errors="replace")
    notes = [note for resource in observations.resources for note in resource.notes]
    missing = ""
    try:
        assembly = inspect_assembly(request.project, candidate.path, candidate.language, definition)
        code = read_code(assembly, source, {workload.dtype for workload in definition.select(*request.sets)})
    except (MachineLacks, Misuse, BuildFailed) as error:
        code, missing = read_source(source, notes), f"; the assembly was not read: {error}"
    slowest = max(observations.points, key=lambda point: point.seconds - point.floor_seconds)
    sizes = _data_sizes(definition, _workload(request, slowest.workload))
    profile = timings.profile_from_timings(observations, code, sizes)
    return profile.model_copy(update={"without": profile.without + missing})


def _data_sizes(definition: Definition, workload: Workload) -> DataSizes:
    """Return the sizes of a workload's data, and of this machine's caches."""
    inputs = list(definition.tensor_inputs.values())
    rows = (
        definition.nbytes(spec, workload) / math.prod(definition.shape(spec, workload)[:-1]) for spec in inputs
    )
    return DataSizes(
        row=max(rows, default=0.0),
        inputs=float(sum(definition.nbytes(spec, workload) for spec in inputs)),
        outputs=float(sum(definition.nbytes(spec, workload) for spec in definition.outputs.values())),
        core_cache=system.core_cache_bytes() or 0,
        all_caches=system.cache_bytes() or 0,
    )


def explain_report(counted: Counters) -> Profile:
    """Explain a report from another tool on its own, without knowledge of the operator."""
    hottest = counted.hottest
    return counters.profile_from_counters(
        counted,
        version="v1",
        language="report",
        sha256=counted.sha256,
        details=counted.report,
        operator_known=False,
    ).model_copy(
        update={"without": f"not known: what {hottest.kernel} must move and compute at least, and its host's time"}
    )


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


def _requested_workload(request: Request, name: str) -> Workload:
    definition = request.file.definition
    timed, workload = definition.select("representative", "full"), definition.find_workload(name)
    if workload is None or workload not in timed:
        names = ", ".join(each.name for each in timed)
        raise Misuse(f"{definition.name} has no workload `{name}` that is timed; it has: {names}.")
    return workload


def _workload(request: Request, name: str) -> Workload:
    return next(each for each in request.file.definition.workloads if each.name == name)


def _dram_ceiling(request: Request) -> float:
    """Percentage of the DRAM's documented peak that a copy reached on this machine."""
    peak = hardware.documented_rate(request.page, "memory_bandwidth")
    copy = hardware.measured_rate(request.project, request.measurement, "copy")
    return 100 * copy.value / peak.value if peak and copy else DRAM_CEILING


def _is_half_product(definition: Definition, workload: Workload) -> bool:
    """Return whether the operator multiplies half-precision numbers, with more work than a reduction has."""
    specs = [*definition.tensor_inputs.values(), *definition.outputs.values()]
    elements = sum(math.prod(definition.shape(spec, workload)) for spec in specs)
    half = any(definition.dtype(spec, workload) in _HALF for spec in definition.tensor_inputs.values())
    return half and definition.work(workload).flops >= PRODUCT_FLOPS * elements


def _asks_for_tensor_cores(request: Request, workload: Workload) -> bool | None:
    """Return whether the arithmetic takes longer on the plain pipes than the bytes take; None if not known."""
    plain = hardware.documented_rate(request.page, "peak_fp32")
    memory = hardware.documented_rate(request.page, "memory_bandwidth")
    if plain is None or memory is None:
        return None
    work = request.file.definition.work(workload)
    return work.flops / plain.value > work.bytes / memory.value
