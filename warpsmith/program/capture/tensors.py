"""In the program's process: tensors among the arguments of a call, and where they are or would be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from warpsmith.program.capture.events import OperatorInput
from warpsmith.program.process import gather

if TYPE_CHECKING:
    from torch import Tensor, nn

Location = Literal["device", "host", ""]
"""Location of a tensor; on a CPU, where it would be on a machine with a GPU. Empty if unknown."""


class TorchCall(NamedTuple):
    """One call of a Python function of PyTorch."""

    name: str
    arguments: Sequence[Any]
    names_device: bool
    """True if the call, or the default device, says where its result goes."""


class TensorTracker:
    """Locations of tensors, and the step that made each.

    On a GPU a tensor's device is its location. On a CPU the location is inferred: parameters, tensors that are
    made with `device=` or moved by `.to(device)`, and results computed from those would be on the device.
    """

    def __init__(self, modules: Iterable[nn.Module], *, gpu: bool) -> None:
        self._gpu = gpu
        self._locations: dict[int, Location] = {}
        self._current: set[int] = set()
        self._previous: set[int] = set()
        for module in modules:
            for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
                self._locations[storage_key(tensor)] = "device"

    def begin_step(self) -> None:
        """Begin a step: tensors made so far become those of the previous step."""
        self._previous, self._current = self._current, set()

    def location(self, tensor: Tensor) -> Location:
        """Return where a tensor is, or on a CPU where it would be."""
        if self._gpu:
            return "device" if tensor.is_cuda else "host"
        return self._locations.get(storage_key(tensor), "")

    def is_from_step(self, tensor: Tensor) -> bool:
        """Return true if the current step made the tensor."""
        return storage_key(tensor) in self._current

    def describe(self, tensor: Tensor) -> OperatorInput:
        """Describe a tensor that an operator reads."""
        shape = tuple(tensor.shape)
        if self.is_from_step(tensor):
            return OperatorInput(shape, None, False)
        return OperatorInput(shape, _storage_address(tensor), storage_key(tensor) in self._previous)

    def set_location(self, tensor: Tensor, location: Location) -> None:
        """Note where a tensor is or would be."""
        self._locations[storage_key(tensor)] = location

    def add(self, tensor: Tensor, location: Location) -> None:
        """Note a tensor that the current step made, and its location."""
        self._current.add(storage_key(tensor))
        self.set_location(tensor, location)

    def add_outputs(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], call: TorchCall | None) -> None:
        """Note the results of an operator that share no memory with its inputs."""
        old = {storage_key(tensor) for tensor in inputs}
        for tensor in outputs:
            if storage_key(tensor) not in old:
                self.add(tensor, self._infer(inputs, call))

    def _infer(self, inputs: Sequence[Tensor], call: TorchCall | None) -> Location:
        """Infer the location of a result from the operator's inputs, or without any from the Python call."""
        sources: Sequence[Tensor] = inputs
        if not inputs:
            if call is None or call.names_device:
                return "device"
            sources = list_tensors(call.arguments)
            if not sources:
                return "host"
        locations = {self.location(tensor) for tensor in sources}
        return "device" if "device" in locations else "" if "" in locations else "host"


def uses_gpu() -> bool:
    """Return true if the program has anything on a GPU."""
    return gather.main_gpu() is not None


def list_tensors(values: object) -> list[Tensor]:
    """List the tensors in a value, also in tuples, lists and dicts."""
    import torch

    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, dict):
        return [tensor for value in values.values() for tensor in list_tensors(value)]
    if isinstance(values, tuple | list):
        return [tensor for value in values for tensor in list_tensors(value)]
    return []


def list_numbers(values: object) -> Iterator[float]:
    """Yield the Python numbers in a value, also in tuples and lists."""
    if isinstance(values, bool | int | float):
        yield float(values)
    elif isinstance(values, tuple | list):
        for value in values:
            yield from list_numbers(value)


def storage_key(tensor: Tensor) -> int:
    """Return a key of the tensor's memory, the same for all its views."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return id(tensor)


def _storage_address(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0
