"""Landlock rules: the files that a process and its children may touch, and the processes that they may signal.

The kernel enforces them. Layouts and bits are those of linux/landlock.h. Run as a program, this file enters rules
and becomes another command: `python landlock.py --read PATH --write PATH -- COMMAND...`. So it imports nothing of
the package.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION, _PATH_BENEATH, _NO_NEW_PRIVILEGES = 1, 1, 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_FILE_BITS = {1: 13, 2: 14, 3: 15, 5: 16}
_TCP_BITS = {4: 2}
_SCOPE_BITS = {6: 2}  # From this version on, signals to processes outside are refused.

LIST = _READ_DIR
READ = _EXECUTE | _READ_FILE | _READ_DIR
EDIT = _READ_FILE | _WRITE_FILE | _READ_DIR | _TRUNCATE
DEVICE = _READ_FILE | _WRITE_FILE | _READ_DIR | _IOCTL_DEV
WRITE = (1 << 16) - 1

SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin", "/opt", "/nix/store", "/proc/cpuinfo", "/proc/meminfo",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime",
    "/etc/nsswitch.conf", "/etc/passwd", "/etc/group",
)  # fmt: skip
"""Files and folders of the system that programs read, and that hold nothing of a user."""

Grant = tuple[Path, int]
"""File, or folder with everything below it, and the access granted there: LIST, READ, EDIT, DEVICE or WRITE."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("tcp", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def landlock_version() -> int:
    """Return the kernel's Landlock version, or 0 if it has none."""
    number: int = _libc().syscall(_CREATE_RULESET, None, 0, _ASK_VERSION)
    return max(0, number)


def confined_command(
    command: Sequence[str | Path], readable: Sequence[Path], writable: Sequence[Path]
) -> list[str]:
    """Return a command that runs another one with access to the system, its own folders and these paths alone.

    The command itself where the kernel has no Landlock.
    """
    if not landlock_version():
        return [str(part) for part in command]
    options = [part for path in readable for part in ("--read", str(path))]
    options += [part for path in writable for part in ("--write", str(path))]
    return [sys.executable, "-I", "-S", __file__, *options, "--", *map(str, command)]


def _become_command(arguments: Sequence[str]) -> None:
    """Enter the rules of `confined_command`, and become its command."""
    split = arguments.index("--")
    options, command = arguments[:split], arguments[split + 1 :]
    rights = {"--read": READ, "--write": WRITE}
    grants = [(Path(path), rights[name]) for name, path in zip(options[::2], options[1::2], strict=True)]
    grants += [(Path(path), READ) for path in SYSTEM]
    restrict_process([*grants, (Path("/dev/null"), DEVICE)])
    os.execvp(command[0], list(command))


def restrict_process(grants: Sequence[Grant]) -> None:
    """Refuse this process all file access that is not granted, and TCP.

    From version 6 on, signals to other processes and their abstract sockets are refused too. Paths that do not
    exist are ignored.

    Raises:
        OSError: the kernel has no Landlock, or refuses.
    """
    handled = _Ruleset(*(_bits(table) for table in (_FILE_BITS, _TCP_BITS, _SCOPE_BITS)))
    ruleset = _call(_CREATE_RULESET, ctypes.byref(handled), ctypes.sizeof(handled), 0)
    try:
        for path, access in grants:
            _grant(ruleset, path, access & handled.files)
        if _libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "no_new_privs")
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def grant_reading(root: Path, hidden: Sequence[Path]) -> Iterator[Grant]:
    """Yield grants to read everything below `root` except what is hidden.

    The names in a folder that contains something hidden can still be listed.
    """
    if not any(path.is_relative_to(root) for path in hidden):
        yield root, READ
    elif root not in hidden and root.is_dir():
        yield root, LIST
        for child in root.iterdir():
            if not child.is_symlink():  # A link may lead anywhere.
                yield from grant_reading(child, hidden)


def _grant(ruleset: int, path: Path, access: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = access if path.is_dir() else access & _FILE_RIGHTS
        rule = _PathBeneath(allowed, file)
        if allowed:
            _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(file)


def _bits(table: dict[int, int]) -> int:
    """Return the mask of all rights that this version of the kernel knows; rights outside the mask are not
    refused."""
    counts = [count for since, count in table.items() if since <= landlock_version()]
    return (1 << max(counts, default=0)) - 1


def _call(number: int, *arguments: object) -> int:
    result: int = _libc().syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


if __name__ == "__main__":
    _become_command(sys.argv[1:])
