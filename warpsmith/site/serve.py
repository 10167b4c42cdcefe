"""Server of a site on this machine, for those who would rather follow an address than open a file."""

from __future__ import annotations

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from warpsmith.errors import Misuse

ADDRESS = "127.0.0.1"


class _Silent(SimpleHTTPRequestHandler):
    """Handler that writes no line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        """Write no line for a request."""


def site_server(folder: Path, port: int) -> ThreadingHTTPServer:
    """Return a server of a folder at a port of this machine; 0 takes a free one.

    Raises:
        Misuse: the port is in use.
    """
    try:
        return ThreadingHTTPServer((ADDRESS, port), partial(_Silent, directory=str(folder)))
    except OSError as error:
        raise Misuse(f"Port {port} cannot be used ({error.strerror}); name another with --port.") from error
