"""`warpsmith program extract|integrate`: extract an operator for a campaign, and integrate its kernel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json
from warpsmith.cli.program import analyze as program
from warpsmith.cli.program.analyze import Arguments, Command, ProgramArgument, Seed, Setup, Step, Timeout, Writes

if TYPE_CHECKING:
    from warpsmith.program.operators.extract import ExtractedOperator
    from warpsmith.program.operators.integrate import Integration
    from warpsmith.program.operators.models import StepOperators
    from warpsmith.program.operators.transfer_record import Gain
    from warpsmith.program.regions.extract_region import ExtractedRegion
    from warpsmith.project import Project


def extract_command(
    program_path: ProgramArgument = None,
    arguments: Arguments = None,
    step: Step = None,
    setup: Setup = None,
    command: Command = None,
    writes: Writes = None,
    op: Annotated[str | None, typer.Option(help="One of PyTorch's operators: `aten::_softmax`.")] = None,
    kernel: Annotated[
        str | None,
        typer.Option(help="A device kernel, to extract the operator that launches it; on a CPU, an operator."),
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="Digest of a region of the compiled step; `program regions` lists them.")
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            help="Select calls by a workload's name or a part of it; by default those with the most time."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the definition; by default the operator's.")] = None,
    seed: Seed = 0,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Write a definition of an operator or region with a program's shapes, types and call counts, for a campaign.

    Without --op, --kernel and --region, list all operators of the step: calls, share of its time, Amdahl's bound.
    """
    from warpsmith import project
    from warpsmith.errors import Misuse
    from warpsmith.program.operators import extract
    from warpsmith.program.regions import extract_region

    current_project = project.find_project()
    resolved = program.require_script(
        program.resolve_program(program_path, step, setup, arguments, command, writes, verb="extract")
    )
    if sum(map(bool, (op, kernel, region))) > 1:
        raise Misuse("Give one of --op, --kernel and --region, not several.")
    if region:
        with console.progress() as tell:
            region_result = extract_region.extract_region(
                current_project, resolved, region, name=name or "", like=like or "", seed=seed, timeout=timeout,
                tell=tell,
            )  # fmt: skip
        _print_extracted(current_project, region_result, as_json=as_json)
        return
    if not op and not kernel:
        if name or like:
            raise Misuse("--name and --like apply to one operator; give --op, --kernel or --region with them.")
        with console.progress() as tell:
            operators = extract.list_operators(current_project, resolved, tell, seed=seed, timeout=timeout)
        console.out_json(operators) if as_json else console.out("\n".join(_format_operators(operators)))
        return
    with console.progress() as tell:
        extracted = extract.extract_operator(
            current_project,
            resolved,
            operator=op or "",
            kernel=kernel or "",
            like=like or "",
            name=name or "",
            seed=seed,
            timeout=timeout,
            tell=tell,
        )
    _print_extracted(current_project, extracted, as_json=as_json)


def _print_extracted(project: Project, extracted: ExtractedOperator | ExtractedRegion, *, as_json: bool) -> None:
    console.out_json(extracted.extraction) if as_json else console.out(
        "\n".join(_format_extracted(project, extracted))
    )
    command = f"warpsmith start {extracted.extraction.op} --target TARGET --language LANGUAGE"
    console.stderr().print(f"Next: read the definition, then run `{command}`.", markup=False, soft_wrap=True)


