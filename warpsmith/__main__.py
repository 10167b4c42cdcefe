"""The command's entry. Hooks take a short way: they run at every tool use and need no command-line library."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run `warpsmith`; exit codes are those of `warpsmith.errors`."""
    if sys.argv[1:2] == ["hook"] and len(sys.argv) == 3 and not sys.argv[2].startswith("-"):
        from warpsmith.hooks import run

        sys.exit(run.run(sys.argv[2], sys.stdin, sys.stdout))
    # Nothing here has a pydantic plugin, and looking for one reads the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from warpsmith.cli.main import main as command

        command()
    except KeyboardInterrupt:  # while modules are imported; later the command-line library sees it
        sys.exit(130)


if __name__ == "__main__":
    main()
