"""Launch plan of a call: which kernels a version launches and on what memory, recorded twice and compared.

A plan stands for the version's own `run` only where two recordings with all memory at other addresses agree, every
pointer is explained by an input or by memory that was allocated in the call, and nothing else was asked of PyTorch
or of the driver.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch

_HARMLESS = re.compile(
    r"cu(Get|Driver|Device(Get|PrimaryCtx(GetState|Retain))|Ctx(Get|Push|Pop|SetCurrent)|Stream(Get|IsCapturing)"
    r"|PointerGet|KernelGet|Func(Get|IsLoaded|Load)|LibraryGet|ModuleGet|Occupancy"
    r"|Mem(Alloc|GetInfo|GetAllocation|Create|AddressReserve|Map|SetAccess)|ThreadExchange)"
)
"""Calls of the driver that leave nothing behind for a kernel, or allocate memory for PyTorch."""
_ALLOCATIONS = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"}
_ATTRIBUTE_BYTES = {0: 0, 2: 4, 4: 12, 5: 4, 6: 4, 8: 4, 11: 12, 14: 4}
"""Launch attributes that a plan can hold, and the bytes of their values: cooperative, cluster dimension and
scheduling, programmatic stream serialization, priority, preferred cluster dimension and carveout."""
_ATTRIBUTE_SIZE, _VALUE_AT = 72, 8
_PATTERN = 0xA5
_recorder = threading.Lock()
"""One call of the process is recorded at a time."""


class PlanRefused(Exception):
    """No plan stands for this call; the message says why."""


class _Span(NamedTuple):
    source: int
    """0: an argument, 1: an allocation."""
    position: int
    address: int
    size: int


@dataclass
class Recording:
    """One call as it was recorded."""

    memory: list[_Span]
    """Inputs; then what the call allocated."""
    stream: int
    """Handle of the stream that is current in the call."""
    allocations: list[torch.Tensor] = field(default_factory=list)
    """Tensors as they were allocated, alive so that no two have one address."""
    outputs: list[torch.Tensor] = field(default_factory=list)
    events: list[tuple[Any, ...]] = field(default_factory=list)
    """Calls of the driver: `(name,)`, or a launch with its function, extents and arguments."""
    computed: str = ""
    """First operator of PyTorch that is neither an allocation nor a view; empty if there is none."""


class NativePlan(NamedTuple):
    """Arguments of the extension's `Caller.add` behind the key."""

    allocations: list[tuple[Any, ...]]
    outputs: list[tuple[Any, ...]]
    launches: list[tuple[Any, ...]]
    entry: tuple[int, list[int]] | None
    single: bool


def record_call(
    module: Any,  # noqa: ANN401
    call: Callable[[], Sequence[torch.Tensor]],
    values: Sequence[Any],
    stream: int,
) -> Recording:
    """Call once and record what it allocates and launches. New memory is filled with one pattern.

    Args:
        module: the extension.
        call: runs the version on `values` and returns its outputs.
        values: the arguments, tensors and numbers.
        stream: handle of the current stream.

    Raises:
        PlanRefused: the driver's calls cannot be heard, because a profiler listens. Errors of `call` pass.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    recording = Recording(
        [_Span(0, i, *_extent(value)) for i, value in enumerate(values) if _is_tensor(value)], stream
    )

    class Hearing(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            result = function(*args, **(kwargs or {}))
            if function._schema.name.partition("::")[2] in _ALLOCATIONS:
                recording.allocations.append(result)
                with _deaf(module):
                    fill(result)
            elif not function.is_view:
                recording.computed = recording.computed or str(function)
            return result

    with _recorder:
        if not module.start_recording():
            raise PlanRefused("a profiler listens to the driver")
        try:
            with Hearing():  # type: ignore[no-untyped-call]
                recording.outputs = list(call())
        finally:
            recording.events = module.stop_recording()
    recording.memory += [_Span(1, i, *_extent(tensor)) for i, tensor in enumerate(recording.allocations)]
    return recording


def fill(tensor: torch.Tensor) -> None:
    """Overwrite all memory of a new tensor with one pattern, so that what a call leaves unwritten is equal."""
    import torch

    torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage()).fill_(_PATTERN)


def same_bytes(some: Sequence[torch.Tensor], others: Sequence[torch.Tensor]) -> bool:
    """Return whether two lists of tensors hold the same bytes."""
    import torch

    pairs = zip(some, others, strict=True)
    return all(torch.equal(*(t.contiguous().reshape(-1).view(torch.uint8) for t in pair)) for pair in pairs)


def derive_plan(first: Recording, second: Recording, module: Any, *, single: bool) -> NativePlan:  # noqa: ANN401
    """Return the plan that both recordings follow.

    Raises:
        PlanRefused: they differ, or one of them does what a plan cannot repeat.
    """
    for recording in (first, second):
        _check_harmless(recording)
    shapes = [[_layout(tensor, module) for tensor in recording.allocations] for recording in (first, second)]
    if shapes[0] != shapes[1]:
        raise PlanRefused("it allocates other memory from call to call")
    outputs = _outputs(first, module)
    if outputs != _outputs(second, module):
        raise PlanRefused("its outputs lie elsewhere from call to call")
    pairs = list(zip(_launches(first), _launches(second), strict=False))
    if len(_launches(first)) != len(_launches(second)):
        raise PlanRefused("it launches other kernels from call to call")
    launches = [_launch(*pair, first, second, module) for pair in pairs]
    allocations = [(sizes, strides, kind) for sizes, strides, _, kind in shapes[0]]
    return NativePlan(allocations, outputs, launches, None, single)


def _is_tensor(value: object) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Return a tensor's address and the bytes from its first to its last element."""
    if tensor.numel() == 0:
        return 0, 0
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.data_ptr(), (last + 1) * tensor.element_size()


