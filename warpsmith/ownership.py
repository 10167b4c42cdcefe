"""Owner of a temporary file or folder, in its name: host, process and the time at which the process started.

A name is there as soon as the file is, so it is never without an owner. The start tells a process from a later one
with the same number. Only what a dead process of this user on this host has left may be removed.
"""

from __future__ import annotations

import functools
import os
import re
from contextlib import suppress
from pathlib import Path

_DIGITS = 6
_NO_HOST = "0" * _DIGITS
"""Digits of a host or a start that cannot be told."""
_MARK = re.compile(rf"-(?P<host>[0-9a-f]{{{_DIGITS}}})-(?P<pid>\d+)-(?P<start>[0-9a-f]{{{_DIGITS}}})-\w+$")


def owner_mark() -> str:
    """Return the mark of this process: `3f09aa-4711-c0ffee`."""
    pid = os.getpid()
    return f"{_host() or _NO_HOST}-{pid}-{_own_start(pid) or _NO_HOST}"


def has_owner_mark(name: str) -> bool:
    """Return whether a name ends with a mark and a part that makes it unique."""
    return _MARK.search(name) is not None


def is_abandoned(path: Path) -> bool:
    """Return whether a file or folder is marked, belongs to this user, and its process on this host is dead."""
    match = _MARK.search(path.name)
    host = _host()
    if match is None or not host or match["host"] != host or process_start(int(match["pid"])) == match["start"]:
        return False
    with suppress(OSError):  # it is gone already
        return path.lstat().st_uid == os.getuid()
    return False


def process_start(pid: int) -> str:
    """Return digits for the start of a process; empty if it is dead, or has ended and waits for its parent."""
    try:
        fields = Path("/proc", str(pid), "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else _digits(_boot(), fields[19].decode())


@functools.cache
def _own_start(pid: int) -> str:
    return process_start(pid)


@functools.cache
def _host() -> str:
    """Return digits for this machine and what counts its processes: containers have numbers of their own.

    Empty where either cannot be told: nothing counts as abandoned then.
    """
    space = ""
    with suppress(OSError):
        space = str(Path("/proc/self/ns/pid").readlink())
    machine = _text("/etc/machine-id") or _boot()
    return _digits(machine, os.uname().nodename, space) if machine and space else ""


@functools.cache
def _boot() -> str:
    return _text("/proc/sys/kernel/random/boot_id")


def _text(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_text().strip()
    return ""


def _digits(*parts: str) -> str:
    import hashlib

    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_DIGITS]
