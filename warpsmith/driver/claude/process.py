"""The Claude Code process: the CLI that the SDK carries, tied to this process and apart from its terminal.

By itself the CLI outlives a driver that is killed, and goes on working and spending; and Ctrl-C in the terminal
ends it before it has told what it cost.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from warpsmith.errors import MachineLacks

INSTALL = "pip install 'warpsmith[claude]'"

_TIED = """
import ctypes, os, signal, sys
os.setsid()
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG; it lasts over execv
os.execv(sys.argv[1], sys.argv[1:])
"""


def require() -> None:
    """Check that the SDK is there and holds a CLI.

    Raises:
        MachineLacks: one of them is missing.
    """
    try:
        import claude_agent_sdk  # noqa: F401
    except ImportError as error:
        raise MachineLacks(f"The claude designer needs claude-agent-sdk; run `{INSTALL}`.") from error
    _cli()


@contextmanager
def launcher() -> Iterator[Path]:
    """A program that starts the CLI; it ends with this process, and a signal of the terminal passes it by.

    Raises:
        MachineLacks: there is no CLI.
    """
    cli = _cli()
    with tempfile.TemporaryDirectory(prefix="warpsmith-") as folder:
        path = Path(folder) / "claude"
        path.write_text(
            f'#!/bin/sh\nexec {quote(sys.executable)} -I -S -c {quote(_TIED)} {quote(str(cli))} "$@"\n'
        )
        path.chmod(0o700)
        yield path


def _cli() -> Path:
    """The CLI inside the SDK's wheel, else the one on PATH."""
    import claude_agent_sdk

    carried = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    found = carried if carried.is_file() else shutil.which("claude")
    if found is None:
        raise MachineLacks(f"Claude Code is not in claude-agent-sdk and not on PATH; run `{INSTALL}` again.")
    return Path(found)
