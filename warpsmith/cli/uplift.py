"""`warpsmith uplift`: give agents the same task with and without Warpsmith, and judge their kernels blind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli.options import Target

if TYPE_CHECKING:
    from warpsmith.uplift.models import Arm, CellRecord

Results = Annotated[Path, typer.Option(help="Folder of submissions and records.")]
Calls = Annotated[int, typer.Option(min=1, help="Device calls of an agent.")]
CallSeconds = Annotated[float, typer.Option(min=1, help="Wall seconds of a device call.")]
Minutes = Annotated[int, typer.Option(min=1, help="Wall minutes of an agent.")]
RESULTS, CELLS = Path("uplift-results"), Path("uplift-cells")


def uplift_brief_command(
    arm: Annotated[str, typer.Argument(help="bare, plugin, plugin-without-knowledge or knowledge.")],
    op: Annotated[str, typer.Argument(help="Operator of evals/uplift.")],
    out: Annotated[Path, typer.Option(help="New folder of the agent.")],
    repetition: Annotated[int, typer.Option(min=1, help="Number of the repetition.")] = 1,
    calls: Calls = 3,
    call_seconds: CallSeconds = 40,
    minutes: Minutes = 45,
) -> None:
    """Lay out the folder of one agent: its brief, its arm's material and room for its kernel."""
    from warpsmith.cli import console
    from warpsmith.uplift import layout
    from warpsmith.uplift.models import Budget, Cell

    budget = Budget(calls=calls, call_seconds=call_seconds, minutes=minutes)
    layout.lay_out_cell(Cell(operator=op, arm=_arm(arm), repetition=repetition, budget=budget), out)
    console.out(f"{out}: the agent starts from brief.md and reads nothing outside of this folder")


def uplift_run_command(
    ops: Annotated[list[str] | None, typer.Argument(help="Operators; by default all.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the agents' folders; outside of any project.")] = CELLS,
    results: Results = RESULTS,
    arm: Annotated[list[str] | None, typer.Option(help="An arm; repeatable. [default: bare, plugin]")] = None,
    repetitions: Annotated[int, typer.Option(min=1, help="Agents of each arm and operator.")] = 3,
    model: Annotated[str | None, typer.Option(help="Model of all agents.")] = None,
    max_usd: Annotated[float | None, typer.Option(min=0.01, help="Most dollars of one agent.")] = None,
    calls: Calls = 3,
    call_seconds: CallSeconds = 40,
    minutes: Minutes = 45,
) -> None:
    """Let Claude Code agents play all arms on this machine, one after the other, and submit what they leave.

    Agents run commands without a sandbox. Cells that were submitted are passed over, so that a run may continue.
    """
    from warpsmith.cli import console
    from warpsmith.driver.claude import process as claude_process
    from warpsmith.uplift import session, suite
    from warpsmith.uplift.models import Budget, Cell

    claude_process.require_claude()
    operators = [suite.definition_path(op).parent.name for op in ops or suite.operator_names()]
    arms = [_arm(name) for name in arm or ("bare", "plugin")]
    budget = Budget(calls=calls, call_seconds=call_seconds, minutes=minutes)
    cells = [
        Cell(operator=operator, arm=chosen, repetition=number, budget=budget)
        for number in range(1, repetitions + 1)
        for operator in operators
        for chosen in arms
    ]
    settings = session.SessionSettings(model=model, max_usd=max_usd)
    for cell in cells:
        if (results / cell.name).is_dir():
            console.tell(f"{cell.name}: submitted before")
            continue
        reply = session.run_cell(cell, out / cell.name, results, settings, console.tell)
        problem = "" if reply.ending == "done" else f": {reply.complaint}"
        console.out(f"{cell.name}: submitted after {reply.seconds / 60:.0f} minutes{problem}")
    console.out(f"`warpsmith uplift judge --results {results}` judges them")


def uplift_device_command(
    folders: Annotated[list[Path], typer.Argument(help="Folders of agents.")],
) -> None:
    """Run the device requests that wait in agents' folders, one after the other."""
    from warpsmith.cli import console
    from warpsmith.uplift import device

    pending = device.pending_cells(folders)
    for folder in pending:
        call = device.run_request(folder)
        console.out(f"{folder}: " + (f"{call.seconds:.1f} s, status {call.status}" if call else "no calls left"))
    if not pending:
        console.out("no request waits; an agent writes device/request.sh and device/ready")


