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
_PATH_EVENTS: dict[str, tuple[tuple[int, int | None], ...]] = {
    "os.remove": ((0, 1),),
    "os.rmdir": ((0, 1),),
    "os.truncate": ((0, None),),
    "os.rename": ((0, 2), (1, 3)),
    "os.link": ((0, 2), (1, 3)),
    "os.symlink": ((0, None), (1, 2)),
}
"""Audit events with the places of the paths that change, and of the open folder that each is relative to."""


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

    def refuses(self, path: str) -> bool:
        """Tell whether a write of this path is refused."""
        name = os.path.abspath(path)  # noqa: PTH100 - each import passes here
        return self._is_below(name) and not self._may_write(name)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = args
            if isinstance(flags, int) and flags & _WRITES:
                self._refuse(path)
        elif event == "os.mkdir":
            path = _resolve(args[0], args[2])
            if path is not None and not os.path.exists(path):  # noqa: PTH110 - each import passes here
                self._refuse(path)
        elif event in _PATH_EVENTS:
            for index, folder in _PATH_EVENTS[event]:
                self._refuse(_resolve(args[index], -1 if folder is None else args[folder]))

    def _refuse(self, path: object) -> None:
        if not isinstance(path, str | bytes | os.PathLike) or self._reports:
            return
        name = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - each import passes here
        if not self.refuses(name):
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


def _resolve(path: Any, folder: int) -> Any:  # noqa: ANN401 - a path, or an open file
    """Return a path that is relative to an open folder, as `shutil.rmtree` gives it, as an absolute one; None
    of a folder so deep that Linux has no name for it."""
    if folder < 0 or not isinstance(path, str | bytes | os.PathLike):
        return path
    try:
        above = os.readlink(f"/proc/self/fd/{folder}")  # noqa: PTH115 - each import passes here
    except OSError:
        return None
    return os.path.join(above, os.fsdecode(path))  # noqa: PTH118 - the same


def _calling_line(root: str) -> str:
    """Return the innermost line of the user's code, as `train.py:105`; empty if there is none."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(root) and "site-packages" not in file:
            return f"{Path(file).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
