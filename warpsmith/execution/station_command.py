"""Command that starts the station: its text travels in it, so that nothing need be installed there."""

from __future__ import annotations

import base64
import shlex
import zlib
from pathlib import Path

from warpsmith.errors import MachineLacks
from warpsmith.execution import station
from warpsmith.execution.contexts import NamedContext


def station_command(python: str) -> str:
    """Return the line for a shell there that starts the station with this Python."""
    text = base64.b64encode(zlib.compress(Path(station.__file__).read_bytes(), 9)).decode()
    program = f"import base64,zlib;exec(zlib.decompress(base64.b64decode('{text}')))"
    return unquote_home(shlex.join([python, "-I", "-c", program]))


def unquote_home(command: str) -> str:
    """Let the other shell expand `~/` at the beginning of a command."""
    return command.replace("'~/", "~/'", 1) if command.startswith("'~/") else command


def missing_python(entry: NamedContext, location: str) -> MachineLacks:
    """Return the error for a Python that does not exist there."""
    return MachineLacks(
        f"{entry.name}: {location} has no Python at `{entry.context.python}`; name one with"
        " `context add --python`."
    )