def uplift_submit_command(
    folder: Annotated[Path, typer.Argument(help="Folder of an agent that is done.")],
    designer: Annotated[str, typer.Option(help="Model that designed.")],
    results: Results = RESULTS,
    tokens: Annotated[int | None, typer.Option(min=0, help="Tokens of all kinds.")] = None,
    turns: Annotated[int | None, typer.Option(min=0, help="Answers of the model.")] = None,
    wall_seconds: Annotated[float | None, typer.Option(min=0, help="Wall seconds of the session.")] = None,
) -> None:
    """Keep an agent's kernel, its claim and its cost for the judgement; device calls are read from their log."""
    from math import fsum

    from warpsmith.cli import console
    from warpsmith.uplift import device, submission
    from warpsmith.uplift.models import Effort

    log = device.read_calls(folder)
    effort = Effort(
        designer=designer,
        device_calls=len(log),
        device_seconds=round(fsum(call.seconds for call in log), 2),
        tokens=tokens,
        turns=turns,
        wall_seconds=wall_seconds,
    )
    record = submission.keep_submission(folder, effort, results)
    console.out(f"{results / record.submission.cell.name}: submitted")


def uplift_judge_command(
    ops: Annotated[list[str] | None, typer.Argument(help="Operators; by default all submitted ones.")] = None,
    results: Results = RESULTS,
    seconds: Annotated[
        float | None, typer.Option(min=0.01, help="Seconds of each workload's timing; by default the gate's.")
    ] = None,
    target: Target = None,
) -> None:
    """Judge all kernels of an operator, blind to their arms, and race those that are right in one run.

    A wrong kernel is a result. Exit code 4: the machine or a reference failed, and that operator has no new
    judgement.
    """
    from warpsmith.cli import console
    from warpsmith.errors import MachineLacks, Misuse
    from warpsmith.lab.machine import hardware
    from warpsmith.project import find_project
    from warpsmith.uplift import judging, submission

    records = submission.read_records(results)
    submitted = sorted({record.submission.cell.operator for record in records})
    if unknown := sorted(set(ops or ()) - set(submitted)):
        raise Misuse(f"{results} has no submission of {', '.join(unknown)}; it has: {', '.join(submitted)}.")
    project = find_project()
    page = hardware.read_target_page(project, target or hardware.require_local_target(project).id)
    failures = []
    for op in ops or submitted:
        chosen = [record for record in records if record.submission.cell.operator == op]
        try:
            judged = judging.judge_operator(results, chosen, page, console.tell, seconds)
        except MachineLacks as error:
            failures.append(f"{op}: {error}")
            continue
        for record in judged:
            submission.write_record(results, record)
            console.out(_line(record))
    if failures:
        raise MachineLacks(" ".join(failures))


def uplift_report_command(results: Results = RESULTS) -> None:
    """Print the overview of all judged cells as Markdown."""
    from warpsmith.cli import console
    from warpsmith.uplift import overview, submission

    console.out(overview.render_overview(submission.read_records(results)))


def register(app: typer.Typer) -> None:
    """Add the group."""
    summary = "Compare the same agent with and without Warpsmith: briefs, blind judgement, overview."
    group = typer.Typer(help=summary, no_args_is_help=True)
    group.command("run")(uplift_run_command)
    group.command("brief")(uplift_brief_command)
    group.command("device")(uplift_device_command)
    group.command("submit")(uplift_submit_command)
    group.command("judge")(uplift_judge_command)
    group.command("report")(uplift_report_command)
    app.add_typer(group, name="uplift")


def _arm(name: str) -> Arm:
    from warpsmith.errors import Misuse
    from warpsmith.uplift.models import ARMS

    arm = next((arm for arm in ARMS if arm == name), None)
    if arm is None:
        raise Misuse(f"Uplift has no arm `{name}`; it has: {', '.join(ARMS)}.")
    return arm


def _line(record: CellRecord) -> str:
    name, judgement = record.submission.cell.name, record.judgement
    assert judgement is not None
    if not judgement.correct:
        return f"{name}: WRONG: {judgement.reason}"
    return f"{name}: {judgement.speedup:.2f}x, {judgement.public_speedup:.2f}x at the public sizes"
