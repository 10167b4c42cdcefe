"""`warpsmith new`, `check` and `export`: import a definition, prove it, or export an operator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli.options import Json

if TYPE_CHECKING:
    from warpsmith.lab.proof.definition_proof import DefinitionProof
    from warpsmith.project import Project

Op = Annotated[str, typer.Argument(help="Operator: the name of its folder under kernels/.")]


def new_command(
    op: Op,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE[:OBJECT]",
            help="PyTorch function or module (.py), FlashInfer-Trace definition (.json) or SOL-ExecBench folder.",
        ),
    ] = None,
    examples: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=VALUE",
            help="Example input of the PyTorch code: x=8,1024:float32, ids=64:int64<1000 or eps=1e-5; repeatable. "
            "With --from-capture: a number, which tracing does not keep.",
        ),
    ] = None,
    workloads: Annotated[
        Path | None,
        typer.Option(help="FlashInfer-Trace workloads (.jsonl); by default those of the data set."),
    ] = None,
    from_capture: Annotated[
        str | None,
        typer.Option(
            metavar="DIR[:DEFINITION]",
            help="Folder that a serving process wrote while flashinfer-bench traced it.",
        ),
    ] = None,
) -> None:
    """Create an operator's definition: a working example to edit, or an import of code or of a traced process."""
    from warpsmith.cli import console
    from warpsmith.interchange.create import create_definition, split_source
    from warpsmith.project import find_project

    project = find_project()
    marked = project.marked
    file, object_name = split_source(source) if source else (None, "")
    capture, captured_name = split_source(from_capture) if from_capture else (None, "")
    path, draft = create_definition(
        project,
        op,
        file,
        workloads,
        object_name=object_name or captured_name,
        examples=examples or (),
        capture=capture,
    )
    if not marked:
        console.tell(f"{project.root} is a project now: warpsmith.toml marks it.")
    elif project.root != Path.cwd():
        console.tell(f"This folder lies in the project {project.root}, so the definition stands there.")
    if draft.notes:
        console.tell("Assumed; check it:")
    for note in draft.notes:
        console.tell(f"- {note}")
    console.out(project.relative(path))
    console.tell(
        f"Next: review the definition, prove it with `warpsmith check {op}`, then"
        f" `warpsmith start {op} --target TARGET --language LANGUAGE`."
    )


def check_definition_command(
    op: Op,
    seconds: Annotated[float, typer.Option(help="Time after which no larger workload is begun.", min=1.0)] = 20.0,
    as_json: Json = False,
) -> None:
    """Prove a definition: its reference holds its own bound, and wrong kernels fail. So does `start`.

    Exit code 2: the reference fails or misses its bound, or a wrong kernel would pass.
    """
    from warpsmith.campaign import define
    from warpsmith.cli import console
    from warpsmith.errors import BadDefinition
    from warpsmith.project import find_project

    project = find_project()
    with console.progress() as tell:
        proof = define.check_definition(project, op, tell, seconds)
    if as_json:
        console.out_json(proof)
    else:
        console.out("\n".join([*_proof_lines(proof), *_unservable_lines(project, op)]))
    if proof.counterexamples:
        raise typer.Exit(BadDefinition.exit_code)


def _proof_lines(proof: DefinitionProof) -> list[str]:
    outcome = "REFUSED" if proof.counterexamples else "PROVEN" if proof.workloads else "UNPROVEN"
    lines = [
        f"{proof.definition}: {outcome}: {proof.mutations} wrong kernels"
        f" fail, {len(proof.counterexamples)} would pass; the reference fills {proof.reference_error:.2g} of its"
        " bound at most"
    ]
    lines += [
        f"  passes at {example.workload}: {example.mutation}; {example.output} is off by {example.error:.2g}"
        f" of its bound, the reference by {example.reference_error:.2g}"
        for example in proof.counterexamples
    ]
    lines += [f"  mend: {proof.mend}"] if proof.mend else []
    lines += [f"  not to be told from rounding: {name}" for name in proof.hidden]
    lines.append(f"  workloads: {', '.join(proof.workloads)}")
    lines += [f"  judged at its declared sizes alone: {axis}: {reason}" for axis, reason in proof.fixed.items()]
    lines += [
        f"  judged at {name} = {number} alone: the definition does not say what it is `between`"
        for name, number in proof.constants.items()
    ]
    lines += [f"  integers drawn: {name}, {drawn}" for name, drawn in proof.integers.items()]
    return [*lines, *(f"  left out: {name}: {reason}" for name, reason in proof.skipped.items())]


def _unservable_lines(project: Project, op: str) -> list[str]:
    """Return why programs could not call the operator's versions, if so."""
    from warpsmith.errors import BadDefinition
    from warpsmith.lab.operator import definition_file
    from warpsmith.use.arguments import Arguments

    try:
        Arguments(definition_file.load_definition(project.definition_path(op)).definition, "cpu").check()
    except BadDefinition as error:
        return [f"  best() cannot run it: {error}"]
    return []


def export_command(
    op: Op,
    to: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the data set; by default flashinfer-trace/ in the project, or flashinfer-apply/."
        ),
    ] = None,
    for_apply: Annotated[
        bool,
        typer.Option(
            "--apply", help="Write what flashinfer-bench's apply reads: the best version and its traces."
        ),
    ] = False,
    name: Annotated[
        str, typer.Option(help="With --apply: name that the process calls; by default the one in the capture.")
    ] = "",
) -> None:
    """Export the operator, its workloads and all versions as a FlashInfer-Trace data set."""
    from warpsmith.cli import console
    from warpsmith.errors import Misuse
    from warpsmith.interchange.flashinfer_export import export_operator as write
    from warpsmith.project import find_project

    project = find_project()
    if for_apply:
        _export_for_serving(op, (to or project.root / "flashinfer-apply").resolve(), name)
        return
    if name:
        raise Misuse("--name requires --apply.")
    for path in write(project, op, to or project.root / "flashinfer-trace", console.tell):
        console.out(project.relative(path))


def _export_for_serving(op: str, folder: Path, name: str) -> None:
    """Write the data set for `apply`, and print the lines of Python that use it."""
    from warpsmith.cli import console
    from warpsmith.project import find_project
    from warpsmith.use import choice, serving

    project = find_project()
    exported = serving.export_for_serving(choice.find_owning_project(op), op, folder, name, console.tell)
    for path in exported.paths:
        console.out(project.relative(path))
    console.tell(
        f"{exported.solution} serves calls of {', '.join(exported.names)}:\n\n"
        "from flashinfer_bench import ApplyConfig, enable_apply\n"
        f'enable_apply("{folder}", ApplyConfig(max_atol={exported.max_atol}, max_rtol={exported.max_rtol}, '
        'on_miss_policy="use_def_best"))\n'
    )
    if not exported.within_defaults:
        console.tell("FIB_ENABLE_APPLY=1 alone does not use it: the errors are above its limits of 1e-2 and 1e-5.")
    console.tell(
        f"Without use_def_best, only these shapes are served: {', '.join(exported.workloads)}.\n"
        "With WARPSMITH_HITS=FILE in its environment, the process writes `PID SOLUTION CALLS` there."
    )


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("new")(new_command)
    app.command("check")(check_definition_command)
    app.command("export")(export_command)
