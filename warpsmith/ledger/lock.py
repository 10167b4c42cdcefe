"""One writer at a time: an advisory lock that ends with its process, and a text that says who holds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.base import Minute, Model, this_minute
from warpsmith.errors import Busy
from warpsmith.system_faults import describe_os_error, is_machine_fault

LOCK, HOLDER = ".lock", ".holder.json"
"""Names of a lock and of the text about its holder where a folder has one lock."""


class LockHolder(Model):
    """The process that holds a lock."""

    pid: int
    """Number of the process."""
    host: str
    """Name of the machine that it runs on."""
    command: str
    """The command that it runs."""
    since: Minute
    """Time at which it took the lock, in UTC."""


@contextmanager
def hold_lock(path: Path, name: str, command: str, repair: str) -> Iterator[None]:
    """Hold a lock for writing; readers need none.

    Args:
        path: file of the lock; the text about its holder lies next to it.
        name: name of what is locked, for the error message.
        command: the command that takes the lock.
        repair: the command to run after the machine's fault is corrected.

    Raises:
        Busy: another process holds it; the message names that process.
        MachineLacks: the disk or its file system failed; everything written before is whole.
    """
    import socket

    from filelock import FileLock, Timeout

    lock = FileLock(path, timeout=files.LOCK_WAIT_SECONDS)
    holder = path.with_name(path.name.removesuffix(LOCK) + HOLDER)
    try:
        lock.acquire()
    except Timeout:
        raise Busy(f"{name} is held by {_describe_holder(holder)}; wait until it is done.") from None
    try:
        own = LockHolder(pid=os.getpid(), host=socket.gethostname(), command=command, since=this_minute())
        holder.write_text(own.model_dump_json() + "\n")  # advisory: a torn one is read as no text
        yield
    except OSError as error:
        if not is_machine_fault(error):
            raise
        raise describe_os_error(error, f"run `{repair}`", path.parent) from error
    finally:
        with suppress(OSError):  # advisory, and the fault above says more
            holder.unlink(missing_ok=True)
        lock.release()


def _describe_holder(path: Path) -> str:
    try:
        holder = LockHolder.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return "another process"  # it has just taken the lock
    return f"process {holder.pid} on {holder.host} (`{holder.command}`, since {holder.since} UTC)"
