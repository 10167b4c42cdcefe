"""In the program's process: watch steps operator by operator, for operations that a CUDA graph cannot hold."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from warpsmith.program.capture.events import (
    CAPTURABLE,
    COUNTS_ON_HOST,
    OperatorEvent,
    UserLine,
    is_user_file,
)
from warpsmith.program.capture.models import Certainty
from warpsmith.program.capture.rules import Observation
from warpsmith.program.capture.tensors import TensorTracker, TorchCall, list_numbers, list_tensors, uses_gpu
from warpsmith.program.process.profiler_recording import replace_closure

if TYPE_CHECKING:
    from types import FrameType

    from torch import Tensor, nn
    from torch.optim import Optimizer

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
    "__repr__": ("print", "a tensor is printed"),
    "__format__": ("print", "a tensor in a text"),
    "tolist": ("to-host", "`.tolist()`"),
}
"""Python functions that read a tensor's values, with the kind of blocker and its description."""

_TO_HOST = {"cpu", "numpy", "tolist", "__array__"}
_MAKERS = {"tensor", "as_tensor", "asarray", "new_tensor"}
"""Functions that make a tensor of Python numbers."""

_CARRIERS = {"lift_fresh", "detach", "alias", "_to_copy", "copy_", "_pin_memory", "clone", "resize_", "set_"}
"""Operators on the CPU that compute nothing."""


