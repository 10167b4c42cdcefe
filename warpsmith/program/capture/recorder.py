"""In the program's process: steps watched operator by operator, for what a CUDA graph could not hold.

On a GPU a tensor's device is a fact. On a CPU it is inferred what would be on the device: parameters, what is made
with `device=` or moved by `.to(device)`, and what is computed from those.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from warpsmith.program.capture.events import CAPTURABLE, COUNTS_ON_HOST, Event, Input, Place, is_users
from warpsmith.program.capture.models import Certainty
from warpsmith.program.capture.rules import Finding

if TYPE_CHECKING:
    from types import FrameType

    from torch import Tensor, nn
    from torch.optim import Optimizer

Where = Literal["device", "host", ""]
"""Where a tensor is, or would be; empty: not known."""

_READS = {
    "item": ("host-read", "`.item()`"),
    "__float__": ("host-read", "`float(…)` of a tensor"),
    "__int__": ("host-read", "`int(…)` of a tensor"),
    "__index__": ("host-read", "a tensor as an index or bound"),
    "__getitem__": ("host-read", "a tensor as an index or bound"),
    "__setitem__": ("host-read", "a tensor as an index or bound"),
    "__bool__": ("truth", "a tensor as a condition"),
    "is_nonzero": ("truth", "`is_nonzero(…)`"),
    "__contains__": ("truth", "`in` of a tensor"),
    "__repr__": ("print", "a tensor is shown"),
    "__format__": ("print", "a tensor in a text"),
    "tolist": ("to-host", "`.tolist()`"),
}
_TO_HOST = {"cpu", "numpy", "tolist", "__array__"}
_MAKERS = {"tensor", "as_tensor", "asarray", "new_tensor"}
"""Functions that make a tensor of Python's numbers."""
_CARRIERS = {"lift_fresh", "detach", "alias", "_to_copy", "copy_", "_pin_memory", "clone", "resize_", "set_"}


class _Call(NamedTuple):
    """A call of PyTorch's Python functions."""

    name: str
    given: Sequence[Any]
    placed: bool
    """Whether it says which device."""


