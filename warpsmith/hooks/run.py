"""`warpsmith hook NAME`: reads the event on stdin and prints the hook's answer."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import TextIO

from warpsmith.errors import WarpsmithError
from warpsmith.hooks.event import Answer, HookEvent

HOOKS = ("guard", "stop", "answer", "session")
"""Names of the hooks; each is a module with `answer(event)`."""

SWITCH = "WARPSMITH_HOOKS"
"""Environment variable that disables all hooks if it is `off`."""


def run_hook(name: str, stdin: TextIO, stdout: TextIO) -> int:
    """Answer one event. There is no objection if the event or the project cannot be read."""
    if name not in HOOKS:
        raise SystemExit(f"warpsmith: there is no hook `{name}`; there are: {', '.join(HOOKS)}.")
    if os.environ.get(SWITCH) == "off":
        return 0
    try:
        data = json.load(stdin)
    except ValueError:
        return 0
    event = HookEvent(data if isinstance(data, dict) else {})
    if not Path(event.folder).is_dir():
        return 0
    try:
        answer: Answer = importlib.import_module(f"warpsmith.hooks.{name}").answer(event)
    except (WarpsmithError, OSError):
        return 0
    if answer:
        json.dump(answer, stdout)
    return 0
