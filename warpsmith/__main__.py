"""Entry point of the command.

Hooks take a shortcut without a command-line library, since they run at every tool use.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

from warpsmith import collector


def main() -> None:
    """Run `warpsmith`; exit codes are those of `warpsmith.errors`."""
    if sys.argv[1:2] == ["hook"] and len(sys.argv) == 3 and not sys.argv[2].startswith("-"):
        from warpsmith.hooks import run

        try:
            sys.exit(run.run_hook(sys.argv[2], sys.stdin, sys.stdout))
        finally:
            collector.skip_last_collection()
    from warpsmith import termination

    collector.collect_rarely()
    # Warpsmith uses no pydantic plugins, and the search for them reads the metadata of every installed package.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    termination.interrupt_on_signals()
    try:
        from warpsmith.cli.main import main as command

        command()
    except KeyboardInterrupt:  # During imports; later the command-line library handles it.
        _end_interrupted()
    except SystemExit as end:
        if end.code == termination.INTERRUPTED:
            _end_interrupted()
        raise
    finally:
        collector.skip_last_collection()


def _end_interrupted() -> NoReturn:
    """Exit with the code of the signal, which is named unless it was Ctrl-C."""
    from warpsmith import termination

    if name := termination.signal_name():
        with suppress(OSError):
            sys.stderr.write(f"warpsmith: Stopped by {name}; what was written is whole.\n")
    sys.exit(termination.exit_code())


if __name__ == "__main__":
    main()
