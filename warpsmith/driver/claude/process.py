"""Start the Claude Code CLI that the SDK contains so that it ends with this process, apart from its terminal.

Otherwise the CLI survives a driver that is killed, and continues to work and spend. Ctrl-C in the terminal would
also end it before it reports its cost.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote

from warpsmith.errors import MachineLacks
from warpsmith.packages import install_command
from warpsmith.passed_environment import agent_environment
from warpsmith.temporary import TemporaryFolder

_TIED_START = """
import ctypes, os, signal, sys
os.setsid()
ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG; it lasts over execv
for name in sys.argv[1].split():
    os.environ.pop(name, None)
os.execv(sys.argv[2], sys.argv[2:])
"""


def require_claude() -> None:
    """Check that the SDK and the CLI are installed.

    Raises:
        MachineLacks: one of them is missing.
    """
    try:
        import claude_agent_sdk  # noqa: F401
    except ImportError as error:
        raise MachineLacks(
            f"The claude designer needs claude-agent-sdk; run `{install_command('claude')}`."
        ) from error
    _cli()


@contextmanager
def launcher() -> Iterator[Path]:
    """Yield a script that starts the CLI: it ends with this process, receives no signal of the terminal, and gets
    only the variables that an agent needs.

    Raises:
        MachineLacks: the CLI is missing.
    """
    cli = _cli()
    with TemporaryFolder() as folder:
        path = Path(folder) / "claude"
        # The SDK adds its own variables to this process's, so the rest is removed here.
        withheld = quote(" ".join(sorted(set(os.environ) - set(agent_environment()))))
        python = f"{quote(sys.executable)} -I -S -c {quote(_TIED_START)}"
        path.write_text(f'#!/bin/sh\nexec {python} {withheld} {quote(str(cli))} "$@"\n')
        path.chmod(0o700)
        yield path


def _cli() -> Path:
    """Return the CLI inside the SDK's wheel, else the one on PATH."""
    import claude_agent_sdk

    bundled = Path(claude_agent_sdk.__file__).parent / "_bundled" / "claude"
    cli = bundled if bundled.is_file() else shutil.which("claude")
    if cli is None:
        raise MachineLacks(
            f"Claude Code is neither in claude-agent-sdk nor on PATH; run `{install_command('claude')}` again."
        )
    return Path(cli)
