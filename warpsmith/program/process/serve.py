"""The process that a program runs in: `python -P -m warpsmith.program.process.serve SOCKET`.

It serves the runner's requests over the socket: load the program, run steps, trace them, call a task.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith.lab.workers import process
from warpsmith.lab.workers.channel import Channel, ChannelClosed, Message
from warpsmith.program.process.loaded_program import LoadedProgram, ProgramRefused
from warpsmith.program.process.memory_errors import names_lack_of_memory

if TYPE_CHECKING:
    from warpsmith.program.process.profile_steps import Steps

_PR_SET_PDEATHSIG = 1
_LONGEST = 300
_MAIN_HINT = '; code under `if __name__ == "__main__"` does not run here: make it a function for --setup'
_FOLDER = str(Path(__file__).parent)


def main() -> None:
    """Serve the runner on the socket with the number in the first argument, until it hangs up."""
    process.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    end = socket.socket(fileno=int(sys.argv[1]))
    end.set_inheritable(False)
    channel, process_id = Channel(end), os.getpid()
    os.register_at_fork(after_in_child=channel.close)
    program: LoadedProgram | None = None
    try:
        while True:
            message, _ = channel.receive()
            if program is None:
                program = LoadedProgram(message)
            answer = _answer_request(program, message)
            if os.getpid() != process_id:
                os._exit(0)
            channel.send(answer)
    except ChannelClosed:
        os._exit(0)


def _answer_request(program: LoadedProgram, message: Message) -> Message:
    from warpsmith.program.process import profile_steps

    try:
        return {"ok": True, **profile_steps.run_steps(answer_steps(program, message), program.step)}
    except BaseException as error:
        return describe_request_error(program, error)


def answer_steps(program: LoadedProgram, message: Message) -> Steps[Message]:
    """Do what a request asks, and return the answer; raises what the program does."""
    answer = _REQUESTS[message["do"]](program, message)
    return (yield from answer) if isinstance(answer, Generator) else answer


def describe_request_error(program: LoadedProgram, error: BaseException) -> Message:
    """Return the answer to a request that failed, and print the traceback."""
    if isinstance(error, ProgramRefused):
        return {"ok": False, "kind": "refused", "message": str(error)}
    traceback.print_exception(error)
    return {"ok": False, "at": program.next_step, **_describe_failure(program, error)}


def _describe_failure(program: LoadedProgram, error: BaseException) -> Message:
    """Return kind and message of an error, with its line in the program."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_FOLDER)
    ]
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(program.path.parent)]
    frame = (own or frames)[-1] if own or frames else None
    file, line = (frame.filename, frame.lineno) if frame else ("", None)
    if isinstance(error, SyntaxError):
        file, line = error.filename or file, error.lineno
    location = f" ({Path(file).name}:{line})" if file else ""
    if isinstance(error, SystemExit):
        return {"kind": "exit", "message": f"it calls sys.exit({error.code!r}){location}"}
    last = traceback.format_exception_only(error)[-1].strip().splitlines() or [type(error).__name__]
    memory = names_lack_of_memory(f"{type(error).__name__}: {error}")
    hint = _MAIN_HINT if isinstance(error, NameError) and "__main__" in program.path.read_text() else ""
    return {"kind": "memory" if memory else "failed", "message": f"{last[0][:_LONGEST]}{location}{hint}"}


def _load(program: LoadedProgram, _: Message) -> Message:
    program.load()
    return {}


def _run(program: LoadedProgram, message: Message) -> Steps[Message]:
    """Run steps; their values are summarized later, because the runner times this request."""
    from warpsmith.program.process import profile_steps, values

    first, program.values = program.next_step, []
    for _ in range(message["count"]):
        value = yield
        if message["values"] or message["keep"]:
            program.values.append(values.copy_leaves(value, whole=message["keep"]))
    profile_steps.synchronize_device()
    return {"first": first}


def _ready(_program: LoadedProgram, _: Message) -> Message:
    from warpsmith.program.process import gather, profile_steps

    gather.reset_peak_memory()
    profile_steps.synchronize_device()
    return {}


def _values(program: LoadedProgram, message: Message) -> Message:
    import torch

    from warpsmith.program.process import values

    if message["saved"]:
        torch.save(program.values, message["saved"])
    Path(message["file"]).write_text(json.dumps([values.summarize_leaves(item) for item in program.values]))
    program.values = []
    return {}


def _peak(_program: LoadedProgram, _: Message) -> Message:
    from warpsmith.program.process import gather

    return {"bytes": gather.gather_memory()["memory_peak"]}


def _trace(program: LoadedProgram, message: Message) -> Steps[Message]:
    from warpsmith.program.process import profile_steps

    yield from profile_steps.write_trace(message["steps"], message["file"], program.label)
    return {}


def _task(program: LoadedProgram, message: Message) -> Steps[Message]:
    task = importlib.import_module(f"warpsmith.program.tasks.{message['task']}")
    answer = task.main(program, **message["args"])
    if isinstance(answer, Generator):
        answer = yield from answer
    Path(message["file"]).write_text(json.dumps(answer))
    return {}


_REQUESTS: dict[str, Callable[[LoadedProgram, Message], Message | Steps[Message]]] = {
    "load": _load, "ready": _ready, "run": _run, "values": _values, "peak": _peak, "trace": _trace, "task": _task,
}  # fmt: skip


if __name__ == "__main__":
    main()
