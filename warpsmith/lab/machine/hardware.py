"""Hardware pages: figures with the line that states each, and the time limits that they imply for a workload."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith.core import gate_rules
from warpsmith.core.arithmetic.occupancy import MultiprocessorLimits
from warpsmith.core.arithmetic.roofline import Rate, Roofline
from warpsmith.core.base import Model
from warpsmith.core.definition import Definition, Work, Workload
from warpsmith.core.hardware import UNITS, Clock, Measurement, Target
from warpsmith.core.text import describe_error
from warpsmith.errors import BadEntry, MachineLacks, Misuse, UnknownFigure
from warpsmith.lab.machine import identity, measurement_store, system
from warpsmith.project import SHIPPED, Project

if TYPE_CHECKING:
    from yaml.nodes import Node

_RATES = {
    "float64": ("fma_float64", "peak_fp64"),
    "float32": ("fma_float32", "peak_fp32"),
    "float16": ("matrix_float16", "peak_fp16_tensor"),
    "bfloat16": ("matrix_bfloat16", "peak_bf16_tensor"),
    "float8_e4m3fn": ("", "peak_fp8_tensor"),
    "float8_e5m2": ("", "peak_fp8_tensor"),
}
"""Measured ceiling (empty if none is measured) and documented figure of each data type's arithmetic."""


_SHARED_STEPS = {"gfx942": 512, "gfx950": 1280}
"""Bytes in whose multiples LDS is handed out, by LLVM's AMDGPU backend; 128 of NVIDIA's shared memory."""


@dataclass(frozen=True)
class HardwarePage:
    """Hardware page of one target."""

    target: Target
    """Front matter of the page."""
    path: Path
    """File of the page."""
    display_path: str
    """Path in citations: relative to the project, or to the root of the shipped files."""
    lines: dict[str, int]
    """Line of each figure in the file, counted from 1."""

    def citation(self, name: str) -> str:
        """Cite the line of a figure: `docs/knowledge/hardware/h200.md:L12`."""
        return f"{self.display_path}:L{self.lines[name]}"


class SourcedFigure(Model):
    """Known figure with the place that it was read from."""

    name: str
    """Id of the figure."""
    value: float
    """Value in SI units (bytes, operations, hertz, watts, or these per second); counts have no unit."""
    unit: str
    """Unit on the page."""
    text: str
    """Figure with its source: `4.8 TB/s <- docs/knowledge/hardware/h200.md:L12`."""


def list_targets(project: Project) -> list[str]:
    """List the ids of all targets that have a page, sorted."""
    return sorted({path.stem for layer in project.knowledge_layers for path in (layer / "hardware").glob("*.md")})


def read_target_page(project: Project, target: str) -> HardwarePage:
    """Read the page of a target; the project's own page takes precedence over the shipped one.

    Raises:
        Misuse: there is no such target.
        BadEntry: the page does not parse.
    """
    targets = list_targets(project)
    if target not in targets:
        if page := find_page_by_isa(project, target):
            raise Misuse(
                f"`{target}` is an architecture, not a target; name a device that has it: {page.target.id}."
            )
        raise Misuse(f"Unknown target `{target}`; known: {', '.join(targets) or 'none'}.")
    paths = [layer / "hardware" / f"{target}.md" for layer in project.knowledge_layers]
    path = next(candidate for candidate in paths if candidate.is_file())
    display_path = _display_path(project, path)
    try:
        target_page, lines = _parse(path.read_text(encoding="utf-8"))
    except (OSError, TypeError, ValueError) as error:
        raise BadEntry(
            f"{display_path} is not a valid hardware page: {describe_error(error)}; fix the page."
        ) from error
    if target_page.id != target:
        raise BadEntry(f"{display_path} says `id: {target_page.id}`; it must be `{target}`, like the file name.")
    return HardwarePage(target_page, path, display_path, lines)


def sourced_figure(page: HardwarePage, name: str) -> SourcedFigure:
    """Return one figure of a page with its source.

    Raises:
        UnknownFigure: the page lacks it, or gives it as UNKNOWN.
    """
    figure = page.target.figures.get(name)
    if figure is None:
        raise UnknownFigure(f"{page.display_path} has no figure `{name}`; add it there with a source.")
    if figure.value == "UNKNOWN":
        raise UnknownFigure(f"{page.citation(name)} gives `{name}` as UNKNOWN; add its value with a source.")
    return SourcedFigure(
        name=name,
        value=figure.value * UNITS.get(figure.unit, 1.0),
        unit=figure.unit,
        text=f"{figure.value:g} {figure.unit} <- {page.citation(name)}",
    )