def _layout(tensor: torch.Tensor, module: Any) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:  # noqa: ANN401
    return tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset()), module.describe(tensor)[2]


@contextmanager
def _deaf(module: Any) -> Iterator[None]:  # noqa: ANN401
    module.listen(False)
    try:
        yield
    finally:
        module.listen(True)


def _check_harmless(recording: Recording) -> None:
    if recording.computed:
        raise PlanRefused(f"PyTorch computes {recording.computed}")
    for name, *launch in recording.events:
        if not launch and not _HARMLESS.match(name):
            raise PlanRefused(f"it calls the driver's {name}")
    if not _launches(recording):
        raise PlanRefused("no launch was heard")


def _launches(recording: Recording) -> list[tuple[Any, ...]]:
    return [event for event in recording.events if len(event) > 1]


def _outputs(recording: Recording, module: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """Return where each output lies: allocation, whether it is the whole of it, sizes, strides, offset, type."""
    storages = [tensor.untyped_storage()._cdata for tensor in recording.allocations]
    whole: set[int] = set()
    places = []
    for output in recording.outputs:
        storage = output.untyped_storage()._cdata
        if storage not in storages:
            raise PlanRefused("an output is no memory that the call allocated")
        index = storages.index(storage)
        sizes, strides, offset, kind = layout = _layout(output, module)
        is_whole = index not in whole and layout == _layout(recording.allocations[index], module)
        whole |= {index} if is_whole else set()
        places.append((index, is_whole, sizes, strides, offset, kind))
    return places


def _launch(
    launch: tuple[Any, ...],
    other: tuple[Any, ...],
    first: Recording,
    second: Recording,
    module: Any,  # noqa: ANN401
) -> tuple[Any, ...]:
    """Return a launch with the places of the pointers in its arguments."""
    name, problem, function, extents, shared, stream, attributes, parameters, offsets = launch
    if problem or other[1]:
        raise PlanRefused(f"{name}: {problem or other[1]}")
    if stream != first.stream or other[5] != second.stream or (name.endswith("_ptsz") and not stream):
        raise PlanRefused("it launches on a stream of its own")
    attributes = _attributes(attributes)
    if (name, function, extents, shared, attributes, offsets) != (
        *other[0:1],
        *other[2:5],
        _attributes(other[6]),
        other[8],
    ):
        raise PlanRefused("it launches other kernels from call to call")
    if len(parameters) != len(other[7]):
        raise PlanRefused("it launches other kernels from call to call")
    patches = _patches(parameters, other[7], offsets, first.memory, second.memory, module)
    return function, extents, shared, attributes, parameters, offsets, patches


def _attributes(data: bytes) -> bytes:
    """Return launch attributes without what their values leave undefined."""
    clean = bytearray(len(data))
    for at in range(0, len(data), _ATTRIBUTE_SIZE):
        kind = int.from_bytes(data[at : at + 4], "little")
        if kind not in _ATTRIBUTE_BYTES:
            raise PlanRefused(f"it launches with attribute {kind}")
        end = at + _VALUE_AT + _ATTRIBUTE_BYTES[kind]
        clean[at : at + 4] = data[at : at + 4]
        clean[at + _VALUE_AT : end] = data[at + _VALUE_AT : end]
    return bytes(clean)


def _patches(
    parameters: bytes,
    other: bytes,
    offsets: Sequence[int],
    first: list[_Span],
    second: list[_Span],
    module: Any,  # noqa: ANN401
) -> list[tuple[int, int, int, int]]:
    """Return where arguments hold pointers: byte, source, index of the source, and offset from its address."""
    patches: list[tuple[int, int, int, int]] = []
    covered: set[int] = set()
    for begin, end in zip(offsets, [*offsets[1:], len(parameters)], strict=True):
        for at in range(begin, end - 7, 4):
            words = [int.from_bytes(data[at : at + 8], "little") for data in (parameters, other)]
            places = [_places(word, memory) for word, memory in zip(words, (first, second), strict=True)]
            shared = places[0] & places[1]
            if len(shared) == 1 and (at - begin) % 8 == 0:
                patches.append((at, *shared.pop()))
                covered |= set(range(at, at + 8))
            elif (
                at not in covered
                and at + 4 not in covered
                and (any(places) or any(module.is_device_pointer(word) for word in words))
            ):
                raise PlanRefused("an argument points to memory of an earlier call")
    if any(a != b for at, (a, b) in enumerate(zip(parameters, other, strict=True)) if at not in covered):
        raise PlanRefused("an argument differs from call to call")
    return patches


def _places(word: int, memory: Sequence[_Span]) -> set[tuple[int, int, int]]:
    """Return the inputs and allocations that an address lies in, with its offset in each."""
    return {
        (span.source, span.position, word - span.address)
        for span in memory
        if span.size and span.address <= word < span.address + span.size
    }
