"""`warpsmith program regions`: the regions of a compiled step, ranked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json
from warpsmith.cli.program import analyze as program
from warpsmith.cli.program.analyze import Arguments, Command, ProgramArgument, Seed, Setup, Step, Timeout, Writes

if TYPE_CHECKING:
    from warpsmith.program.compiled.models import RegionRow, StepRegions

_LEAST_SHARE = 0.005
"""Share of the step below which a region is not printed; the file has it."""


def regions_command(
    program_path: ProgramArgument = None,
    arguments: Arguments = None,
    step: Step = None,
    setup: Setup = None,
    command: Command = None,
    writes: Writes = None,
    seed: Seed = 0,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """List the regions of a step under torch.compile: what each of Inductor's kernels computes, with its share.

    A region has a digest of its operators, edges, constants and data types; `extract --region` makes a definition.
    """
    from warpsmith import project
    from warpsmith.program.analysis import analysis_store, region_file
    from warpsmith.program.operators import accepted_regions
    from warpsmith.program.regions import survey

    current_project = project.find_project()
    resolved = program.require_script(
        program.resolve_program(program_path, step, setup, arguments, command, writes, verb="regions")
    )
    with console.progress() as tell:
        regions = survey.list_regions(current_project, resolved, tell, seed=seed, timeout=timeout)
    definitions = accepted_regions.list_definitions(current_project)
    console.out_json(regions) if as_json else console.out("\n".join(_format_regions(regions, definitions)))
    path = analysis_store.program_folder(current_project, resolved) / region_file.REGIONS_FILE
    console.tell(f"Record: {current_project.relative(path)}")


def register(_root: typer.Typer) -> None:
    """Add the command to the group `program`."""
    program.app.command("regions")(regions_command)


def _format_regions(regions: StepRegions, definitions: Mapping[str, str]) -> Iterator[str]:
    from warpsmith.reporting import format

    graphs = format.count_noun(regions.graphs, "compiled graph")
    yield (
        f"{regions.program} on {regions.device}: {format.seconds(regions.step_seconds)} per step; {graphs}, whose "
        f"generated kernels take {format.seconds(regions.kernel_seconds)}"
    )
    listed = [row for row in regions.rows if row.share >= _LEAST_SHARE]
    figures = f"{'calls':>6}  {'time':>8}  {'share':>6}  {'at most':>7}"
    yield f"{'region':8}  {'kind':12}  {'pass':8}  {figures}  definition"
    for row in listed:
        yield from _format_row(row, definitions.get(row.digest, "-"))
    if len(listed) < len(regions.rows):
        yield f"{len(regions.rows) - len(listed)} more take less than {_LEAST_SHARE:.1%} each."


def _format_row(row: RegionRow, definition: str) -> Iterator[str]:
    from warpsmith.reporting import format

    bound = "" if row.ceiling is None else f"{row.ceiling:.2f}x"
    way = "backward" if row.backward else "forward"
    figures = f"{row.calls:6.4g}  {format.seconds(row.seconds):>8}  {row.share:6.1%}  {bound:>7}"
    yield f"{row.digest or '-':8}  {row.kind or '-':12}  {way:8}  {figures}  {definition}"
    chain = f"; a chain of {len(row.kernels)} kernels" if row.chained else ""
    sizes = f"; {row.sizes} sizes" if row.sizes > 1 else ""
    if row.refusal:
        yield f"          {', '.join(row.operators)}: refused, it {row.refusal}"
        return
    yield f"          {', '.join(row.operators)}{chain}{sizes}"
    yield f"          {', '.join(row.inputs)} -> {', '.join(row.outputs)}"