def find_local_target(project: Project) -> Target | None:
    """Return the target of this machine: `cpu` if it has no GPU, None if no page names its GPU."""
    gpu = identity.visible_gpu()
    if gpu is None:
        return read_target_page(project, "cpu").target
    pages = (read_target_page(project, name).target for name in list_targets(project))
    return next((target for target in pages if identity.matches_target(target, gpu.name)), None)


def choose_target(project: Project, name: str | None) -> Target:
    """Return the target of a page, or of this machine if none is named; raises as `read_target_page` and
    `require_local_target`."""
    return read_target_page(project, name).target if name else require_local_target(project)


def require_local_target(project: Project) -> Target:
    """Return the target of this machine.

    Raises:
        MachineLacks: no page names this machine's GPU.
    """
    target = find_local_target(project)
    if target is None:
        device = identity.visible_gpu()
        name = device.name if device else "unknown"
        raise MachineLacks(
            f"No hardware page has this machine's GPU `{name}` among its aliases;"
            " write docs/knowledge/hardware/<target>.md, or pass --target cpu."
        )
    return target


def workload_roofline(
    project: Project,
    page: HardwarePage,
    measurement: Measurement | None,
    definition: Definition,
    workload: Workload,
    clock: Clock | None = None,
) -> Roofline:
    """Build the roofline of a workload from ceilings measured on this machine, else from documented figures.

    Args:
        project: the project.
        page: page of the target.
        measurement: measurement of this machine; None if it is another one.
        definition: definition of the operator, which has the work and the type of the operands.
        workload: one of its workloads.
        clock: clock that the workload is timed with; by default the one with the lowest launch floor.

    Raises:
        UnknownFigure: no bandwidth is known.
    """
    work = definition.work(workload)
    ceiling, peak = _RATES.get(definition.operand_dtype(workload), ("", ""))
    bandwidth = _bandwidth(project, measurement, work) or documented_rate(page, "memory_bandwidth")
    if bandwidth is None:
        raise _no_bandwidth(page)
    compute = measured_rate(project, measurement, ceiling) or documented_rate(page, peak)
    calls = {name: call.seconds for name, call in measurement.launch.items()} if measurement else {}
    launch = calls.get(clock, 0.0) if clock else min(calls.values(), default=0.0)
    return Roofline(bandwidth=bandwidth, compute=compute, work=work, launch_seconds=launch)


def _bandwidth(project: Project, measurement: Measurement | None, work: Work) -> Rate | None:
    """Return the measured bandwidth for this mix of bytes; None if none was measured.

    Writes and as many reads go at the rate of a copy, further reads at that of reading alone.
    """
    copy, read = (measured_rate(project, measurement, name) for name in ("copy", "read"))
    if copy is None or read is None or read.value <= copy.value or work.bytes_read <= work.bytes_written:
        return copy
    seconds = 2 * work.bytes_written / copy.value + (work.bytes_read - work.bytes_written) / read.value
    return copy.model_copy(update={"value": work.bytes / seconds})


def speed_limit(project: Project, page: HardwarePage, measurement: Measurement | None, work: Work) -> float:
    """Return the seconds that no honest run can undercut; every doubt is resolved in favor of the run.

    Bytes written may stay in a cache. On a CPU, inputs may too, since the grader that creates them shares its
    caches. Operations count at the highest documented peak of any type, since a narrower type can stand in.

    Raises:
        UnknownFigure: no bandwidth is known.
    """
    documented = documented_rate(page, "memory_bandwidth")
    bandwidth = documented.value if documented else _fastest_bandwidth(measurement)
    if bandwidth is None:
        raise _no_bandwidth(page)
    cache = _cache(page)
    read_bytes = max(0.0, work.bytes_read - cache) if page.target.kind == "cpu" else work.bytes_read
    memory = (read_bytes + max(0.0, work.bytes_written - cache)) / bandwidth
    rates = [documented_rate(page, name) for name in page.lines if name.startswith("peak_")]
    peaks = [rate.value for rate in rates if rate]
    return max(memory, work.flops / max(peaks) if peaks else 0.0)


def _cache(page: HardwarePage) -> float:
    """Return the bytes that a cache may keep from memory; infinite if nothing is known."""
    for name in ("llc_size", "l2_size"):
        if rate := documented_rate(page, name):
            return rate.value
    cache_size = system.cache_bytes() if page.target.kind == "cpu" else None
    return float("inf") if cache_size is None else float(cache_size)


