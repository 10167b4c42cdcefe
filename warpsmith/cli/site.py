"""`warpsmith site`: a site of the project's kernels, knowledge and history."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def site_command(
    out: Annotated[Path, typer.Option(help="Folder of the site; one that holds an earlier site is replaced.")],
    serve: Annotated[bool, typer.Option("--serve", help="Serve the site on this machine until Ctrl-C.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port for --serve; 0 takes a free one.")] = 8000,
) -> None:
    """Build a static site of the project's operators, knowledge, hardware and campaigns from their records.

    It works from disk and asks no other host. A file that does not read is named, on the pages and here, and the
    rest is built.
    """
    from warpsmith.cli import console
    from warpsmith.project import find_project
    from warpsmith.site import build

    folder = out.absolute()
    build.refuse_foreign_files(folder)  # before the work
    site = build.build_site(find_project())
    build.write_site(site, folder)
    for problem in site.problems:
        console.tell(f"Left out: {problem}")
    size = sum(map(len, site.contents.values())) / 1e6
    console.tell(f"{len(site.pages)} pages, {size:.1f} MB")
    console.out(str(console.path_from_here(folder / "index.html")))
    if serve:
        _serve(folder, port)


def _serve(folder: Path, port: int) -> None:
    import contextlib

    from warpsmith.cli import console
    from warpsmith.site import serve

    with serve.site_server(folder, port) as server, contextlib.suppress(KeyboardInterrupt):
        console.tell(f"http://{serve.ADDRESS}:{server.server_address[1]}/ until Ctrl-C")
        server.serve_forever()


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("site")(site_command)
