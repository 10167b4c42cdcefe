"""The process that a program runs in: `python -P -m warpsmith.program.process.serve SOCKET`.

It does what the runner says over the socket: load, run steps, trace them, call a task.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from warpsmith.lab.workers import process
from warpsmith.lab.workers.channel import Channel, Closed, Message
from warpsmith.program.process.child import Child, Refused

_PR_SET_PDEATHSIG = 1
_LONGEST = 300
_UNDER_MAIN = '; what stands under `if __name__ == "__main__"` is not run here: make it a function for --setup'
_HERE = str(Path(__file__).parent)


def main() -> None:
    """Serve the runner on the socket whose number is the first argument, until it hangs up."""
    process.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    end = socket.socket(fileno=int(sys.argv[1]))
    end.set_inheritable(False)
    channel, mine = Channel(end), os.getpid()
    os.register_at_fork(after_in_child=channel.close)
    child: Child | None = None
    try:
        while True:
            message, _ = channel.receive()
            if child is None:
                child = Child(message)
            answer = _answer(child, message)
            if os.getpid() != mine:
                os._exit(0)
            channel.send(answer)
    except Closed:
        os._exit(0)


def _answer(child: Child, message: Message) -> Message:
    at = child.next
    try:
        return {"ok": True, **_DO[message["do"]](child, message)}
    except Refused as refused:
        return {"ok": False, "kind": "refused", "message": str(refused)}
    except BaseException as error:
        traceback.print_exc()
        return {"ok": False, "at": at if at == child.next else child.next, **_words(child, error)}


def _words(child: Child, error: BaseException) -> Message:
    """What went wrong, where in the program, and of which kind it is."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_HERE)]
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(child.path.parent)]
    where = (own or frames)[-1] if own or frames else None
    file, line = (where.filename, where.lineno) if where else ("", None)
    if isinstance(error, SyntaxError):
        file, line = error.filename or file, error.lineno
    place = f" ({Path(file).name}:{line})" if file else ""
    if isinstance(error, SystemExit):
        return {"kind": "exit", "message": f"it calls sys.exit({error.code!r}){place}"}
    last = traceback.format_exception_only(error)[-1].strip().splitlines() or [type(error).__name__]
    memory = type(error).__name__ in ("OutOfMemoryError", "MemoryError") or "out of memory" in str(error)
    hint = _UNDER_MAIN if isinstance(error, NameError) and "__main__" in child.path.read_text() else ""
    return {"kind": "memory" if memory else "failed", "message": f"{last[0][:_LONGEST]}{place}{hint}"}


def _load(child: Child, _: Message) -> Message:
    child.load()
    return {}


def _run(child: Child, message: Message) -> Message:
    """The answer is all that is timed: values are summarised when they are asked for."""
    from warpsmith.program.process import profiled, values

    first, child.values = child.next, []
    for _ in range(message["count"]):
        value = child.step()
        if message["values"] or message["keep"]:
            child.values.append(values.kept(value, whole=message["keep"]))
    profiled.synchronise()
    return {"first": first}


def _ready(_child: Child, _: Message) -> Message:
    from warpsmith.program.process import gather, profiled

    gather.forget_peak()
    profiled.synchronise()
    return {}


def _values(child: Child, message: Message) -> Message:
    import torch

    from warpsmith.program.process import values

    if message["saved"]:
        torch.save(child.values, message["saved"])
    Path(message["file"]).write_text(json.dumps([values.told(each) for each in child.values]))
    child.values = []
    return {}


def _peak(_child: Child, _: Message) -> Message:
    from warpsmith.program.process import gather

    return {"bytes": gather.memory()["memory_peak"]}


def _trace(child: Child, message: Message) -> Message:
    from warpsmith.program.process import profiled

    profiled.trace(child.step, message["steps"], message["file"], child.label)
    return {}


def _task(child: Child, message: Message) -> Message:
    task = importlib.import_module(f"warpsmith.program.tasks.{message['task']}")
    Path(message["file"]).write_text(json.dumps(task.main(child, **message["args"])))
    return {}


_DO: dict[str, Callable[[Child, Message], Message]] = {
    "load": _load, "ready": _ready, "run": _run, "values": _values, "peak": _peak, "trace": _trace, "task": _task,
}  # fmt: skip


if __name__ == "__main__":
    main()
