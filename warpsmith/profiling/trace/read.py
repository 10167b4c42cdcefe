"""A Chrome trace of torch.profiler, read: its events in nanoseconds and what it says of itself."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from warpsmith import files
from warpsmith.errors import CorruptRecord, MissingInput, Misuse
from warpsmith.profiling.trace.intervals import length, union
from warpsmith.profiling.trace.names import SCRIPT_KEY

_DEVICE = {"kernel": "kernel", "gpu_memcpy": "copy", "memcpy": "copy", "gpu_memset": "memset", "memset": "memset"}
_HOST = {
    "cpu_op": "operator", "operator": "operator", "user_annotation": "range",
    "cuda_runtime": "call", "cuda_driver": "call", "hip_runtime": "call", "runtime": "call",
}  # fmt: skip


class Event(NamedTuple):
    """One thing that took time."""

    name: str
    """Its full name."""
    kind: str
    """`kernel`, `copy`, `memset` on a device; `operator`, `call`, `range` on the CPU."""
    begin: int
    """Nanoseconds."""
    end: int
    """Nanoseconds."""
    lane: tuple[str, str]
    """Process and thread, or device and stream."""
    correlation: int | None
    """What a device's event shares with the call that caused it."""
    bytes: int | None
    """Bytes of a copy, where the trace says."""


class Events(NamedTuple):
    """A trace's events."""

    source: str
    sha256: str
    script: str
    device: str
    rank: int | None
    work: list[Event]
    """Of one device; empty where the trace has no device activity."""
    operators: list[Event]
    """PyTorch's operators on the CPU."""
    calls: list[Event]
    """Calls of the device's runtime."""
    ranges: list[Event]
    """What the script named by `record_function` or NVTX."""
    notes: tuple[str, ...]


def load(path: Path) -> Events:
    """Read a trace, plain or gzip.

    Raises:
        MissingInput: there is no such file, or it has neither kernels nor operators.
        CorruptRecord: it is cut off or not JSON.
        Misuse: it is JSON of another form.
    """
    content = _parse(path)
    events = [event for raw in content["traceEvents"] if (event := _event(raw)) is not None]
    by_kind: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        by_kind[event.kind].append(event)
    work = by_kind["kernel"] + by_kind["copy"] + by_kind["memset"]
    if not work and not by_kind["operator"]:
        raise MissingInput(f"{path} has neither kernels nor PyTorch operators: trace a part that runs PyTorch.")
    device, work, notes = _busiest(work)
    return Events(
        source=str(path),
        sha256=files.file_sha256(path),
        script=str(content.get(SCRIPT_KEY, "")),
        device=_device_name(content, device),
        rank=_rank(content),
        work=work,
        operators=by_kind["operator"],
        calls=by_kind["call"],
        ranges=by_kind["range"],
        notes=notes,
    )


def _parse(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise MissingInput(f"There is no trace {path}; give the file of one rank, *.json or *.json.gz.")
    raw = path.read_bytes()
    try:
        content = json.loads(gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise CorruptRecord(f"{path} is cut off or not a JSON trace ({error}); trace the script again.") from error
    if not isinstance(content, dict) or not isinstance(content.get("traceEvents"), list):
        raise Misuse(f"{path} is JSON but no Chrome trace of torch.profiler: it has no list traceEvents.")
    return content


def _event(raw: Any) -> Event | None:  # noqa: ANN401 - JSON
    if not isinstance(raw, dict) or raw.get("ph") != "X":
        return None
    category = str(raw.get("cat", "")).lower()
    kind = _DEVICE.get(category) or _HOST.get(category)
    begin, duration = raw.get("ts"), raw.get("dur")
    if kind is None or not isinstance(begin, int | float) or not isinstance(duration, int | float) or duration < 0:
        return None
    given = raw.get("args")
    args: Mapping[str, Any] = given if isinstance(given, dict) else {}
    at = round(begin * 1000)
    lane = (
        (str(args.get("device", raw.get("pid"))), str(args.get("stream", raw.get("tid"))))
        if category in _DEVICE
        else (str(raw.get("pid")), str(raw.get("tid")))
    )
    return Event(
        str(raw.get("name", "")), kind, at, at + round(duration * 1000), lane,
        _whole(args.get("correlation")), _whole(args.get("bytes")),
    )  # fmt: skip


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _busiest(work: list[Event]) -> tuple[str | None, list[Event], tuple[str, ...]]:
    """The device with the most work: the union over several would hide that one of them idles."""
    devices: defaultdict[str, list[Event]] = defaultdict(list)
    for event in work:
        devices[event.lane[0]].append(event)
    if not devices:
        return None, [], ()
    chosen = max(devices, key=lambda device: _busy(devices[device]))
    if len(devices) == 1:
        return chosen, work, ()
    others = ", ".join(sorted(devices.keys() - {chosen}))
    return chosen, devices[chosen], (f"Only device {chosen}, the busiest, is analysed; left out: {others}.",)


def _busy(events: Iterable[Event]) -> int:
    return length(union((event.begin, event.end) for event in events))


def _device_name(content: Mapping[str, Any], device: str | None) -> str:
    described = content.get("deviceProperties")
    known = [d for d in described if isinstance(d, dict)] if isinstance(described, list) else []
    if device is None:
        return ""
    return next((str(d.get("name", "")) for d in known if str(d.get("id")) == device), "")


def _rank(content: Mapping[str, Any]) -> int | None:
    distributed = content.get("distributedInfo")
    return _whole(distributed.get("rank")) if isinstance(distributed, dict) else None
