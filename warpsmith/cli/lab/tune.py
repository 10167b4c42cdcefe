"""`warpsmith tune`: search the configurations that a version declares, and write the best to a new version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from warpsmith.cli.campaign.version import File
from warpsmith.cli.options import Json, Target

if TYPE_CHECKING:
    from warpsmith.project import Project


def tune_command(
    solution: File,
    seconds: Annotated[
        float, typer.Option(min=1, help="Wall time of the search; a running trial is finished.")
    ] = 120,
    target: Target = None,
    shapes: Annotated[
        Literal["representative", "full"], typer.Option(help="Workloads to tune for.")
    ] = "representative",
    as_json: Json = False,
) -> None:
    """Tune a version: try the given configuration, a few more for the slope, then search in bounded time.

    The best configurations go into the file of the next version, to be judged like any other. The version itself
    does not change.
    """
    from warpsmith import files
    from warpsmith.campaign import lab_requests, tries
    from warpsmith.campaign.history import solutions
    from warpsmith.cli import console
    from warpsmith.cli.campaign import version
    from warpsmith.lab.tuning import tune as lab
    from warpsmith.project import find_project
    from warpsmith.reporting import terminal

    project = find_project()
    op, base = version.find_version(project, solution)
    manifest = version.standalone_manifest(project, op, base, target)
    sets = lab_requests.EVERYTHING if shapes == "full" else ("representative",)
    with console.progress() as tell, lab_requests.lease_target(project, manifest.target, tell):
        tuning, text = lab.tune_version(
            lab_requests.lab_request(project, manifest, base, tell, sets=sets), seconds
        )
    if text != base.path.read_text(encoding="utf-8"):
        path = solutions.new_solution(project, op, base.language, _version_suffix(project, op)).path
        files.write_file(path, text)
        tuning = tuning.model_copy(update={"written": project.relative(path)})
    tries.log_configs(project, op, tuning.target, [screened.config for screened in tuning.tried])
    record = project.scratch / "tunings" / f"{op}-{base.language}-{base.version}-{tuning.target}.json"
    files.write_file(record, tuning.model_dump_json(indent=2) + "\n")
    if as_json:
        console.out_json(tuning)
        return
    console.stdout().print(terminal.tuning_table(tuning, project.relative(record)))


def _version_suffix(project: Project, op: str) -> str | None:
    """Return the suffix of the campaign that is worked on, if it is on this operator."""
    from warpsmith.campaign.history import store

    campaign = store.find_current_campaign(project)
    return campaign.manifest.version_suffix if campaign and campaign.manifest.target_op == op else None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("tune")(tune_command)
