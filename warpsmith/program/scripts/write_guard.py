"""In the processes of a command: the project's files may be read, and only what the user names may be written.

A trial runs a script many times. A checkpoint that it writes in one run would change what the next one reads, and
would overwrite the user's own.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATH_EVENTS = {"os.remove": 1, "os.rmdir": 1, "os.truncate": 1, "os.rename": 2, "os.link": 2, "os.symlink": 2}
"""Audit events whose first arguments are paths that change, with their number."""


class WriteGuard:
    """Refusal of writes below a folder. It sees what Python opens, and what `torch.save` writes."""

    def __init__(self, root: str, writable: Sequence[str], report: Path) -> None:
        """Guard `root`, except for `writable`; the first refusal is written to `report`."""
        self._root = root.rstrip("/") + "/"
        self._writable = tuple(
            path.rstrip("/") for path in (*writable, tempfile.gettempdir()) if self._is_below(path)
        )
        self._report = report
        self._reports = False

    def install(self) -> None:
        """Guard this process from here on; Python has no way back."""
        sys.addaudithook(self._audit)

    def guard_save(self) -> None:
        """Guard `torch.save`, whose file PyTorch opens without Python."""
        import functools

        import torch

        original = torch.save

        @functools.wraps(original)
        def save(obj: object, f: Any, *args: Any, **options: Any) -> None:  # noqa: ANN401 - PyTorch's
            if isinstance(f, str | os.PathLike):
                self._refuse(os.fspath(f))
            original(obj, f, *args, **options)

        torch.save = save

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if isinstance(flags, int) and flags & _WRITES:
                self._refuse(path)
        elif event == "os.mkdir":
            if not os.path.exists(args[0]):  # noqa: PTH110 - each import passes here
                self._refuse(args[0])
        elif event in _PATH_EVENTS:
            for path in args[: _PATH_EVENTS[event]]:
                self._refuse(path)

    def _refuse(self, path: object) -> None:
        if not isinstance(path, str | bytes | os.PathLike) or self._reports:
            return
        name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - the same
        if not self._is_below(name) or self._may_write(name):
            return
        self._reports = True
        if not self._report.exists():
            self._report.write_text(f"{name}\n{_calling_line(self._root)}\n")
        self._reports = False
        raise PermissionError(f"Warpsmith runs this script many times and lets it write no file: {name}")

    def _is_below(self, path: str) -> bool:
        return path.startswith(self._root)

    def _may_write(self, path: str) -> bool:
        """Tell whether a path is writable: tools' own hidden folders and bytecode are."""
        parts = path.removeprefix(self._root).split("/")
        own = parts[0].startswith(".") or "__pycache__" in parts
        return own or any(path == top or path.startswith(f"{top}/") for top in self._writable)


def _calling_line(root: str) -> str:
    """Return the innermost line of the user's code, as `train.py:105`; empty if there is none."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(root) and "site-packages" not in file:
            return f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
