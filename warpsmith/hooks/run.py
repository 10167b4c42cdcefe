"""`warpsmith hook NAME`: one hook, from the event on stdin to the answer on stdout."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import TextIO

from warpsmith.errors import WarpsmithError
from warpsmith.hooks.event import Answer, Event

HOOKS = ("guard", "stop", "answer")
"""Each is the module of its name, with `answer(event)`."""

OFF = "WARPSMITH_HOOKS"
"""Set to `off` in the environment, no hook objects to anything."""


def run(name: str, stdin: TextIO, stdout: TextIO) -> int:
    """Answer one event; an event that does not read, or a project that does not, is no reason to object."""
    if name not in HOOKS:
        raise SystemExit(f"warpsmith: there is no hook `{name}`; there are: {', '.join(HOOKS)}.")
    if os.environ.get(OFF) == "off":
        return 0
    try:
        data = json.load(stdin)
    except ValueError:
        return 0
    event = Event(data if isinstance(data, dict) else {})
    if not Path(event.folder).is_dir():
        return 0
    try:
        answer: Answer = importlib.import_module(f"warpsmith.hooks.{name}").answer(event)
    except (WarpsmithError, OSError):
        return 0
    if answer:
        json.dump(answer, stdout)
    return 0
