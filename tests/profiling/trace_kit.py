"""Small Chrome traces, made by hand: all times in microseconds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data" / "trace"

Raw = dict[str, Any]


def device(name: str, begin: float, end: float, stream: int = 7, *, cat: str = "kernel", **args: Any) -> Raw:
    args = {"device": 0, "stream": stream} | args
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": 0,
        "tid": stream,
        "ts": begin,
        "dur": end - begin,
        "args": args,
    }


def host(name: str, begin: float, end: float, *, cat: str = "cpu_op", **args: Any) -> Raw:
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": begin, "dur": end - begin, "args": args}


def step(begin: float, end: float, name: str = "step") -> Raw:
    return host(name, begin, end, cat="user_annotation")


def launched(name: str, called: float, begin: float, end: float, correlation: int) -> list[Raw]:
    """A kernel and the call that caused it."""
    call = host("cudaLaunchKernel", called, called + 1, cat="cuda_runtime", correlation=correlation)
    return [call, device(name, begin, end, correlation=correlation)]


def save(folder: Path, events: list[Raw], **top: Any) -> Path:
    path = folder / "trace.json"
    path.write_text(json.dumps({"traceEvents": events} | top))
    return path
