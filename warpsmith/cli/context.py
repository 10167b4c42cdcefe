"""`warpsmith context`: add, list, show, trust and remove machines that judge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from warpsmith.cli import console
from warpsmith.cli.options import Json

if TYPE_CHECKING:
    from warpsmith.execution.contexts import NamedContext

ContextName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the context.")]


def add_context_command(
    name: ContextName,
    ssh: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="Host as `ssh` takes it, or an alias of your ssh_config; with --slurm, the login node.",
        ),
    ] = None,
    slurm: Annotated[
        bool, typer.Option("--slurm", help="Run jobs in an allocation of Slurm, asked for when it is needed.")
    ] = False,
    partition: Annotated[str | None, typer.Option(help="Slurm's partition.")] = None,
    account: Annotated[str | None, typer.Option(help="Account that pays for the allocation.")] = None,
    gpus: Annotated[str | None, typer.Option(help="GPUs of the allocation: `4` or `h100:4`.")] = None,
    time: Annotated[str | None, typer.Option(help="Time limit of the allocation, such as 4:00:00.")] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Option of `sbatch`, repeatable: qos, constraint, cpus-per-task, mem, reservation, nodelist or"
            " exclude.",
        ),
    ] = None,
    idle: Annotated[
        int | None,
        typer.Option(help="Seconds after which an allocation without a job ends by itself; by default 1200."),
    ] = None,
    wait: Annotated[
        int | None, typer.Option(help="Seconds that a command waits in the queue; by default 3600.")
    ] = None,
    workdir: Annotated[str | None, typer.Option(help="Folder there for the lab and the jobs.")] = None,
    python: Annotated[str | None, typer.Option(help="Python there, with the packages of the lab.")] = None,
    grace: Annotated[
        int | None,
        typer.Option(help="Seconds after which a job there ends if nobody asks for it; by default 120."),
    ] = None,
    ssh_config: Annotated[str | None, typer.Option(help="Configuration file for `ssh` in place of yours.")] = None,
    variable: Annotated[
        list[str] | None, typer.Option(help="Environment variable that goes there; repeatable. No others do.")
    ] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="Write it into the project's settings instead of your own.")
    ] = False,
) -> None:
    """Add a machine that judges, reached by SSH or Slurm. Nothing is sent there or asked for yet."""
    from warpsmith.core.text import describe_error
    from warpsmith.errors import Misuse
    from warpsmith.execution import context_file, contexts
    from warpsmith.project import find_project

    project = find_project()
    contexts.check_context_name(name)
    if not (ssh or slurm):
        raise Misuse("Say how to get there: --ssh HOST, --slurm, or both for Slurm on a login node.")
    options = {
        "ssh": ssh, "slurm": slurm or None, "partition": partition, "account": account, "gpus": gpus, "time": time,
        "options": option or None, "idle": idle, "wait": wait, "workdir": workdir, "python": python,
        "grace": grace, "ssh_config": ssh_config, "variables": variable or None,
    }  # fmt: skip
    try:
        context = contexts.Context.model_validate(
            {key: value for key, value in options.items() if value is not None}
        )
    except ValueError as error:
        raise Misuse(f"The context cannot be added: {describe_error(error)}.") from error
    if shared and (personal := [f"--{key.replace('_', '-')}" for key in contexts.PERSONAL if options[key]]):
        raise Misuse(f"{personal[0].rstrip('s')} is for your own settings; omit it, or --shared.")
    origin = "shared" if shared else "yours"
    if any(entry.name == name and entry.origin == origin for entry in contexts.list_all_contexts(project)):
        raise Misuse(
            f"There is a context `{name}` already; `warpsmith context remove {name}` takes it away first."
        )
    file = context_file.save_context(project, name, context, shared=shared)
    if shared:
        contexts.trust_context(contexts.NamedContext(name, context, "shared", file))
    console.out(f"{name}: {context.way}, folder {context.workdir}, Python {context.python}; in {file}")
    console.tell(f"Next: `warpsmith doctor --context {name}` says what it has and lacks.")


def list_contexts_command(as_json: Json = False) -> None:
    """List the machines that can judge; `local` is this one."""
    import json

    from warpsmith.execution import contexts
    from warpsmith.project import find_project

    entries = contexts.list_contexts(find_project())
    if as_json:
        console.out(json.dumps({name: entry.context.model_dump() for name, entry in entries.items()}, indent=2))
        return
    rows = [(contexts.LOCAL, "this machine", "", "")]
    rows += [(name, e.context.way, e.context.workdir, e.origin) for name, e in entries.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        console.out("  ".join((*cells, row[3])).rstrip())


def show_context_command(name: ContextName, as_json: Json = False) -> None:
    """Show the settings of a context, the file that has them, and the allocations of Slurm that it has."""
    from warpsmith.execution import contexts
    from warpsmith.execution.slurm_settings import SlurmSettings
    from warpsmith.project import find_project

    if name == contexts.LOCAL:
        console.out("local: this machine; it has no settings")
        return
    entry = contexts.find_context(find_project(), name)
    if as_json:
        console.out_json(entry.context)
        return
    console.out(f"{entry.name}: {entry.origin}, in {entry.file}")
    for key, value in entry.context.model_dump().items():
        if value not in (None, (), False) and (entry.context.slurm or key not in SlurmSettings.model_fields):
            console.out(f"  {key}: {', '.join(value) if isinstance(value, tuple) else value}")
    if entry.context.slurm:
        _show_allocations(entry)


def _show_allocations(entry: NamedContext) -> None:
    """Show the allocations that this user has in a context; if Slurm cannot be asked, say why."""
    from warpsmith.errors import WarpsmithError
    from warpsmith.execution import contexts
    from warpsmith.execution.slurm import SlurmConnection
    from warpsmith.project import find_project

    try:
        contexts.require_trust(entry)
        allocations = SlurmConnection(entry, find_project().root).list_allocations()
    except WarpsmithError as error:
        console.tell(str(error))
        return
    for each in allocations:
        location = f"on {each.node} until {each.end}" if each.node else f"({each.reason})"
        console.out(f"  allocation: Slurm job {each.job}, {each.state} {location}")
    if not allocations:
        console.out("  allocation: none; the next job asks for one")


def trust_context_command(name: ContextName) -> None:
    """Agree to a context that comes with the project: it runs a program on a machine of yours, as you.

    Whenever its settings change, it asks again.
    """
    from warpsmith.execution import contexts
    from warpsmith.project import find_project

    entry = contexts.find_context(find_project(), name)
    contexts.trust_context(entry)
    context = entry.context
    console.out(f"{name}: {context.way}, folder {context.workdir}, Python {context.python}: trusted as it is now.")


def remove_context_command(name: ContextName) -> None:
    """Remove a context from the settings, end its allocations, close its connection; its folder there stays."""
    from warpsmith.errors import WarpsmithError
    from warpsmith.execution import context_file, contexts, station
    from warpsmith.execution.slurm import SlurmConnection
    from warpsmith.execution.ssh import SshConnection
    from warpsmith.project import find_project

    project = find_project()
    entry: NamedContext = contexts.find_context(project, name)
    context = entry.context
    try:
        contexts.require_trust(entry)
        if context.slurm:
            for job in SlurmConnection(entry, project.root, console.tell).cancel_all():
                console.tell(f"Ended the allocation, Slurm job {job}.")
        if context.ssh:
            SshConnection(entry).close()
    except WarpsmithError as error:
        if context.slurm:
            console.tell(f"Its allocations end by themselves, since they could not be ended now: {error}")
    context_file.remove_context(entry)
    console.out(f"Removed {name} from {entry.file}.")
    location = "its nodes" if context.slurm else context.ssh
    console.tell(f"{context.workdir}/{station.OWN} on {location} stays; remove it there if nobody needs it.")


def register(app: typer.Typer) -> None:
    """Add the group to the command."""
    group = typer.Typer(
        help="Name other machines that judge.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("add")(add_context_command)
    group.command("list")(list_contexts_command)
    group.command("show")(show_context_command)
    group.command("trust")(trust_context_command)
    group.command("remove")(remove_context_command)
    app.add_typer(group, name="context")
