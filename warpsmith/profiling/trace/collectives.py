"""Collectives in a trace: kind, bytes and group of an event, and the kinds of work that can hide them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from warpsmith.profiling.trace.names import kernel_family

WorkClass = Literal["kernels", "wrappers", "copies", "communication"]

GLOO_PREFIX = "gloo:"
"""Begin of the names of ranges in which a thread of Gloo runs a collective."""

_KINDS = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all", "broadcast": "broadcast", "barrier": "barrier", "reduce": "reduce",
    "gather": "gather", "scatter": "scatter", "sendrecv": "send", "send": "send", "recv": "recv",
}  # fmt: skip
"""Letters in a name to the kind; the first that occurs counts."""

_ELEMENT_BYTES = {
    "double": 8, "long": 8, "longint": 8, "float": 4, "int": 4, "half": 2, "bfloat16": 2, "short": 2,
    "shortint": 2, "byte": 1, "char": 1, "bool": 1, "signedchar": 1, "unsignedchar": 1,
}  # fmt: skip
"""Name of a dtype, as NCCL's and PyTorch's events have it, to the bytes of an element."""


class Collective(NamedTuple):
    """One collective of a rank."""

    kind: str
    """Kind: `all_reduce`."""
    bytes: int | None
    """Bytes of the larger of its input and output on a rank; None if the trace does not tell."""
    group: str
    """Ranks that take part, as the trace lists them; empty for all."""
    size: int
    """Number of those ranks; 0 if the trace does not tell."""
    integers: bool = False
    """True if it sends whole numbers of 32 bits, as the map of used parameters has them."""

    @property
    def bus_factor(self) -> float:
        """Return what its bytes are multiplied by for the bytes that a link carries, as in NCCL's tests."""
        others = (self.size - 1) / self.size if self.size else 0.0
        if self.kind == "all_reduce":
            return 2 * others
        return others if self.kind in ("all_gather", "reduce_scatter", "all_to_all") else 1.0


def read_collective(name: str, args: Mapping[str, Any], world: int) -> Collective | None:
    """Read the collective that an event runs: a kernel of NCCL or RCCL, or a range of Gloo; None for others."""
    recorded = args.get("Collective name")
    if recorded is None and not name.startswith(GLOO_PREFIX) and kernel_family(name) != "communication":
        return None
    kind = collective_kind(str(recorded or name))
    size = args.get("Group size")
    size = size if isinstance(size, int) and size > 0 else world
    group = str(args.get("Process Group Ranks") or args.get("Process Group Name") or "")
    types = args.get("Input type")
    dtype = args.get("dtype") or (types[0] if isinstance(types, list) and types else "")
    integers = str(dtype).lower() == "int"
    return Collective(kind, _message_bytes(kind, args, size), group, size, integers)


def collective_kind(name: str) -> str:
    """Return the kind of a collective from any backend's name: `all_reduce` from `ncclDevKernel_AllReduce_...`."""
    letters = re.sub(r"[^a-z]", "", name.lower())
    return next((kind for key, kind in _KINDS.items() if key in letters), "other")


def classify_work(kind: str, name: str) -> WorkClass:
    """Return the class of an event's work.

    A `wrapper` is an operator on the CPU in which something else may wait for a collective: a node of autograd, or
    a call of a collective itself. It is work, but it hides nothing.
    """
    if kind == "collective":
        return "communication"
    family = kernel_family(name)
    if kind == "kernel" and family == "communication":
        return "communication"
    if kind == "operator" and ("::" not in name or name.startswith("autograd::") or family == "communication"):
        return "wrappers"
    return "kernels"


def _message_bytes(kind: str, args: Mapping[str, Any], size: int) -> int | None:
    """Return the bytes of the larger of input and output; Gloo's ranges have the shapes of their inputs."""
    elements = [value for name in ("In msg nelems", "Out msg nelems") if isinstance(value := args.get(name), int)]
    if elements:
        element_bytes = _element_bytes(args.get("dtype"))
        return max(elements) * element_bytes if element_bytes else None
    shapes, types = args.get("Input Dims"), args.get("Input type")
    if not isinstance(shapes, list) or not isinstance(types, list):
        return None
    total = 0
    for shape, dtype in zip(shapes, types, strict=False):
        element_bytes = _element_bytes(dtype)
        counts = [1] if element_bytes and shape == [] else list(_element_counts(shape))
        if counts and not element_bytes:
            return None
        total += sum(counts) * (element_bytes or 0)
    return total * (size if kind == "all_gather" else 1) if total else None


def _element_counts(shape: object) -> Iterator[int]:
    """Yield the number of elements of each tensor in a shape or a list of shapes."""
    if not isinstance(shape, list) or not shape:
        return
    if all(isinstance(length, int) for length in shape):
        count = 1
        for length in shape:
            count *= length
        yield count
        return
    for part in shape:
        yield from _element_counts(part)


def _element_bytes(dtype: object) -> int | None:
    """Return the bytes of an element of a dtype by the name of any backend; None if it is unknown."""
    name = re.sub(r"[^a-z0-9]", "", str(dtype).lower().removeprefix("c10::"))
    return 1 if name.startswith("float8") else _ELEMENT_BYTES.get(name)
