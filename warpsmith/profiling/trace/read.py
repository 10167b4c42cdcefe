"""Reader of Chrome traces by torch.profiler: events in nanoseconds, and metadata."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from warpsmith import files
from warpsmith.errors import CorruptRecord, MissingInput, Misuse
from warpsmith.profiling.trace.collectives import GLOO_PREFIX, Collective, read_collective
from warpsmith.profiling.trace.intervals import length, union
from warpsmith.profiling.trace.names import SCRIPT_KEY

_DEVICE = {"kernel": "kernel", "gpu_memcpy": "copy", "memcpy": "copy", "gpu_memset": "memset", "memset": "memset"}
_HOST = {
    "cpu_op": "operator", "operator": "operator", "user_annotation": "range",
    "cuda_runtime": "call", "cuda_driver": "call", "hip_runtime": "call", "runtime": "call",
}  # fmt: skip


class TraceEvent(NamedTuple):
    """One event with a duration."""

    name: str
    """Full name."""
    kind: str
    """`kernel`, `copy`, `memset` on a device; `operator`, `call`, `range`, `collective` on the CPU."""
    begin: int
    """Nanoseconds."""
    end: int
    """Nanoseconds."""
    lane: tuple[str, str]
    """Process and thread, or device and stream."""
    correlation: int | None
    """Number that a device event shares with the call that caused it."""
    bytes: int | None
    """Bytes of a copy; None if the trace does not contain them."""
    collective: Collective | None = None
    """Collective that it is; None for other work."""


class TraceEvents(NamedTuple):
    """Events of a trace."""

    source: str
    sha256: str
    script: str
    device: str
    rank: int | None
    work: list[TraceEvent]
    """Work of one device; empty if the trace has no device activity."""
    operators: list[TraceEvent]
    """PyTorch operators on the CPU."""
    calls: list[TraceEvent]
    """Calls of the device's runtime library."""
    ranges: list[TraceEvent]
    """Ranges that the script marked with `record_function` or NVTX."""
    collectives: list[TraceEvent]
    """Collectives on the CPU; those on a device are part of its work."""
    notes: tuple[str, ...]
    origin: int = 0
    """Time that the events count from, in nanoseconds of the host's clock."""
    world: int = 1
    """Number of processes of the distributed run."""
    backend: str = ""
    """Name of the backend of its collectives; empty if the trace does not tell."""


def load_trace(path: Path, world: int = 1) -> TraceEvents:
    """Read a trace, plain or gzip-compressed.

    Args:
        path: the file.
        world: number of ranks, if the trace does not tell, as one that begins before they know each other.

    Raises:
        MissingInput: there is no such file, or it has neither kernels nor operators.
        CorruptRecord: it is truncated or not JSON.
        Misuse: it is JSON of another form.
    """
    content = _parse(path)
    distributed = _distributed(content)
    world = _int_or_none(distributed.get("world_size")) or world
    events = [event for raw in content["traceEvents"] if (event := _event(raw, world)) is not None]
    by_kind: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    for event in events:
        by_kind[event.kind].append(event)
    work = by_kind["kernel"] + by_kind["copy"] + by_kind["memset"]
    if not work and not by_kind["operator"]:
        raise MissingInput(f"{path} has neither kernels nor PyTorch operators: trace a part that runs PyTorch.")
    device, work, notes = _busiest(work)
    return TraceEvents(
        source=str(path),
        sha256=files.file_sha256(path),
        script=str(content.get(SCRIPT_KEY, "")),
        device=_device_name(content, device),
        rank=_int_or_none(distributed.get("rank")),
        work=work,
        operators=by_kind["operator"],
        calls=by_kind["call"],
        ranges=by_kind["range"],
        collectives=by_kind["collective"],
        notes=notes,
        origin=_int_or_none(content.get("baseTimeNanoseconds")) or 0,
        world=world,
        backend=str(distributed.get("backend") or _backend(by_kind)),
    )


def _parse(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise MissingInput(f"There is no trace {path}; give the file of one rank, *.json or *.json.gz.")
    raw = path.read_bytes()
    try:
        content = json.loads(gzip.decompress(raw) if raw.startswith(b"\x1f\x8b") else raw)
    except (ValueError, EOFError, OSError, zlib.error) as error:
        raise CorruptRecord(
            f"{path} is truncated or not a JSON trace ({error}); trace the script again."
        ) from error
    if not isinstance(content, dict) or not isinstance(content.get("traceEvents"), list):
        raise Misuse(f"{path} is JSON but not a Chrome trace by torch.profiler: it has no list traceEvents.")
    return content


def _event(raw: Any, world: int) -> TraceEvent | None:  # noqa: ANN401 - JSON
    if not isinstance(raw, dict) or raw.get("ph") != "X":
        return None
    category = str(raw.get("cat", "")).lower()
    kind = _DEVICE.get(category) or _HOST.get(category)
    begin, duration = raw.get("ts"), raw.get("dur")
    if kind is None or not isinstance(begin, int | float) or not isinstance(duration, int | float) or duration < 0:
        return None
    raw_args = raw.get("args")
    args: Mapping[str, Any] = raw_args if isinstance(raw_args, dict) else {}
    start = round(begin * 1000)
    lane = (
        (str(args.get("device", raw.get("pid"))), str(args.get("stream", raw.get("tid"))))
        if category in _DEVICE
        else (str(raw.get("pid")), str(raw.get("tid")))
    )
    name = str(raw.get("name", ""))
    if kind == "range" and name.startswith(GLOO_PREFIX):
        kind = "collective"
    return TraceEvent(
        name, kind, start, start + round(duration * 1000), lane,
        _int_or_none(args.get("correlation")), _int_or_none(args.get("bytes")),
        read_collective(name, args, world) if kind in ("kernel", "collective") else None,
    )  # fmt: skip


def _int_or_none(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _busiest(work: list[TraceEvent]) -> tuple[str | None, list[TraceEvent], tuple[str, ...]]:
    """Choose the device with the most work; the union over several devices would hide that one is idle."""
    devices: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    for event in work:
        devices[event.lane[0]].append(event)
    if not devices:
        return None, [], ()
    busiest = max(devices, key=lambda device: _busy(devices[device]))
    if len(devices) == 1:
        return busiest, work, ()
    others = ", ".join(sorted(devices.keys() - {busiest}))
    return busiest, devices[busiest], (f"Only device {busiest}, the busiest, is analysed; left out: {others}.",)


def _busy(events: Iterable[TraceEvent]) -> int:
    return length(union((event.begin, event.end) for event in events))


def _device_name(content: Mapping[str, Any], device: str | None) -> str:
    properties = content.get("deviceProperties")
    devices = [d for d in properties if isinstance(d, dict)] if isinstance(properties, list) else []
    if device is None:
        return ""
    return next((str(d.get("name", "")) for d in devices if str(d.get("id")) == device), "")


def _backend(events: Mapping[str, Sequence[TraceEvent]]) -> str:
    """Return the backend that the names of collectives tell; empty if none does."""
    if events["collective"]:
        return "gloo"
    names = {event.name[:4].lower() for event in events["kernel"] if event.collective is not None}
    return next((name for name in ("nccl", "rccl") if name in names), "")


def _distributed(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the trace says of the distributed run; empty without one."""
    distributed = content.get("distributedInfo")
    return distributed if isinstance(distributed, dict) else {}
