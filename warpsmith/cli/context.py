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
        str, typer.Option(metavar="HOST", help="Host as `ssh` takes it, or an alias of your ssh_config.")
    ],
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
    """Add a machine that judges, reached by SSH. Nothing is sent there yet."""
    from warpsmith.core.text import describe_error
    from warpsmith.errors import Misuse
    from warpsmith.execution import context_file, contexts
    from warpsmith.project import find_project

    project = find_project()
    contexts.check_context_name(name)
    options = {
        "ssh": ssh, "workdir": workdir, "python": python, "grace": grace, "ssh_config": ssh_config,
        "variables": variable or None,
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
    console.out(f"{name}: {context.ssh}, folder {context.workdir}, Python {context.python}; in {file}")
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
    rows += [(name, f"ssh {e.context.ssh}", e.context.workdir, e.origin) for name, e in entries.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        console.out("  ".join((*cells, row[3])).rstrip())


def show_context_command(name: ContextName, as_json: Json = False) -> None:
    """Show the settings of a context, and the file that has them."""
    from warpsmith.execution import contexts
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
        if value not in (None, ()):
            console.out(f"  {key}: {', '.join(value) if isinstance(value, tuple) else value}")


def trust_context_command(name: ContextName) -> None:
    """Agree to a context that comes with the project: it runs a program on a machine of yours, as you.

    Whenever its settings change, it asks again.
    """
    from warpsmith.execution import contexts
    from warpsmith.project import find_project

    entry = contexts.find_context(find_project(), name)
    contexts.trust_context(entry)
    context = entry.context
    console.out(f"{name}: {context.ssh}, folder {context.workdir}, Python {context.python}: trusted as it is now.")


def remove_context_command(name: ContextName) -> None:
    """Remove a context from the settings and close its connection; what is in its folder there stays."""
    from warpsmith.execution import context_file, contexts, station
    from warpsmith.execution.ssh import SshConnection
    from warpsmith.project import find_project

    entry: NamedContext = contexts.find_context(find_project(), name)
    context_file.remove_context(entry)
    SshConnection(entry).close()
    console.out(f"Removed {name} from {entry.file}.")
    folder = f"{entry.context.workdir}/{station.OWN}"
    console.tell(f"{folder} on {entry.context.ssh} stays; remove it there if nobody needs it.")


def register(app: typer.Typer) -> None:
    """Add the group to the command."""
    group = typer.Typer(
        name="context",
        help="Name other machines that judge.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.command("add")(add_context_command)
    group.command("list")(list_contexts_command)
    group.command("show")(show_context_command)
    group.command("trust")(trust_context_command)
    group.command("remove")(remove_context_command)
    app.add_typer(group)
