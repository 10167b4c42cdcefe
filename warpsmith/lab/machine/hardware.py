"""Hardware pages: figures with the line they stand on, and what they say of a workload's time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith.core.base import Model
from warpsmith.core.definition import Work
from warpsmith.core.hardware import UNITS, Measurement, Target
from warpsmith.core.problem import problem
from warpsmith.core.roofline import Rate, Roofline
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
"""Data type to the measured ceiling (empty: none is measured) and the documented figure of its arithmetic."""

_MARGIN = 1.1
"""A measured bandwidth is no physical limit; this much above the best one still counts as possible."""


@dataclass(frozen=True)
class HardwarePage:
    """One target's page."""

    target: Target
    """Its front matter."""
    path: Path
    """The file."""
    shown: str
    """The file as citations give it: relative to the project, or to what ships."""
    lines: dict[str, int]
    """Figure id to its line in the file, from 1."""

    def citation(self, name: str) -> str:
        """Where a figure stands: `docs/knowledge/hardware/h200.md:L12`."""
        return f"{self.shown}:L{self.lines[name]}"


class SourcedFigure(Model):
    """A known figure with the place it was read from."""

    name: str
    """The figure's id."""
    value: float
    """Its value in SI units: bytes, operations, hertz or watts (a second); counts as they are."""
    unit: str
    """The page's unit."""
    text: str
    """`4.8 TB/s <- docs/knowledge/hardware/h200.md:L12`."""


def list_targets(project: Project) -> list[str]:
    """The ids of all targets that have a page, in order."""
    return sorted({path.stem for layer in project.knowledge_layers for path in (layer / "hardware").glob("*.md")})


def read_hardware_page(project: Project, target: str) -> HardwarePage:
    """The page of a target, the project's own before the shipped one.

    Raises:
        Misuse: no such target.
        BadEntry: the page does not parse.
    """
    known = list_targets(project)
    if target not in known:
        raise Misuse(f"Unknown target `{target}`; known: {', '.join(known) or 'none'}.")
    places = [layer / "hardware" / f"{target}.md" for layer in project.knowledge_layers]
    path = next(place for place in places if place.is_file())
    shown = _display_path(project, path)
    try:
        found, lines = _parse(path.read_text(encoding="utf-8"))
    except (OSError, TypeError, ValueError) as error:
        raise BadEntry(f"{shown} is no valid hardware page: {problem(error)}; mend it.") from error
    if found.id != target:
        raise BadEntry(f"{shown} says `id: {found.id}`; it must be `{target}`, as the file is named.")
    return HardwarePage(found, path, shown, lines)


def sourced_figure(page: HardwarePage, name: str) -> SourcedFigure:
    """One figure of a page with its source.

    Raises:
        UnknownFigure: the page lacks it, or gives it as UNKNOWN.
    """
    found = page.target.figures.get(name)
    if found is None:
        raise UnknownFigure(f"{page.shown} has no figure `{name}`; add it there with a source.")
    if found.value == "UNKNOWN":
        raise UnknownFigure(f"{page.citation(name)} gives `{name}` as UNKNOWN; add its value with a source.")
    return SourcedFigure(
        name=name,
        value=found.value * UNITS.get(found.unit, 1.0),
        unit=found.unit,
        text=f"{found.value:g} {found.unit} <- {page.citation(name)}",
    )


def find_local_target(project: Project) -> Target | None:
    """The target of the machine at hand: `cpu` where there is no GPU, None where no page names its GPU."""
    found = identity.visible_gpu()
    if found is None:
        return read_hardware_page(project, "cpu").target
    pages = (read_hardware_page(project, name).target for name in list_targets(project))
    return next((target for target in pages if identity.matches_target(target, found.name)), None)


def require_local_target(project: Project) -> Target:
    """The target of the machine at hand.

    Raises:
        MachineLacks: no page names this machine's GPU.
    """
    found = find_local_target(project)
    if found is None:
        device = identity.visible_gpu()
        name = device.name if device else "unknown"
        raise MachineLacks(
            f"No hardware page has this machine's GPU `{name}` among its aliases;"
            " write docs/knowledge/hardware/<target>.md, or give --target cpu."
        )
    return found