class Recorder:
    """Watches steps; `events` has one list a step, `findings` what one step alone tells."""

    def __init__(self, folders: Sequence[str], named: Mapping[str, nn.Module]) -> None:
        """`folders`: where the user's files are; `named`: every module of the program."""
        from torch.utils import _device

        self.gpu = uses_gpu()
        self._default = _device
        self.events: list[list[Event]] = []
        self.findings: dict[tuple[str, int, str], Finding] = {}
        self._folders = folders
        self._own_files: dict[str, bool] = {}
        self._given: list[dict[str, list[tuple[tuple[int, ...], ...]]]] = []
        self._names = {id(module): name for name, module in named.items()}
        self._where: dict[int, Where] = {}
        self._made: set[int] = set()
        self._before: set[int] = set()
        self._calls: list[_Call] = []
        self._modules: list[str] = []
        self._optimizer: tuple[str, bool] | None = None
        self._waited: set[Place] = set()
        self._loading = False
        self._main = threading.main_thread().ident
        for module in named.values():
            for tensor in (*module.parameters(recurse=False), *module.buffers(recurse=False)):
                self._where[_storage(tensor)] = "device"

    def step(self, run: Callable[[], object]) -> None:
        """Run one step; its events are the last in `events`."""
        self.events.append([])
        self._given.append({})
        self._before, self._made = self._made, set()
        run()

    def tell(self, kind: str, what: str, certainty: Certainty = "certain", place: Place | None = None) -> None:
        """Keep a finding at the innermost line of the user's, or at `place`."""
        at = place or self.place()
        if at is None or self._loading:
            return
        if self._optimizer is not None:
            name, capturable = self._optimizer
            if name in CAPTURABLE and not capturable:
                kind, what = "optimizer", f"`{name}` without capturable=True"
                certainty = "certain" if self.gpu else "look"
            elif name in COUNTS_ON_HOST:
                kind, what, certainty = "optimizer-host", f"`{name}`", COUNTS_ON_HOST[name]
        module = self._modules[-1] if self._modules else ""
        found = Finding(kind, what, at.file, at.line, certainty, at.function, module)
        key = (at.file, at.line, kind)
        old = self.findings.get(key)
        if old is None or (old.certainty != "certain" and certainty == "certain"):
            self.findings[key] = found

    def settle(self, differences: Sequence[Finding]) -> list[Finding]:
        """Everything that was found, with what the steps differ in; and waits, where nothing else tells of them.

        On a CPU an optimizer need not be the one that a GPU gets.
        """
        told = {key[:2] for key in self.findings}
        for at in self._waited:
            if at[:2] not in told:
                self.tell("synchronize", "waits for the device", place=at)
        for one in differences:
            mild = one.kind == "optimizer" and not self.gpu
            finding = replace(one, certainty="look") if mild else one
            if one.file:
                self.findings.setdefault((one.file, one.line, one.kind), finding)
        return list(self.findings.values())

    @property
    def varying(self) -> set[str]:
        """Modules that one step called otherwise than another: more often, or with tensors of other shapes."""
        names = {name for step in self._given for name in step}
        return {name for name in names if any(step.get(name) != self._given[0].get(name) for step in self._given)}

    def place(self) -> Place | None:
        """The innermost line of the user's that runs; in a thread of autograd's, the main thread's."""
        found = self._innermost(sys._getframe(1))
        if found is None and threading.get_ident() != self._main and self._main is not None:
            found = self._innermost(sys._current_frames().get(self._main))
        return found

    def called(self, name: str, given: Sequence[Any], options: dict[str, Any], run: Callable[[], Any]) -> Any:  # noqa: ANN401
        """A call of PyTorch's Python functions."""
        import torch

        if self._loading:
            return run()
        tensors = _tensors(given)
        if tensors and self._at(tensors[0]) != "host":
            sure: Certainty = "certain" if self._at(tensors[0]) == "device" else "likely"
            if name == "__repr__":  # PyTorch hides from modes what that does
                self.tell(*_READS[name], sure)
            elif name in _TO_HOST and not self.gpu:
                self.tell("to-host", f"`.{name}()`", sure)
        moves = name in ("to", "cuda") and (name == "cuda" or any(map(_is_place, (*given[1:], *options.values()))))
        if moves and not self.gpu and tensors:
            at = self._at(tensors[0])
            if at == "host":
                self.tell("to-device", "made on the CPU, then moved", "likely")
            elif not at and _storage(tensors[0]) not in self._made:
                self.tell("to-device", "moved in the step, if it is on the CPU", "look")
        placed = options.get("device") is not None or self._default.CURRENT_DEVICE is not None
        self._calls.append(_Call(name, given, placed))
        try:
            result = run()
        finally:
            self._calls.pop()
        if moves and not self.gpu and isinstance(result, torch.Tensor):
            self._where[_storage(result)] = "device"
        return result

    def ran(self, func: Any, given: Sequence[Any], options: dict[str, Any], result: object) -> None:  # noqa: ANN401
        """An operator ran."""
        if self._loading:
            return
        name, place = func._overloadpacket.__name__, self.place()
        inputs, outputs = _tensors((*given, *options.values())), _tensors(result)
        if name == "lift_fresh":
            self._lifted(inputs)
        seen = tuple(map(self._input, inputs))
        self._label(inputs, outputs)
        self._judge(func, name, given, options, inputs, outputs)
        if self.events and func.namespace != "profiler":
            self.events[-1].append(
                Event(
                    f"{func.namespace}.{name}",
                    place,
                    seen,
                    tuple(tuple(tensor.shape) for tensor in outputs),
                    tuple(_numbers((*given, *options.values()))),
                    self._modules[-1] if self._modules else "",
                    self._optimizer[0] if self._optimizer and not self._optimizer[1] else "",
                )
            )

    def enter(self, module: nn.Module, given: object) -> None:
        """A module's forward begins."""
        name = self._names.get(id(module), self._modules[-1] if self._modules else "")
        self._modules.append(name)
        calls = self._given[-1].setdefault(name, [])
        calls.append(tuple(tuple(tensor.shape) for tensor in _tensors(given)))

    def leave(self, *_: object) -> None:
        """The innermost forward ends."""
        if self._modules:
            self._modules.pop()

    def begin_update(self, optimizer: Optimizer, *_: object) -> None:
        """An optimizer's step begins."""
        capturable = all(group.get("capturable") for group in optimizer.param_groups)
        self._optimizer = (type(optimizer).__name__, capturable)
        if type(optimizer).__name__ in CAPTURABLE and not capturable:
            self.tell("optimizer", "")

    def end_update(self, *_: object) -> None:
        """It ends."""
        self._optimizer = None

    def loaded(self, fetch: Callable[[], object]) -> object:
        """A DataLoader fetches a batch: what it does is not the step's, and what it gives is on the CPU."""
        self.tell("loader", "a DataLoader's next batch")
        self._loading = True
        try:
            batch = fetch()
        finally:
            self._loading = False
        for tensor in _tensors(batch):
            self._made.add(_storage(tensor))
            self._where[_storage(tensor)] = "host"
        return batch

    def waits(self) -> None:
        """The host waits for the device, for whatever reason.

        PyTorch hides from modes that it copies Python's numbers there: that shows as a wait alone.
        """
        call, at = self._calls[-1] if self._calls else None, self.place()
        if call and call.name in ("__getitem__", "__setitem__") and _has_list(call.given[1]):
            self.tell("to-device", "an index made on the CPU")
        elif call and call.name in _MAKERS and not _tensors(_data(call)):
            self.tell("to-device", f"`{call.name}(…)` of Python's numbers")
        elif at:
            self._waited.add(at)

    def _judge(
        self,
        func: Any,  # noqa: ANN401 - an operator
        name: str,
        given: Sequence[Any],
        options: dict[str, Any],
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
    ) -> None:
        import torch

        places = [self._at(tensor) for tensor in inputs]
        if torch.Tag.data_dependent_output in func.tags and set(places) != {"host"}:
            kind, what = self._read(name)
            self.tell(kind, what, "certain" if "device" in places else "likely")
        elif _is_sized_by_data(func, name, given, options) and set(places) != {"host"}:
            self.tell("data-shape", f"`{_spoken(name)}`", "certain" if "device" in places else "likely")
        elif name == "_linalg_check_errors":
            self.tell("error-check", f"`{self._calls[-1].name if self._calls else name}(…)` checks for errors")
        elif func.namespace in ("c10d", "_c10d_functional"):
            gloo = torch.distributed.get_backend() == "gloo"
            self.tell("collective", f"`{name}`", "certain" if gloo else "look")
        if torch.Tag.nondeterministic_seeded in func.tags:
            self._drawn(options.get("generator"))
        if self.gpu:
            self._moved(name, given, options, inputs, outputs)
        if "device" in places and name != "copy_":
            for tensor, at in zip(inputs, places, strict=True):
                if at == "host" and tensor.dim() > 0:
                    sure: Certainty = "certain" if self.gpu else "likely"
                    self.tell("to-device", "made on the CPU, used with what is on the device", sure)

    def _moved(
        self,
        name: str,
        given: Sequence[Any],
        options: dict[str, Any],
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
    ) -> None:
        """On a GPU: copies between host and device, and work that the host does."""
        kinds = {tensor.device.type for tensor in inputs}
        if name in ("_to_copy", "copy_") and inputs and outputs:
            source = inputs[-1] if name == "copy_" else inputs[0]
            there, here = source.device.type, outputs[0].device.type
            if (there, here) == ("cpu", "cuda"):
                if source.is_pinned() and (options.get("non_blocking") or any(each is True for each in given)):
                    self.tell("pinned-copy", "a copy from pinned memory", "likely")
                else:
                    self.tell("to-device", "a copy from the host's memory")
            elif (there, here) == ("cuda", "cpu"):
                self.tell("to-host", f"`.{self._calls[-1].name}()`" if self._calls else "a copy to the host")
        elif kinds == {"cpu"} and name not in _CARRIERS and any(tensor.dim() for tensor in inputs):
            self.tell("host-compute", f"`{_spoken(name)}` on the CPU", "likely")

    def _read(self, name: str) -> tuple[str, str]:
        for call in reversed(self._calls):
            if call.name in ("__repr__", "__format__", "tolist", "__contains__"):
                return _READS[call.name]
        last = self._calls[-1].name if self._calls else name
        return _READS.get(last, ("host-read", f"`{_spoken(last)}`"))

    def _drawn(self, generator: Any) -> None:  # noqa: ANN401 - a generator
        import torch

        if generator is None or (self.gpu and generator.device.type == "cpu"):
            return  # what a CPU draws for a GPU is told where it is copied
        known = [torch.default_generator, *(torch.cuda.default_generators if self.gpu else ())]
        if all(generator is not one for one in known):
            self.tell("generator", "draws from a generator of its own", "likely")

    def _input(self, tensor: Tensor) -> Input:
        key = _storage(tensor)
        if key in self._made:
            return Input(tuple(tensor.shape), None, False)
        return Input(tuple(tensor.shape), _address(tensor), key in self._before)

    def _lifted(self, inputs: Sequence[Tensor]) -> None:
        """A tensor of Python's numbers: on the CPU, unless the call says where."""
        for tensor in inputs:
            self._made.add(_storage(tensor))
            placed = bool(self._calls) and self._calls[-1].placed
            self._where[_storage(tensor)] = "device" if placed else "host"

    def _label(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """Where new tensors are: on a CPU, where they would be."""
        known = {_storage(tensor) for tensor in inputs}
        for tensor in outputs:
            key = _storage(tensor)
            if key not in known:
                self._made.add(key)
                self._where[key] = self._inferred(inputs)

    def _inferred(self, inputs: Sequence[Tensor]) -> Where:
        given: Sequence[Tensor] = inputs
        if not inputs:
            call = self._calls[-1] if self._calls else None
            if call is None or call.placed:
                return "device"
            given = _tensors(call.given)
            if not given:
                return "host"
        places = {self._at(tensor) for tensor in given}
        return "device" if "device" in places else "" if "" in places else "host"

    def _at(self, tensor: Tensor) -> Where:
        if self.gpu:
            return "device" if tensor.is_cuda else "host"
        return self._where.get(_storage(tensor), "")

    def _innermost(self, frame: FrameType | None) -> Place | None:
        while frame is not None:
            if self._is_own(frame.f_code.co_filename):
                return Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)
            frame = frame.f_back
        return None

    def _is_own(self, file: str) -> bool:
        if file not in self._own_files:
            self._own_files[file] = is_users(file, self._folders)
        return self._own_files[file]