class StepWatcher:
    """Watcher of steps; `watch_steps` of `hooks` connects it to PyTorch."""

    def __init__(self, folders: Sequence[str], modules: Mapping[str, nn.Module]) -> None:
        """Watch lines of files below `folders`, and the program's `modules` by path."""
        from torch.utils import _device

        self.gpu = uses_gpu()
        self.tensors = TensorTracker(modules.values(), gpu=self.gpu)
        self.events: list[list[OperatorEvent]] = []
        """Operators of each step."""
        self.observations: dict[tuple[str, int, str], Observation] = {}
        """Blockers that one step alone shows, by file, line and kind."""
        self._device_mode = _device
        self._folders = folders
        self._user_files: dict[str, bool] = {}
        self._module_inputs: list[dict[str, list[tuple[tuple[int, ...], ...]]]] = []
        self._paths = {id(module): path for path, module in modules.items()}
        self._calls: list[TorchCall] = []
        self._modules: list[str] = []
        self._optimizer: tuple[str, bool] | None = None
        self._waits: set[UserLine] = set()
        self._loading = False
        self._main_thread = threading.main_thread().ident

    def begin_step(self) -> None:
        """Begin a step; its operators are the last list of `events`."""
        self.events.append([])
        self._module_inputs.append({})
        self.tensors.begin_step()

    def report(
        self, kind: str, description: str, certainty: Certainty = "certain", at: UserLine | None = None
    ) -> None:
        """Keep an observation at line `at`, by default at the innermost line of the user's."""
        line = at or self.user_line()
        if line is None or self._loading:
            return
        if self._optimizer is not None:
            name, capturable = self._optimizer
            if name in CAPTURABLE and not capturable:
                kind, description = "optimizer", f"`{name}` without capturable=True"
                certainty = "certain" if self.gpu else "look"
            elif name in COUNTS_ON_HOST:
                kind, description, certainty = "optimizer-host", f"`{name}`", COUNTS_ON_HOST[name]
        key = (line.file, line.line, kind)
        old = self.observations.get(key)
        if old is None or (old.certainty != "certain" and certainty == "certain"):
            self.observations[key] = Observation(
                kind, description, line.file, line.line, certainty, line.function, self._module
            )

    def list_observations(self, differences: Sequence[Observation]) -> list[Observation]:
        """List all observations, with the differences between steps and the waits that nothing else explains.

        On a CPU an optimizer without capturable=True is only worth a look: a program may set it on a GPU alone.
        """
        explained = {key[:2] for key in self.observations}
        for line in self._waits:
            if line[:2] not in explained:
                self.report("synchronize", "waits for the device", at=line)
        for difference in differences:
            mild = difference.kind == "optimizer" and not self.gpu
            observation = replace(difference, certainty="look") if mild else difference
            if observation.file:
                key = (observation.file, observation.line, observation.kind)
                self.observations.setdefault(key, observation)
        return list(self.observations.values())

    @property
    def varying_modules(self) -> set[str]:
        """Return the modules whose number of calls or shapes of inputs differ between steps."""
        paths = {path for step in self._module_inputs for path in step}
        first = self._module_inputs[0] if self._module_inputs else {}
        return {path for path in paths if any(step.get(path) != first.get(path) for step in self._module_inputs)}

    @property
    def files(self) -> list[str]:
        """Return the user's files from which a watched step called an operator, in that order."""
        lines = (event.line for step in self.events for event in step)
        return list(dict.fromkeys(line.file for line in lines if line))

    def user_line(self) -> UserLine | None:
        """Return the innermost running line of the user's; in a thread of autograd, that of the main thread."""
        line = self._innermost_line(sys._getframe(1))
        if line is None and threading.get_ident() != self._main_thread and self._main_thread is not None:
            line = self._innermost_line(sys._current_frames().get(self._main_thread))
        return line

    def call_function(
        self,
        name: str,
        arguments: Sequence[Any],
        options: dict[str, Any],
        run: Callable[[], Any],
    ) -> Any:  # noqa: ANN401 - PyTorch's
        """Run a Python function of PyTorch, and report copies and reads that its operators do not show."""
        import torch

        if self._loading:
            return run()
        tensors = list_tensors(arguments)
        if tensors and self.tensors.location(tensors[0]) != "host":
            certainty: Certainty = "certain" if self.tensors.location(tensors[0]) == "device" else "likely"
            if name == "__repr__":  # PyTorch hides its operators from modes
                self.report(*_READS[name], certainty)
            elif name in _TO_HOST and not self.gpu:
                self.report("to-host", f"`.{name}()`", certainty)
        moves = name in ("to", "cuda") and (
            name == "cuda" or any(map(_is_device, (*arguments[1:], *options.values())))
        )
        if moves and not self.gpu and tensors:
            self._report_move(tensors[0])
        names_device = options.get("device") is not None or self._device_mode.CURRENT_DEVICE is not None
        self._calls.append(TorchCall(name, arguments, names_device))
        try:
            result = run()
        finally:
            self._calls.pop()
        if moves and not self.gpu and isinstance(result, torch.Tensor):
            self.tensors.set_location(result, "device")
        return result

    def record_operator(
        self,
        operator: Any,  # noqa: ANN401 - OpOverload
        arguments: Sequence[Any],
        options: dict[str, Any],
        result: object,
    ) -> None:
        """Record an operator that ran, and report what it does to a graph."""
        if self._loading:
            return
        name, line = operator._overloadpacket.__name__, self.user_line()
        inputs, outputs = list_tensors((*arguments, *options.values())), list_tensors(result)
        if name == "lift_fresh":
            self._add_lifted(inputs)
        described = tuple(map(self.tensors.describe, inputs))
        self.tensors.add_outputs(inputs, outputs, self._calls[-1] if self._calls else None)
        self._judge(operator, name, arguments, options, inputs, outputs)
        if self.events and operator.namespace != "profiler":
            self.events[-1].append(
                OperatorEvent(
                    f"{operator.namespace}.{name}",
                    line,
                    described,
                    tuple(tuple(tensor.shape) for tensor in outputs),
                    tuple(list_numbers((*arguments, *options.values()))),
                    self._module,
                    self._optimizer[0] if self._optimizer and not self._optimizer[1] else "",
                )
            )

    def enter_module(self, module: nn.Module, arguments: object) -> None:
        """Note that a module's forward begins."""
        path = self._paths.get(id(module), self._module)
        self._modules.append(path)
        calls = self._module_inputs[-1].setdefault(path, [])
        calls.append(tuple(tuple(tensor.shape) for tensor in list_tensors(arguments)))

    def leave_module(self, *_: object) -> None:
        """Note that the innermost forward ends."""
        if self._modules:
            self._modules.pop()

    def begin_update(
        self, optimizer: Optimizer, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Note that an optimizer's step begins; what its closure runs is the program's and not the optimizer's."""
        capturable = all(group.get("capturable") for group in optimizer.param_groups)
        self._optimizer = (type(optimizer).__name__, capturable)
        if type(optimizer).__name__ in CAPTURABLE and not capturable:
            self.report("optimizer", "")
        return replace_closure(arguments, options, self._watch_closure)

    def end_update(self, *_: object) -> None:
        """Note that the optimizer's step ends."""
        self._optimizer = None

    def _watch_closure(self, closure: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - the program's
            update, self._optimizer = self._optimizer, None
            try:
                return closure(*arguments, **options)
            finally:
                self._optimizer = update

        return watched

    def fetch_batch(self, fetch: Callable[[], object]) -> object:
        """Fetch a batch from a DataLoader: its work is not the step's, and its tensors are on the CPU."""
        self.report("loader", "a DataLoader's next batch")
        self._loading = True
        try:
            batch = fetch()
        finally:
            self._loading = False
        for tensor in list_tensors(batch):
            self.tensors.add(tensor, "host")
        return batch

    def record_wait(self) -> None:
        """Record that the host waits for the device.

        PyTorch hides its copies of Python numbers from modes: they show only as a wait.
        """
        call, line = self._calls[-1] if self._calls else None, self.user_line()
        if call and call.name in ("__getitem__", "__setitem__") and _has_list(call.arguments[1]):
            self.report("to-device", "an index made on the CPU")
        elif call and call.name in _MAKERS and not list_tensors(_maker_data(call)):
            self.report("to-device", f"`{call.name}(…)` of Python numbers")
        elif line:
            self._waits.add(line)

    @property
    def _module(self) -> str:
        return self._modules[-1] if self._modules else ""

    def _report_move(self, tensor: Tensor) -> None:
        """Report a `.to(device)` on a CPU, which on a GPU would copy."""
        location = self.tensors.location(tensor)
        if location == "host":
            self.report("to-device", "made on the CPU, then moved", "likely")
        elif not location and not self.tensors.is_from_step(tensor):
            self.report("to-device", "moved in the step, if it is on the CPU", "look")

    def _judge(
        self,
        operator: Any,  # noqa: ANN401 - OpOverload
        name: str,
        arguments: Sequence[Any],
        options: dict[str, Any],
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
    ) -> None:
        import torch

        locations = [self.tensors.location(tensor) for tensor in inputs]
        certainty: Certainty = "certain" if "device" in locations else "likely"
        if torch.Tag.data_dependent_output in operator.tags and set(locations) != {"host"}:
            self.report(*self._classify_read(name), certainty)
        elif _has_data_shape(operator, name, arguments, options) and set(locations) != {"host"}:
            self.report("data-shape", f"`{_spell(name)}`", certainty)
        elif name == "_linalg_check_errors":
            self.report("error-check", f"`{self._calls[-1].name if self._calls else name}(…)` checks for errors")
        elif operator.namespace in ("c10d", "_c10d_functional"):
            gloo = torch.distributed.get_backend() == "gloo"
            self.report("collective", f"`{name}`", "certain" if gloo else "look")
        if torch.Tag.nondeterministic_seeded in operator.tags:
            self._judge_generator(options.get("generator"))
        if self.gpu:
            self._judge_copy(name, arguments, options, inputs, outputs)
        if "device" in locations and name != "copy_":
            for tensor, location in zip(inputs, locations, strict=True):
                if location == "host" and tensor.dim() > 0:
                    self.report(
                        "to-device",
                        "made on the CPU, used with tensors on the device",
                        "certain" if self.gpu else "likely",
                    )

    def _judge_copy(
        self,
        name: str,
        arguments: Sequence[Any],
        options: dict[str, Any],
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
    ) -> None:
        """Report copies between host and device, and computation on the CPU, in a program on a GPU."""
        devices = {tensor.device.type for tensor in inputs}
        if name in ("_to_copy", "copy_") and inputs and outputs:
            source = inputs[-1] if name == "copy_" else inputs[0]
            direction = (source.device.type, outputs[0].device.type)
            if direction == ("cpu", "cuda"):
                if source.is_pinned() and (
                    options.get("non_blocking") or any(value is True for value in arguments)
                ):
                    self.report("pinned-copy", "a copy from pinned memory", "likely")
                else:
                    self.report("to-device", "a copy from the host's memory")
            elif direction == ("cuda", "cpu"):
                self.report("to-host", f"`.{self._calls[-1].name}()`" if self._calls else "a copy to the host")
        elif devices == {"cpu"} and name not in _CARRIERS and any(tensor.dim() for tensor in inputs):
            self.report("host-compute", f"`{_spell(name)}` on the CPU", "likely")

    def _judge_generator(self, generator: Any) -> None:  # noqa: ANN401 - torch.Generator
        import torch

        if generator is None or (self.gpu and generator.device.type == "cpu"):
            return  # numbers that a CPU draws for a GPU are reported where they are copied
        defaults = [torch.default_generator, *(torch.cuda.default_generators if self.gpu else ())]
        if all(generator is not default for default in defaults):
            self.report("generator", "draws from its own generator", "likely")

    def _classify_read(self, name: str) -> tuple[str, str]:
        """Return kind and description of a read of values, by the Python function that caused it."""
        for call in reversed(self._calls):
            if call.name in ("__repr__", "__format__", "tolist", "__contains__"):
                return _READS[call.name]
        last = self._calls[-1].name if self._calls else name
        return _READS.get(last, ("host-read", f"`{_spell(last)}`"))

    def _add_lifted(self, inputs: Sequence[Tensor]) -> None:
        """Note tensors of Python numbers: they are on the CPU unless the call names a device."""
        on_device = bool(self._calls) and self._calls[-1].names_device
        for tensor in inputs:
            self.tensors.add(tensor, "device" if on_device else "host")

    def _innermost_line(self, frame: FrameType | None) -> UserLine | None:
        while frame is not None:
            if self._is_user_file(frame.f_code.co_filename):
                return UserLine(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)
            frame = frame.f_back
        return None

    def _is_user_file(self, file: str) -> bool:
        if file not in self._user_files:
            self._user_files[file] = is_user_file(file, self._folders)
        return self._user_files[file]


def _has_data_shape(operator: Any, name: str, arguments: Sequence[Any], options: dict[str, Any]) -> bool:  # noqa: ANN401
    """Return true if the size of an operator's result depends on values."""
    import torch

    masks = [tensor for tensor in list_tensors(arguments[1:2]) if tensor.dtype in (torch.bool, torch.uint8)]
    if name == "index":
        return bool(masks)
    if name in ("index_put", "index_put_", "_index_put_impl_"):
        return bool(masks) and not (arguments[2].numel() == 1 and arguments[2].device.type == "cpu")
    if name == "repeat_interleave":
        return options.get("output_size") is None
    return torch.Tag.dynamic_output_shape in operator.tags


def _has_list(index: object) -> bool:
    """Return true if an index, or its part for one dimension, is a list, range or array of Python numbers."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(hasattr(part, "__len__") and not list_tensors(part) for part in parts)


def _maker_data(call: TorchCall) -> Sequence[Any]:
    """Return the data argument of a call of one of `_MAKERS`."""
    return call.arguments[1:2] if call.name == "new_tensor" else call.arguments[:1]


def _is_device(value: object) -> bool:
    import torch

    return isinstance(value, torch.device | str)


def _spell(name: str) -> str:
    """Return an operator as a user would write it."""
    spellings = {"index": "x[mask]", "index_put_": "x[mask] = y", "_unique2": "unique(…)"}
    return spellings.get(name, f"{name.strip('_')}(…)")
