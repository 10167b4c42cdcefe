"""`warpsmith program extract|integrate`: a program's operator becomes a campaign's, and the kernel goes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.program import analyze as program
from warpsmith.cli.program.analyze import Arguments, Json, ProgramArgument, Seed, Setup, Step, Timeout

if TYPE_CHECKING:
    from warpsmith.program.operators.extract import ExtractedOperator
    from warpsmith.program.operators.integrate import Integration
    from warpsmith.program.operators.models import StepOperators
    from warpsmith.program.operators.transfer_record import Gain
    from warpsmith.project import Project


def extract_command(
    where: ProgramArgument = None,
    arguments: Arguments = None,
    step: Step = None,
    setup: Setup = None,
    op: Annotated[str | None, typer.Option(help="One of PyTorch's operators: `aten::_softmax`.")] = None,
    kernel: Annotated[
        str | None, typer.Option(help="A device kernel: the operator that launches it. On a CPU, an operator.")
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(help="Which calls, by a workload's name or a part of it; by default the most time."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of the definition; by default the operator's.")] = None,
    seed: Seed = 0,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Make a definition of an operator with the shapes, types and frequencies of a program, for a campaign.

    Without --op and --kernel all operators of the step are listed, with calls, share of its time and Amdahl's
    bound.
    """
    from warpsmith import project
    from warpsmith.errors import Misuse
    from warpsmith.program.operators import extract

    here = project.find_project()
    chosen = program.resolve_program(where, step, setup, arguments)
    if op and kernel:
        raise Misuse("Give either --op or --kernel, not both.")
    if not op and not kernel:
        if name or like:
            raise Misuse("--name and --like are about one operator; give --op or --kernel with them.")
        with console.progress() as tell:
            found = extract.list_operators(here, chosen, tell, seed=seed, timeout=timeout)
        console.out_json(found) if as_json else console.out("\n".join(_format_operators(found)))
        return
    with console.progress() as tell:
        made = extract.extract_operator(
            here, chosen, operator=op or "", kernel=kernel or "", like=like or "", name=name or "", seed=seed,
            timeout=timeout, tell=tell,
        )  # fmt: skip
    console.out_json(made.extraction) if as_json else console.out("\n".join(_format_extracted(here, made)))
    console.stderr().print(
        f"Next: read it, then `warpsmith start {made.extraction.op} --target TARGET --language LANGUAGE`.",
        markup=False, soft_wrap=True,
    )  # fmt: skip


def integrate_command(
    op: Annotated[str, typer.Argument(metavar="OP", help="The definition: its folder under kernels/.")],
    where: Annotated[str, typer.Argument(metavar="PROGRAM", help="A Python file or dotted module.")],
    arguments: Arguments = None,
    step: Step = None,
    setup: Setup = None,
    entry_point: Annotated[
        Path | None, typer.Option(help="The file that gets the line; by default the program.")
    ] = None,
    timeout: Timeout = 600.0,
    as_json: Json = False,
) -> None:
    """Put the accepted kernel of an operator back into its program: one line, kept if the step is faster for it.

    The line replaces PyTorch's operator for the calls that the definition covers; WARPSMITH_KERNELS=0 switches all
    such lines off. Before, the kernel's gain is audited: what is gained only because inputs repeat does not count.
    Exit code 1 where the line is taken back.
    """
    from warpsmith import project
    from warpsmith.program.operators import integrate

    here = project.find_project()
    chosen = program.resolve_program(where, step, setup, arguments)
    with console.progress() as tell:
        found = integrate.integrate_kernel(here, op, chosen, into=entry_point, timeout=timeout, tell=tell)
    console.out_json(found.transfer) if as_json else console.out("\n".join(_format_integrated(here, found)))
    if not found.is_kept:
        raise typer.Exit(1)


def register(_root: typer.Typer) -> None:
    """Add the commands to the group `program`."""
    program.app.command("extract")(extract_command)
    program.app.command("integrate")(integrate_command)


def _format_operators(found: StepOperators) -> Iterator[str]:
    from warpsmith.reporting import format

    yield f"{found.program} on {found.device}: {format.seconds(found.step_seconds)} a step"
    wide = max((len(row.name) for row in found.rows), default=0)
    yield f"{'operator':{wide}}  {'calls':>7}  {'time':>9}  {'share':>6}  at most"
    for row in found.rows:
        bound = "" if row.ceiling is None else f"{row.ceiling:.2f}x"
        why = f"  ({row.refusal})" if row.refusal else ""
        yield (
            f"{row.name:{wide}}  {row.calls:7.4g}  {format.seconds(row.seconds):>9}  {row.share:6.1%}  "
            f"{bound:>7}{why}"
        )


def _format_extracted(here: Project, made: ExtractedOperator) -> Iterator[str]:
    from warpsmith.reporting import format

    row, found = made.row, made.extraction
    bound = "" if row.ceiling is None else f", at most {row.ceiling:.2f}x for the step"
    yield f"{row.name}: {row.calls:g} calls a step, {row.share:.1%} of its time{bound}"
    for one in found.called:
        yield f"  {one.workload}: {one.calls:g} calls, {format.seconds(one.seconds)} a step"
    yield from made.notes
    yield f"Definition: {here.relative(made.path)}"


def _format_integrated(here: Project, found: Integration) -> Iterator[str]:
    from warpsmith.reporting import format

    audit, record = found.transfer, found.closed.record
    yield f"{record.decision.verdict}: {record.decision.reason}"
    for one in audit.workloads:
        yield (
            f"{one.workload}: {one.calls:g} calls a step, {format.seconds(one.reference_seconds)} -> "
            f"{format.seconds(one.seconds)}"
        )
    yield f"real share:         {_format_gain(audit.real)} a step"
    yield f"weight-cache share: {_format_gain(audit.weight_cache)} a step"
    warning = "  IT DOES NOT TRANSFER" if audit.inflated else ""
    yield f"residual share:     {_format_gain(audit.residual)} a step{warning}"
    predicted = "more than the step" if audit.predicted is None else f"{audit.predicted:.3f}x"
    if audit.judged_seconds is not None:
        yield f"in its record:      {format.seconds(audit.judged_seconds)} a step"
    yield f"predicted: {format.seconds(audit.real.seconds)} a step, {predicted}"
    if audit.measured is not None and audit.measured_seconds is not None:
        low, high = audit.measured.interval.low, audit.measured.interval.high
        yield (
            f"measured:  {format.seconds(audit.measured_seconds)} a step, {audit.measured.speedup:.3f}x "
            f"[{low:.3f}, {high:.3f}]"
        )
    yield f"Record: {here.relative(found.closed.folder)}"


def _format_gain(gain: Gain) -> str:
    from warpsmith.reporting import format

    return f"{format.seconds(gain.seconds)} (error {format.seconds(gain.error)})"
