"""Preloaded into a worker host of tests: takes down the walls that a spawn message names, in that one worker.

A name comes as a hidden path below `OPENED`. It runs in the forked worker only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from warpsmith import landlock
from warpsmith.core import gate_rules
from warpsmith.core.trust import Check
from warpsmith.lab.sandbox import seccomp, walls
from warpsmith.lab.workers import worker

OPENED = Path("/opened")
_NEW_NETWORK = 0x40000000
_enter, _described = walls.enter_sandbox, worker.describe_output


def _lacking(*_: object) -> None:
    raise OSError("switched off by a test")


def _without(*calls: int) -> Callable[[], None]:
    """Leaves rules of the system call filter out, by the numbers of x86-64."""

    def switch() -> None:
        seccomp._RULES = tuple(rule for rule in seccomp._RULES if rule.x86_64 not in calls)

    return switch


def _files() -> None:
    landlock._FILE_BITS = {}


def _mounts() -> None:
    walls._mount = _lacking


def _network() -> None:
    walls._NEW_NAMESPACES &= ~_NEW_NETWORK
    landlock._TCP_BITS = {}


def _signals() -> None:
    landlock._SCOPE_BITS = {}


def _capabilities() -> None:
    walls._drop_capabilities = _lacking


def _memory() -> None:
    landlock.restrict_process = _lacking
    walls._unshare = _lacking  # no mount is tried then
    _capabilities()


def _sizes() -> None:
    gate_rules.LARGEST_FILE_BYTES = 1 << 60


def _types() -> None:
    def described(output: Any) -> dict[str, Any]:
        if not isinstance(output, torch.Tensor):
            return _described(output)
        with torch._C.DisableTorchFunctionSubclass():
            return _described(output.detach().as_subclass(torch.Tensor))

    worker.describe_output = described


WALLS: dict[str, Callable[[], None]] = {
    "files": _files,
    "mounts": _mounts,
    "network namespace": _network,
    "network calls": _without(41, 42),
    "signals": _signals,
    "capabilities": _capabilities,
    "memory of others": _memory,
    "file sizes": _sizes,
    "limits of others": _without(302),
    "cores of others": _without(203),
    "process group": _without(109, 112),
    "plain types": _types,
}


def enter(scratch: Path, hidden: Sequence[Path] = ()) -> tuple[Check, ...]:
    """Like `sandbox.enter`, without what is named."""
    for path in hidden:
        if path.parent == OPENED:
            WALLS[path.name]()
    return _enter(scratch, [path for path in hidden if path.parent != OPENED])


walls.enter_sandbox = enter
