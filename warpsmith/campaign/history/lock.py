"""One writer a campaign: an advisory lock that dies with its process, and a text that says who holds it."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import ValidationError

from warpsmith import files
from warpsmith.campaign.history.store import Campaign
from warpsmith.core.base import Minute, Model, this_minute
from warpsmith.errors import Busy, MachineLacks

LOCK, HOLDER = ".lock", ".holder.json"
_FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the quota is used up", errno.EROFS: "it is read-only"}


class Holder(Model):
    """Who holds a campaign."""

    pid: int
    """The process."""
    host: str
    """Where it runs."""
    command: str
    """What it is doing."""
    since: Minute
    """When it began, in UTC."""


@contextmanager
def hold(campaign: Campaign, command: str) -> Iterator[None]:
    """Hold the campaign for writing; readers need not.

    Raises:
        Busy: another process holds it; the message names it.
        MachineLacks: the disk takes no more; what was kept stays whole.
    """
    lock = FileLock(campaign.folder / LOCK, timeout=files.LET_GO)
    holder = campaign.folder / HOLDER
    try:
        lock.acquire()
    except Timeout:
        raise Busy(f"{campaign.name} is held by {_holder(holder)}; wait until it is done.") from None
    try:
        own = Holder(pid=os.getpid(), host=socket.gethostname(), command=command, since=this_minute())
        files.write(holder, own.model_dump_json() + "\n")
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise MachineLacks(
            f"Nothing more can be written to {campaign.folder}: {_FULL[error.errno]}; nothing was lost:"
            f" make room, then run `warpsmith resume --campaign {campaign.name}`."
        ) from error
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def _holder(path: Path) -> str:
    try:
        holder = Holder.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return "another process"  # it has just taken the lock
    return f"process {holder.pid} on {holder.host} (`{holder.command}`, since {holder.since} UTC)"
