"""Errors of the operating system as one sentence: which file, what is wrong, what to do."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from warpsmith.errors import MachineLacks
from warpsmith.files import TEMPORARY_PREFIX

_ROOM, _RIGHTS = "make room", "correct the permissions"
_SERVER = "see whether the server of this file system answers"
_DISK = "look for the disk's errors with `dmesg`"
_NO_LOCKS = "move the project to a file system that has locks"

_ADVICE: Mapping[int, str] = MappingProxyType(
    {
        errno.ENOSPC: _ROOM,
        errno.EDQUOT: "remove files of yours, or have the quota raised",
        errno.EFBIG: "raise the limit on the size of a file (`ulimit -f`)",
        errno.EROFS: "mount it for writing, or work elsewhere",
        errno.EACCES: _RIGHTS,
        errno.EPERM: _RIGHTS,
        errno.EIO: _DISK,
        errno.EREMOTEIO: _DISK,
        errno.ENXIO: _DISK,
        errno.ENODEV: _DISK,
        errno.ESTALE: "mount this file system again",
        errno.ETIMEDOUT: _SERVER,
        errno.EHOSTDOWN: _SERVER,
        errno.EHOSTUNREACH: _SERVER,
        errno.ENOTCONN: _SERVER,
        errno.ENOLCK: _NO_LOCKS,
        errno.ENOSYS: _NO_LOCKS,
        errno.EOPNOTSUPP: _NO_LOCKS,
        errno.EDEADLK: "end the other commands that work on this project",
        errno.EBUSY: "end the program that uses it",
        errno.ETXTBSY: "end the program that runs from it",
        errno.EMFILE: "raise the limit on open files (`ulimit -n 4096`)",
        errno.ENFILE: "end programs that keep many files open",
        errno.ENOMEM: "free some memory",
        errno.EAGAIN: "end other processes, or raise their limit (`ulimit -u`)",
        errno.ELOOP: "remove the symbolic links that lead in a circle",
        errno.EMLINK: "remove other links or folders there",
        errno.ENAMETOOLONG: "shorten the name",
        errno.EEXIST: "move what lies in its place",
        errno.ENOTDIR: "move what lies in the place of the folder",
        errno.EISDIR: "move the folder that lies in the place of the file",
    }
)
"""The way out of each error that the machine or its user causes. Any other may be a mistake of ours."""

UNREADABLE_FOR_NOW = frozenset(_ADVICE) - {
    errno.EEXIST,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
}
"""Errors that say nothing about the content of a file: another time, or to another user, it reads."""


def is_machine_fault(error: OSError) -> bool:
    """Return whether the machine or its user causes an error, and this module says what to do about it."""
    return error.errno in _ADVICE


def describe_os_error(
    error: OSError, repair: str = "run the command again", at: Path | None = None
) -> MachineLacks:
    """Return the error that a user sees; of an unfinished file it names the folder.

    Args:
        error: what the operating system refused.
        repair: what to do after it is corrected.
        at: file or folder to name if the error names none.
    """
    if error.errno == errno.ENOENT and not error.filename and _is_folder_gone():
        return MachineLacks("The working folder was removed; change to another one, then run the command again.")
    fault = error.strerror or str(error) or type(error).__name__
    unforeseen = f"nothing should cause this ({_raising_line(error)}): report it if it comes back"
    advice = _ADVICE.get(error.errno or 0, unforeseen)
    return MachineLacks(f"{_location(error, at)}: {fault}; nothing was lost: {advice}, then {repair}.")


def _location(error: OSError, at: Path | None) -> Path | str:
    name = error.filename
    path = Path(str(name)) if isinstance(name, str | Path) and str(name) else at
    if path is None:
        return "A file"
    unfinished = next((part for part in (path, *path.parents) if part.name.startswith(TEMPORARY_PREFIX)), None)
    return unfinished.parent if unfinished else path


def _is_folder_gone() -> bool:
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def _raising_line(error: OSError) -> str:
    """Return the line of ours that the error passed last: `files.py:41`."""
    line, step = "unknown line", error.__traceback__
    while step:
        path = Path(step.tb_frame.f_code.co_filename)
        if path.is_relative_to(Path(__file__).parent):
            line = f"{path.name}:{step.tb_lineno}"
        step = step.tb_next
    return line
