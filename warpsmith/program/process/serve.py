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
from warpsmith.lab.workers.channel import Channel, ChannelClosed, Message
from warpsmith.program.process.loaded_program import LoadedProgram, ProgramRefused

_PR_SET_PDEATHSIG = 1
_LONGEST = 300
_MAIN_HINT = '; what stands under `if __name__ == "__main__"` is not run here: make it a function for --setup'
_FOLDER = str(Path(__file__).parent)


def main() -> None:
    """Serve the runner on the socket whose number is the first argument, until it hangs up."""
    process.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    end = socket.socket(fileno=int(sys.argv[1]))
    end.set_inheritable(False)
    channel, mine = Channel(end), os.getpid()
    os.register_at_fork(after_in_child=channel.close)
    child: LoadedProgram | None = None
    try:
        while True:
            message, _ = channel.receive()
            if child is None:
                child = LoadedProgram(message)
            answer = _answer_request(child, message)
            if os.getpid() != mine:
                os._exit(0)
            channel.send(answer)
    except ChannelClosed:
        os._exit(0)


def _answer_request(child: LoadedProgram, message: Message) -> Message:
    at = child.next
    try:
        return {"ok": True, **_REQUESTS[message["do"]](child, message)}
    except ProgramRefused as refused:
        return {"ok": False, "kind": "refused", "message": str(refused)}
    except BaseException as error:
        traceback.print_exc()
        return {"ok": False, "at": at if at == child.next else child.next, **_describe_failure(child, error)}


def _describe_failure(child: LoadedProgram, error: BaseException) -> Message:
    """What went wrong, where in the program, and of which kind it is."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_FOLDER)
    ]
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
    hint = _MAIN_HINT if isinstance(error, NameError) and "__main__" in child.path.read_text() else ""
    return {"kind": "memory" if memory else "failed", "message": f"{last[0][:_LONGEST]}{place}{hint}"}


def _load(child: LoadedProgram, _: Message) -> Message:
    child.load()
    return {}


def _run(child: LoadedProgram, message: Message) -> Message:
    """The answer is all that is timed: values are summarised when they are asked for."""
    from warpsmith.program.process import profile_steps, values

    first, child.values = child.next, []
    for _ in range(message["count"]):
        value = child.step()
        if message["values"] or message["keep"]:
            child.values.append(values.copy_leaves(value, whole=message["keep"]))
    profile_steps.synchronize_device()
    return {"first": first}


def _ready(_child: LoadedProgram, _: Message) -> Message:
    from warpsmith.program.process import gather, profile_steps

    gather.reset_peak_memory()
    profile_steps.synchronize_device()
    return {}


def _values(child: LoadedProgram, message: Message) -> Message:
    import torch

    from warpsmith.program.process import values

    if message["saved"]:
        torch.save(child.values, message["saved"])
    Path(message["file"]).write_text(json.dumps([values.summarize_leaves(each) for each in child.values]))
    child.values = []
    return {}


def _peak(_child: LoadedProgram, _: Message) -> Message:
    from warpsmith.program.process import gather

    return {"bytes": gather.gather_memory()["memory_peak"]}


def _trace(child: LoadedProgram, message: Message) -> Message:
    from warpsmith.program.process import profile_steps

    profile_steps.write_trace(child.step, message["steps"], message["file"], child.label)
    return {}


def _task(child: LoadedProgram, message: Message) -> Message:
    task = importlib.import_module(f"warpsmith.program.tasks.{message['task']}")
    Path(message["file"]).write_text(json.dumps(task.main(child, **message["args"])))
    return {}


_REQUESTS: dict[str, Callable[[LoadedProgram, Message], Message]] = {
    "load": _load, "ready": _ready, "run": _run, "values": _values, "peak": _peak, "trace": _trace, "task": _task,
}  # fmt: skip


if __name__ == "__main__":
    main()
