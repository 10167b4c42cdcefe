"""`warpsmith hardware`, `ceiling` and `aa`: figures of a device kind, and measurements of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console, durations
from warpsmith.cli.options import Json, Target
from warpsmith.errors import Misuse, SolutionFailed

if TYPE_CHECKING:
    from warpsmith.core.hardware import Measurement
    from warpsmith.lab.gate_tests.false_win_models import FalseWins
    from warpsmith.lab.machine.hardware import HardwarePage

_LOG_INTERVAL = 10
"""Number of A/A judgements from one line of the log to the next."""


def hardware_command(
    target: Annotated[str | None, typer.Argument(help="Id of a target; without it, list all targets.")] = None,
    figure: Annotated[str | None, typer.Option(help="Print only this figure, with its source.")] = None,
    as_json: Json = False,
) -> None:
    """Show the figures of a target with their sources; UNKNOWN figures are never used in a computation."""
    from warpsmith.lab.machine import hardware as pages
    from warpsmith.project import find_project

    project = find_project()
    if target is None:
        if figure is not None:
            raise Misuse("`--figure` needs a target: `warpsmith hardware TARGET --figure NAME`.")
        _print_targets(pages.list_targets(project), as_json)
        return
    page = pages.read_target_page(project, target)
    if figure is not None:
        value = pages.sourced_figure(page, figure)
        console.out_json(value) if as_json else console.out(value.text)
    elif as_json:
        console.out_json(page.target)
    else:
        _print_figures(page)


def ceiling_command(
    target: Target = None,
    as_json: Json = False,
) -> None:
    """Measure and record the ceilings of this machine; takes some seconds on an idle machine."""
    from warpsmith.lab.calibration import measurement as measuring
    from warpsmith.lab.calibration.ceiling import UNSTEADY
    from warpsmith.lab.machine import device_lease
    from warpsmith.lab.machine import hardware as pages
    from warpsmith.lab.machine.measurement_store import measurement_path
    from warpsmith.project import find_project

    project = find_project()
    chosen = pages.choose_target(project, target)
    with (
        console.progress(durations.duration_of(project, f"ceiling {chosen.id}")) as tell,
        device_lease.lease_device(chosen, tell),
    ):
        measurement = measuring.record_measurement(project, chosen, tell)
    console.out_json(measurement) if as_json else _print_ceilings(measurement)
    unsteady = [name for name, ceiling in measurement.ceilings.items() if ceiling.spread > UNSTEADY]
    if unsteady:
        console.tell(f"Unsteady: {', '.join(unsteady)}; the machine was busy, so measure again when it is idle.")
    console.tell(f"Recorded in {project.relative(measurement_path(project, measurement.machine))}")


def aa_command(
    runs: Annotated[int, typer.Option(min=1, help="Number of A/A judgements.")] = 200,
    parallel: Annotated[
        int, typer.Option(min=1, help="Devices that judge at once, each in a process of its own.")
    ] = 1,
    target: Target = None,
    out: Annotated[Path | None, typer.Option(help="Write the record to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Judge the same code against itself and count false wins; takes minutes on an idle machine.

    `--out` is written after each judgement; if the command is interrupted, or a device fails, the same command
    continues on the same devices. Exit code 1: more false wins than Warpsmith states; 4: a device failed.
    """
    from warpsmith.lab.gate_tests import false_wins, unfinished
    from warpsmith.lab.machine import hardware as pages
    from warpsmith.project import find_project

    project = find_project()
    chosen = pages.choose_target(project, target)
    devices = false_wins.choose_devices(chosen, parallel)
    with console.progress() as tell:
        earlier, obstacle = false_wins.read_earlier_false_wins(out, chosen, devices, runs) if out else (None, "")
        if out:
            console.tell_continuation(
                unfinished.unfinished_path(out),
                f"{earlier.runs} of {runs} judgements" if earlier else "",
                obstacle,
            )
        for result in false_wins.count_false_wins(project, chosen, devices, runs, tell, earlier):
            if out:
                unfinished.save_record(out, result)
            if result.runs % _LOG_INTERVAL == 0:
                console.tell_without_terminal(
                    f"A/A judgement {result.runs} of {runs}: {result.accepted} accepted so far"
                )
    if as_json:
        console.out_json(result)
    else:
        _print_false_wins(result)
    if not result.within_rate:
        raise typer.Exit(SolutionFailed.exit_code)


def register(app: typer.Typer) -> None:
    """Add the commands of this group."""
    app.command("hardware")(hardware_command)
    app.command("ceiling")(ceiling_command)
    app.command("aa")(aa_command)


def _print_targets(targets: list[str], as_json: bool) -> None:
    import json

    console.out(json.dumps(targets) if as_json else "\n".join(targets))


def _print_figures(page: HardwarePage) -> None:
    rows = []
    for name, figure in page.target.figures.items():
        value = figure.value if isinstance(figure.value, str) else f"{figure.value:g}"
        rows.append((name, value, figure.unit, page.citation(name), figure.note))
    console.out_table(("figure", "value", "unit", "file:line", "note"), rows)


def _print_ceilings(measurement: Measurement) -> None:
    rows = [
        (name, f"{ceiling.value:.4g}", ceiling.unit, f"{ceiling.best:.4g}", f"{ceiling.spread:.1%}", ceiling.how)
        for name, ceiling in measurement.ceilings.items()
    ]
    console.out_table(("ceiling", "median", "unit", "best", "spread", "how"), rows)
    for clock, call in measurement.launch.items():
        console.out(
            f"launch floor, by {clock}: {call.seconds * 1e6:.2f} us, spread {call.spread:.1%},"
            f" lower quartile of {call.samples}"
        )


def _print_false_wins(result: FalseWins) -> None:
    console.out(f"false wins: {result.accepted} of {result.runs} A/A judgements, at most {result.upper:.1%} "
                f"with 95 % confidence; stated: {result.stated:.0%}")  # fmt: skip
    console.out(f"no difference {result.none}, ambiguous {result.ambiguous}, regression {result.regressions}; "
                f"largest gain {result.largest_gain:+.2%}")  # fmt: skip
    if len(result.devices) > 1:
        rows = [
            (
                each.machine.uuid or each.machine.device,
                f"{each.accepted} of {each.runs}",
                f"{each.upper:.1%}",
                f"{each.largest_gain:+.2%}",
                "not measured" if each.floor is None else f"{each.floor:.2%}",
            )
            for each in result.devices
        ]
        console.out_table(("device", "false wins", "at most", "largest gain", "A/A floor"), rows)
