"""Forks commands of Warpsmith from one process that has imported it, with faults at the calls that change files.

Each request is a line of JSON, and so is each answer: exit status, output, and the number of calls.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from typing import NamedTuple, NoReturn

KILL = -1


class Ending(NamedTuple):
    """How a command ended."""

    status: int
    """Exit code; negative: the signal."""
    output: str
    """All that it printed."""
    calls: int
    """Calls that changed files of the project; 0 if it was killed."""


class FaultHost:
    """The process that forks, with the library preloaded."""

    def __init__(self, library: Path, folders: list[Path]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(library)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "LD_PRELOAD": str(library),
                "PYTHONPATH": os.pathsep.join([*map(str, folders), *sys.path]),
            },
        )

    def run(self, root: Path, *arguments: str, n: int = 0, action: int = 0) -> Ending:
        """Run a command in a project; its n-th call is failed with the error `action`, or kills it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"root": str(root), "arguments": arguments, "n": n, "action": action}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return Ending(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        with self._process:  # it ends when its input does, and its pipes are closed
            assert self._process.stdin is not None
            self._process.stdin.close()


def perform(library: ctypes.CDLL, request: dict[str, object], output: int, count: int) -> NoReturn:
    """Be the command, in a fork."""
    from warpsmith.__main__ import main

    code = 1
    gc.disable()  # it would visit, and so copy, all that the parent imported
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(str(request["root"]))
    sys.argv = ["warpsmith", *request["arguments"]]  # type: ignore[misc]
    library.fault_arm(str(request["root"]).encode(), ctypes.c_long(request["n"]), ctypes.c_int(request["action"]))  # type: ignore[arg-type]
    try:
        main()
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException:
        traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os.pwrite(count, str(library.fault_calls()).encode(), 0)
    os._exit(code)


def serve() -> None:
    """Answer requests until there are no more."""
    import campaign_kit
    import matplotlib.backends.backend_svg  # each command that renders pages would import it
    import matplotlib.figure  # noqa: F401
    import pytest

    from warpsmith.campaign.evidence import evidence_check  # noqa: F401
    from warpsmith.campaign.rounds import lessons, resume  # noqa: F401
    from warpsmith.cli import main
    from warpsmith.reporting import pages  # noqa: F401

    main.load_app()
    library = ctypes.CDLL(sys.argv[1])
    with pytest.MonkeyPatch.context() as patch:
        campaign_kit.use_toys(patch)
        for line in sys.stdin:
            with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as count:
                if (child := os.fork()) == 0:
                    perform(library, json.loads(line), output.fileno(), count.fileno())
                status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                output.seek(0)
                count.seek(0)
                text, calls = output.read().decode(errors="replace"), int(count.read() or b"0")
            sys.stdout.write(json.dumps([status, text, calls]) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    serve()
