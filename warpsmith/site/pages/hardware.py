"""Hardware: chips side by side with the source of every figure, and measured ceilings beside published ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpsmith.core.hardware import UNITS, Measurement, Target
from warpsmith.reporting import format
from warpsmith.site import addresses
from warpsmith.site.citation import Citation
from warpsmith.site.contents import read_model
from warpsmith.site.context import ChipPage, SiteContext
from warpsmith.site.markdown import plain_text, render_markdown
from warpsmith.site.markup import Html
from warpsmith.site.page import SearchText, SitePage, build_page

PUBLISHED = {
    "read": "memory_bandwidth",
    "copy": "memory_bandwidth",
    "triad": "memory_bandwidth",
    "fma_float64": "peak_fp64",
    "fma_float32": "peak_fp32",
    "matrix_float16": "peak_fp16_tensor",
    "matrix_bfloat16": "peak_bf16_tensor",
}
"""Published figure that a measured ceiling stands beside."""


@dataclass(frozen=True)
class StoredMeasurement:
    """Measured ceilings of one machine."""

    measurement: Measurement
    """The measurement."""
    citation: Citation
    """Its file."""

    def show_ceiling(self, name: str) -> Html:
        """Return one ceiling in the units of other pages; the mark of an absent value if it was not measured."""
        ceiling = self.measurement.ceilings.get(name)
        if ceiling is None:
            return Html(format.ABSENT)
        formatter = format.bandwidth if ceiling.unit.endswith("B/s") else format.rate
        quote = self.citation.quote(self.measurement, "ceilings", name, "value")
        return quote.show(lambda value: formatter(value * UNITS[ceiling.unit]))


def hardware_pages(context: SiteContext) -> list[SitePage]:
    """Return the comparison of all chips, and the page of each."""
    measured = _read_measurements(context)
    chips = [(chip.target, context.contents.archive.cite(chip.path)) for chip in context.chips.values()]
    names = list(dict.fromkeys(name for target, _ in chips for name in target.figures))
    comparison = build_page(
        "hardware",
        addresses.HARDWARE,
        title="Hardware",
        chips=chips,
        rows=[
            (name, _unit(chips, name), [_cell(target, citation, name) for target, citation in chips])
            for name in names
        ],
        measured={id: measured[id] for id in context.chips if id in measured},
        targets={target.id: (target, citation) for target, citation in chips},
        ceilings={id: _ceiling_names(by_target) for id, by_target in measured.items()},
        published=PUBLISHED,
        chip_address=addresses.chip_address,
        figure_of=lambda citation, target, name: citation.quote(target, "figures", name, "value"),
    )
    return [comparison, *(_chip_page(context, chip, measured.get(id, [])) for id, chip in context.chips.items())]


def _chip_page(context: SiteContext, chip: ChipPage, measured: Sequence[StoredMeasurement]) -> SitePage:
    address, citation = addresses.chip_address(chip.target.id), context.contents.archive.cite(chip.path)
    _, _, body = chip.path.read_text(encoding="utf-8").removeprefix("---").partition("\n---")
    text = body.partition("\n# ")[2].partition("\n")[2]
    target = chip.target
    return build_page(
        "chip",
        address,
        title=target.name,
        section=addresses.HARDWARE,
        found_by=(
            SearchText(
                target.name,
                address,
                "device",
                f"{target.vendor}, {target.architecture}, {target.isa}",
                f"chip hardware {target.id} {target.architecture} {target.isa} {' '.join(target.figures)}",
                "",
                plain_text(text),
            ),
        ),
        target=target,
        citation=citation,
        figures=[
            (name, figure, citation.quote(target, "figures", name, "value"))
            for name, figure in target.figures.items()
        ],
        measured=measured,
        ceilings=_ceiling_names(measured),
        text=render_markdown(text, context.addresses.surroundings(address, chip.path.parent, citation)),
    )


def _cell(target: Target, citation: Citation, name: str) -> dict[str, object] | None:
    figure = target.figures.get(name)
    if figure is None:
        return None
    source = target.sources.get(figure.source or "")
    return {
        "quote": citation.quote(target, "figures", name, "value"),
        "figure": figure,
        "source": source,
    }


def _unit(chips: Sequence[tuple[Target, Citation]], name: str) -> str:
    """Return the unit of a figure if all chips that have a value have the same, else an empty text."""
    figures = [target.figures[name] for target, _ in chips if name in target.figures]
    units = {figure.unit for figure in figures if figure.value != "UNKNOWN"} or {figure.unit for figure in figures}
    return units.pop() if len(units) == 1 else ""


def _ceiling_names(measured: Sequence[StoredMeasurement]) -> list[str]:
    return list(dict.fromkeys(name for by_target in measured for name in by_target.measurement.ceilings))


def _read_measurements(context: SiteContext) -> dict[str, list[StoredMeasurement]]:
    """Read the measurements of all machines by target, the latest first."""
    by_target: dict[str, list[StoredMeasurement]] = {}
    names: set[str] = set()
    for layer in context.project.knowledge_layers:
        for path in sorted((layer / "hardware" / "measured").glob("*.json")):
            if path.name in names:
                continue
            names.add(path.name)
            if measurement := read_model(context.contents, path, Measurement):
                stored = StoredMeasurement(measurement, context.contents.archive.cite(path))
                by_target.setdefault(measurement.machine.target, []).append(stored)
    return {id: sorted(all, key=lambda m: m.measurement.measured, reverse=True) for id, all in by_target.items()}
