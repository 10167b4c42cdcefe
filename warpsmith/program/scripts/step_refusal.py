"""Refusal of a script where a step is wanted: its training would run by accident, at import or inside one step."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from warpsmith.errors import Misuse
from warpsmith.program.scripts.script_loop import ScriptLoop, find_script_loop

_VERBS = {"generate": "generates", "forward": "computes"}


def refuse_script(file: str | None, step: str | None, args: Sequence[str], verb: str = "analyze") -> None:
    """Refuse a Python file whose loop would run; the file is only read.

    Args:
        file: the file.
        step: its step; None if none is named.
        args: its arguments.
        verb: command of `warpsmith program` that the message proposes.

    Raises:
        Misuse: importing the file runs its loop, or the step contains the loop, or no step is named and there is
            a loop. The message has the command to type instead.
    """
    path = Path(file or "")
    loop = find_script_loop(path) if path.suffix == ".py" else None
    if file is None or loop is None or (loop.work == "forward" and step):
        return  # a step may call a model in a loop, and a file may warm one up
    command = shlex.join(["python", file, *args])
    remedy = f"run it as it is: warpsmith program {verb} --command {shlex.quote(command)}"
    if not loop.guarded and loop.work != "forward":
        raise Misuse(f"{file} would train when it is imported: {_describe(loop)}; {remedy}")
    if step is None:
        raise Misuse(f"{file} has a loop of its own: {_describe(loop)}; {remedy}, or give --step NAME.")
    if step in loop.functions:
        raise Misuse(f"`{step}` of {file} is no step but all of them: {_describe(loop)}; {remedy}")


def _describe(loop: ScriptLoop) -> str:
    if loop.work == "library":
        return f"line {loop.line} trains with `{loop.call}`"
    verb = _VERBS.get(loop.work, "trains")
    return f"the loop at line {loop.line} {verb} by `{loop.call}` (line {loop.call_line})"