def _fastest_bandwidth(measurement: Measurement | None) -> float | None:
    """Return the best repetition of any bandwidth ceiling; a single one may be low if the machine was busy."""
    ceilings = measurement.ceilings.values() if measurement else ()
    best = [ceiling.best * UNITS[ceiling.unit] for ceiling in ceilings if ceiling.unit.endswith("B/s")]
    return gate_rules.BANDWIDTH_MARGIN * max(best) if best else None


def measured_rate(project: Project, measurement: Measurement | None, name: str) -> Rate | None:
    """Return a ceiling that was measured on this machine; None if it was not."""
    ceiling = measurement.ceilings.get(name) if measurement else None
    if measurement is None or ceiling is None:
        return None
    record = measurement_store.find_measurement(project, measurement.machine)
    record = record or measurement_store.measurement_path(project, measurement.machine)
    value = ceiling.value * UNITS[ceiling.unit]
    return Rate(value=value, origin="measured", source=_display_path(project, record))


def documented_rate(page: HardwarePage, name: str) -> Rate | None:
    """Return a figure of a page as a rate in SI units; None if it is UNKNOWN or missing."""
    figure = page.target.figures.get(name)
    if figure is None or figure.value == "UNKNOWN":
        return None
    value = figure.value * UNITS.get(figure.unit, 1.0)
    return Rate(value=value, origin="documented", source=page.citation(name))


def find_page_by_isa(project: Project, isa: str) -> HardwarePage | None:
    """Return the first page, by name, of a device of an architecture such as `gfx942`, or `sm_90a` with or without
    its `a`; None if there is none."""
    pages = (read_target_page(project, name) for name in list_targets(project))
    plain = isa.removesuffix("a")
    return next((page for page in pages if page.target.isa.removesuffix("a") == plain), None)


def multiprocessor_limits(page: HardwarePage) -> MultiprocessorLimits:
    """Return the limits of one multiprocessor of a GPU.

    Raises:
        UnknownFigure: the page lacks one.
    """

    def figure(name: str) -> int:
        return int(sourced_figure(page, name).value)

    amd = page.target.vendor == "AMD"
    return MultiprocessorLimits(
        warp_size=figure("warp_size"),
        warps=figure("max_warps_per_sm"),
        blocks=figure("max_blocks_per_sm"),
        larger_blocks=figure("max_blocks_per_sm") // (2 if amd else 1),  # as the notes on AMD's pages say
        registers=figure("registers_per_sm"),
        shared_bytes=figure("shared_memory_per_sm"),
        block_shared_bytes=figure("shared_memory_per_block_max"),
        shared_step=_SHARED_STEPS.get(page.target.isa, 128),
    )


def _no_bandwidth(page: HardwarePage) -> UnknownFigure:
    return UnknownFigure(
        f"{page.display_path} gives no memory_bandwidth, and this machine has no measured one;"
        f" run `warpsmith ceiling --target {page.target.id}`."
    )


def _display_path(project: Project, path: Path) -> str:
    """Return the path of a page or record in a form that is the same on every machine."""
    if path.is_relative_to(project.knowledge) or not path.is_relative_to(SHIPPED):
        return project.relative(path)
    return path.relative_to(SHIPPED).as_posix()


def _parse(text: str) -> tuple[Target, dict[str, int]]:
    """Parse the front matter and the line of each figure.

    Raises:
        ValueError: it does not parse.
    """
    import yaml
    from frontmatter.default_handlers import YAMLHandler

    try:
        matter, _ = YAMLHandler().split(text)
    except ValueError as error:
        raise ValueError("it has no front matter between two lines of `---`") from error
    try:
        # libyaml is ten times as fast, if PyYAML was built with it.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(matter)
        node = loader.get_single_node()
        if node is None:
            raise ValueError("its front matter is empty")
        # The detour through JSON keeps a YAML date as the text on the page.
        target = Target.model_validate_json(json.dumps(loader.construct_document(node), default=str))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    above = text[: text.index(matter)].count("\n") + 1
    return target, {name: above + line for name, line in _lines(node, "figures")}


def _lines(node: Node, section: str) -> Iterator[tuple[str, int]]:
    """Yield the keys of one section of a YAML mapping, each with its line, counted from 0."""
    for _, table in (pair for pair in node.value if pair[0].value == section):
        yield from ((key.value, key.start_mark.line) for key, _ in table.value)