def uses_gpu() -> bool:
    """Whether the program has anything on a GPU."""
    import torch

    return torch.cuda.is_available() and torch.cuda.max_memory_allocated() > 0


def _is_sized_by_data(func: Any, name: str, given: Sequence[Any], options: dict[str, Any]) -> bool:  # noqa: ANN401
    """Whether the size of what an operator makes depends on values."""
    import torch

    masks = [tensor for tensor in _tensors(given[1:2]) if tensor.dtype in (torch.bool, torch.uint8)]
    if name == "index":
        return bool(masks)
    if name in ("index_put", "index_put_", "_index_put_impl_"):
        return bool(masks) and not (given[2].numel() == 1 and given[2].device.type == "cpu")
    if name == "repeat_interleave":
        return options.get("output_size") is None
    return torch.Tag.dynamic_output_shape in func.tags


def _has_list(index: object) -> bool:
    """Whether an index, or a part of one for several dimensions, is a list, range or array of Python's numbers."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(hasattr(part, "__len__") and not _tensors(part) for part in parts)


def _data(call: _Call) -> Sequence[Any]:
    """What a function of `_MAKERS` makes a tensor of."""
    return call.given[1:2] if call.name == "new_tensor" else call.given[:1]


def _spoken(name: str) -> str:
    words = {"index": "x[mask]", "index_put_": "x[mask] = y", "_unique2": "unique(…)"}
    return words.get(name, f"{name.strip('_')}(…)")


def _tensors(values: object) -> list[Tensor]:
    import torch

    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, dict):
        return [tensor for value in values.values() for tensor in _tensors(value)]
    if isinstance(values, tuple | list):
        return [tensor for value in values for tensor in _tensors(value)]
    return []


def _numbers(values: object) -> Iterator[float]:
    if isinstance(values, bool | int | float):
        yield float(values)
    elif isinstance(values, tuple | list):
        for value in values:
            yield from _numbers(value)


def _is_place(value: object) -> bool:
    import torch

    return isinstance(value, torch.device | str)


def _storage(tensor: Tensor) -> int:
    """What stays the same over views of a tensor."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return id(tensor)


def _address(tensor: Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0