def integrate_command(
    op: Annotated[str, typer.Argument(metavar="OP", help="The definition: its folder under kernels/.")],
    program_path: ProgramArgument = None,
    arguments: Arguments = None,
    step: Step = None,
    setup: Setup = None,
    command: Command = None,
    writes: Writes = None,
    entry_point: Annotated[
        Path | None, typer.Option(help="The file that gets the line; by default the program.")
    ] = None,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Put the accepted kernel of an operator or region into its program: one line, kept if the step gets faster.

    The line replaces PyTorch's operator, or the region in compiled graphs, for the calls that the definition
    covers; WARPSMITH_KERNELS=0 disables all such lines. The kernel's gain is audited first: a gain that needs
    repeated inputs does not count.
    Exit code 1 if the line is removed again.
    """
    from warpsmith import project
    from warpsmith.program.operators import integrate

    current_project = project.find_project()
    resolved = program.require_script(
        program.resolve_program(program_path, step, setup, arguments, command, writes)
    )
    with console.progress(phases=True) as tell:
        integration = integrate.integrate_kernel(
            current_project, op, resolved, into=entry_point, timeout=timeout, tell=tell
        )
    console.out_json(integration.transfer) if as_json else console.out(
        "\n".join(_format_integrated(current_project, integration))
    )
    if not integration.is_kept:
        raise typer.Exit(1)


def register(_root: typer.Typer) -> None:
    """Add the commands to the group `program`."""
    program.app.command("extract")(extract_command)
    program.app.command("integrate")(integrate_command)


def _format_operators(operators: StepOperators) -> Iterator[str]:
    from warpsmith.reporting import format

    yield f"{operators.program} on {operators.device}: {format.seconds(operators.step_seconds)} per step"
    width = max((len(row.name) for row in operators.rows), default=0)
    yield f"{'operator':{width}}  {'calls':>7}  {'time':>9}  {'share':>6}  at most"
    for row in operators.rows:
        bound = "" if row.ceiling is None else f"{row.ceiling:.2f}x"
        refusal = f"  ({row.refusal})" if row.refusal else ""
        yield (
            f"{row.name:{width}}  {row.calls:7.4g}  {format.seconds(row.seconds):>9}  {row.share:6.1%}  "
            f"{bound:>7}{refusal}"
        )


def _format_extracted(project: Project, extracted: ExtractedOperator | ExtractedRegion) -> Iterator[str]:
    from warpsmith.reporting import format

    row, extraction = extracted.row, extracted.extraction
    bound = "" if row.ceiling is None else f", at most {row.ceiling:.2f}x for the step"
    yield f"{extraction.operator}: {row.calls:g} calls per step, {row.share:.1%} of its time{bound}"
    for calls in extraction.called:
        yield f"  {calls.workload}: {calls.calls:g} calls, {format.seconds(calls.seconds)} per step"
    yield from extracted.notes
    yield f"Definition: {project.relative(extracted.path)}"


def _format_integrated(project: Project, integration: Integration) -> Iterator[str]:
    from warpsmith.reporting import format

    audit, record = integration.transfer, integration.closed.record
    yield f"{record.decision.verdict}: {record.decision.reason}"
    for workload in audit.workloads:
        times = f"{format.seconds(workload.reference_seconds)} -> {format.seconds(workload.seconds)}"
        yield f"{workload.workload}: {workload.calls:g} calls per step, {times}"
    yield f"real share:         {_format_gain(audit.real)} per step"
    yield f"weight-cache share: {_format_gain(audit.weight_cache)} per step"
    warning = "  IT DOES NOT TRANSFER" if audit.inflated else ""
    yield f"residual share:     {_format_gain(audit.residual)} per step{warning}"
    predicted = "more than the step" if audit.predicted is None else f"{audit.predicted:.3f}x"
    if audit.judged_seconds is not None:
        yield f"in its record:      {format.seconds(audit.judged_seconds)} per step"
    yield f"predicted: {format.seconds(audit.real.seconds)} per step, {predicted}"
    if audit.hits is not None:
        yield f"hits:      {audit.hits:g} calls per step, at {format.count_noun(audit.places or 0, 'place')}"
    if audit.measured is not None and audit.measured_seconds is not None:
        low, high = audit.measured.interval.low, audit.measured.interval.high
        yield (
            f"measured:  {format.seconds(audit.measured_seconds)} per step, {audit.measured.speedup:.3f}x "
            f"[{low:.3f}, {high:.3f}]"
        )
    if audit.seam_seconds is not None and audit.seam_seconds > 0:
        yield f"seam:      {format.seconds(audit.seam_seconds)} per step, gained alone and not in the step"
    yield f"Record: {project.relative(integration.closed.folder)}"


def _format_gain(gain: Gain) -> str:
    from warpsmith.reporting import format

    return f"{format.seconds(gain.seconds)} (error {format.seconds(gain.error)})"