def workload_roofline(
    project: Project, page: HardwarePage, measurement: Measurement | None, work: Work, dtype: str
) -> Roofline:
    """Where a workload stands: measured ceilings where this machine has them, else documented ones.

    Raises:
        UnknownFigure: no bandwidth is known.
    """
    ceiling, peak = _RATES.get(dtype, ("", ""))
    bandwidth = measured_rate(project, measurement, "copy") or documented_rate(page, "memory_bandwidth")
    if bandwidth is None:
        raise _no_bandwidth(page)
    compute = measured_rate(project, measurement, ceiling) or documented_rate(page, peak)
    return Roofline(bandwidth=bandwidth, compute=compute, work=work)


def speed_limit(project: Project, page: HardwarePage, measurement: Measurement | None, work: Work) -> float:
    """Seconds that no honest run can stay below, generous to the run in every doubt.

    Bytes written may stay in a cache; on a processor so may inputs, since the grader that makes them shares
    its caches. Operations count at the highest documented peak of any type, for a narrower type can stand in.

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
    """Bytes that a cache may hold back from memory; infinite where nothing is known."""
    for name in ("llc_size", "l2_size"):
        if rate := documented_rate(page, name):
            return rate.value
    found = system.cache_bytes() if page.target.kind == "cpu" else None
    return float("inf") if found is None else float(found)


def _fastest_bandwidth(measurement: Measurement | None) -> float | None:
    """The best repetition of any bandwidth ceiling: where the machine was busy, one alone may be low."""
    ceilings = measurement.ceilings.values() if measurement else ()
    best = [ceiling.best * UNITS[ceiling.unit] for ceiling in ceilings if ceiling.unit.endswith("B/s")]
    return _MARGIN * max(best) if best else None


def measured_rate(project: Project, measurement: Measurement | None, name: str) -> Rate | None:
    """A ceiling that was measured on this machine; None where it was not."""
    ceiling = measurement.ceilings.get(name) if measurement else None
    if measurement is None or ceiling is None:
        return None
    record = measurement_store.find_measurement(project, measurement.machine)
    record = record or measurement_store.measurement_path(project, measurement.machine)
    value = ceiling.value * UNITS[ceiling.unit]
    return Rate(value=value, origin="measured", source=_display_path(project, record))


def documented_rate(page: HardwarePage, name: str) -> Rate | None:
    """A figure of a page as a rate in SI units; None where it is UNKNOWN or missing."""
    found = page.target.figures.get(name)
    if found is None or found.value == "UNKNOWN":
        return None
    value = found.value * UNITS.get(found.unit, 1.0)
    return Rate(value=value, origin="documented", source=page.citation(name))


def _no_bandwidth(page: HardwarePage) -> UnknownFigure:
    return UnknownFigure(
        f"{page.shown} gives no memory_bandwidth and this machine has no measured one;"
        f" run `warpsmith ceiling --target {page.target.id}`."
    )


def _display_path(project: Project, path: Path) -> str:
    """A page's or record's path, the same on every machine."""
    if path.is_relative_to(project.knowledge) or not path.is_relative_to(SHIPPED):
        return project.relative(path)
    return path.relative_to(SHIPPED).as_posix()


def _parse(text: str) -> tuple[Target, dict[str, int]]:
    """The front matter, and the line of each figure; raises ValueError."""
    import yaml
    from frontmatter.default_handlers import YAMLHandler

    try:
        matter, _ = YAMLHandler().split(text)
    except ValueError as error:
        raise ValueError("it has no front matter between two lines of `---`") from error
    try:
        # libyaml, where PyYAML was built with it, is ten times as fast.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(matter)
        node = loader.get_single_node()
        if node is None:
            raise ValueError("its front matter is empty")
        # Through JSON, so that a date in YAML is the text that it is on the page.
        target = Target.model_validate_json(json.dumps(loader.construct_document(node), default=str))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    above = text[: text.index(matter)].count("\n") + 1
    return target, {name: above + line for name, line in _lines(node, "figures")}


def _lines(node: Node, section: str) -> Iterator[tuple[str, int]]:
    """The keys of one section of a YAML mapping, each with its line from 0."""
    for _, table in (pair for pair in node.value if pair[0].value == section):
        yield from ((key.value, key.start_mark.line) for key, _ in table.value)
