"""Override of PyTorch's operators by accepted kernels in a user's program, behind one switch.

`WARPSMITH_KERNELS=0` leaves every operator to PyTorch. A program never fails because a kernel is missing: it warns
once and runs PyTorch's operator.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpsmith import project as projects
from warpsmith.core.definition import Definition
from warpsmith.program.compiled import replacement
from warpsmith.program.operators import accepted_regions, extraction_file, layout, region_override
from warpsmith.program.operators.models import ArgumentSource, Extraction
from warpsmith.program.process import operator_values, override
from warpsmith.program.process.operator_values import OperatorArgument

if TYPE_CHECKING:
    import torch

SWITCH = "WARPSMITH_KERNELS"
"""The environment variable; `0` switches all kernels off."""

_libraries: dict[str, torch.library.Library] = {}
"""Libraries by operator; an override lasts as long as its library."""
_thread = threading.local()


def enabling_line(op: str) -> str:
    """Return the line at the top of a program that enables a kernel."""
    return f'from warpsmith import enable; enable("{op}")  # {SWITCH}=0 switches it off'


def enable(op: str = "") -> bool:
    """Override an operator of PyTorch, or a region of compiled graphs, by its definition's best accepted version.

    It holds for calls that the definition covers. A region is replaced in graphs that torch.compile makes from now
    on, forward and backward. The definition belongs to the project that contains the calling file. Without a name,
    all regions of the project with an accepted version are enabled, except those that a whole step did not keep.
    Returns whether an override is in place.
    """
    if op and (os.environ.get(SWITCH, "").strip() == "0" or _is_enabled(op)):
        return _is_enabled(op)
    folder = Path(str(sys._getframe(1).f_globals.get("__file__", "."))).resolve().parent
    with contextlib.chdir(folder):
        names = [op] if op else _names_of_regions()
        for name in names:
            try:
                if not _is_enabled(name):
                    _install(name)
            except Exception as error:  # a program goes on with PyTorch's own, whatever is broken
                warnings.warn(f"{name}: {str(error).rstrip('.')}; PyTorch's own operator runs.", stacklevel=2)
    return any(map(_is_enabled, names))


def disable() -> None:
    """Remove all overrides; graphs that are compiled already keep the regions that were replaced in them."""
    replacement.remove_kernels()
    while _libraries:
        _libraries.popitem()[1]._destroy()  # type: ignore[no-untyped-call]


def _is_enabled(op: str) -> bool:
    return op in _libraries or op in replacement.replaced_places()


def _names_of_regions() -> list[str]:
    """Return the regions of the project at hand that `enable()` replaces; none if they are switched off."""
    if os.environ.get(SWITCH, "").strip() == "0":
        return []
    return accepted_regions.list_accepted(projects.find_project())


def _install(op: str) -> None:
    import torch

    from warpsmith.lab.operator import definition_file
    from warpsmith.use import choice
    from warpsmith.use.operator import best_accepted

    project = choice.find_owning_project(op)
    extraction = extraction_file.read_extraction(project, op)
    device = extraction_device(extraction)
    file = definition_file.load_definition(project.definition_path(op))
    function = best_accepted(project, file, device)
    if extraction.region is not None:
        region_override.install_region(extraction, extraction.region, file.definition, function)
        return
    operator = operator_values.get_operator(extraction.operator)
    library = torch.library.Library(extraction.operator.partition("::")[0], "IMPL")  # type: ignore[no-untyped-call]
    composite = operator_values.is_composite(operator, device)
    override.override_operator(
        library, operator, _make_handler(extraction, file.definition, function, composite), device
    )
    _libraries[op] = library


def extraction_device(extraction: Extraction) -> str:
    """Return the device that the operator was recorded on: `cpu` or `cuda`."""
    return "cpu" if extraction.device == "cpu" else "cuda"


def _make_handler(
    extraction: Extraction, definition: Definition, function: Callable[..., Any], composite: bool
) -> override.OverrideHandler:
    import torch

    covered = CoveredCalls(extraction, definition)
    returns_list = operator_values.returns_tensor_list(operator_values.get_operator(extraction.operator))

    def handler(operator: Any, args: Any, kwargs: Any, run: Callable[[], Any]) -> Any:  # noqa: ANN401
        if getattr(_thread, "inside", False):
            return run()
        arguments = operator_values.bind_arguments(operator, args, kwargs)
        values = [argument.value for argument in arguments]
        if not covered(arguments) or (composite and _wants_gradient(values)):
            return run()
        _thread.inside = True
        try:
            with torch.no_grad():  # runs below autograd, which records PyTorch's operator
                results = _operator_results(extraction, function(*_definition_inputs(extraction.slots, values)))
        finally:
            _thread.inside = False
        return results if returns_list else results[0] if len(results) == 1 else tuple(results)

    return handler


def _definition_inputs(slots: Sequence[ArgumentSource], values: Sequence[Any]) -> list[Any]:
    """Turn the operator's arguments into the inputs of the definition."""
    return [
        value.permute(layout.inverse_order(slot.order)) if slot.order is not None else value
        for slot, value in zip(slots, values, strict=True)
        if slot.input is not None
    ]


def _operator_results(extraction: Extraction, outputs: Any) -> list[Any]:  # noqa: ANN401
    """Turn the outputs of the definition into the operator's results."""
    iterator = iter(outputs if isinstance(outputs, tuple | list) else (outputs,))
    return [
        None if source.output is None else _permuted(next(iterator), source.order) for source in extraction.results
    ]


def _permuted(tensor: Any, order: Sequence[int] | None) -> Any:  # noqa: ANN401
    return tensor if order is None else tensor.permute(order)


def _wants_gradient(values: Sequence[Any]) -> bool:
    import torch

    return torch.is_grad_enabled() and any(
        isinstance(value, torch.Tensor) and value.requires_grad for value in values
    )


class CoveredCalls:
    """Calls that the definition was judged at; each way of calling is checked once."""

    def __init__(self, extraction: Extraction, definition: Definition) -> None:
        self._slots, self._definition = extraction.slots, definition
        self._device = extraction_device(extraction)
        self._workloads = [workload for workload in definition.workloads if workload.timed]
        self._answers: dict[tuple[Any, ...], bool] = {}

    def __call__(self, arguments: Sequence[OperatorArgument]) -> bool:
        """Return whether the definition's workloads cover such a call."""
        key = tuple((argument.element, _call_key(argument.value)) for argument in arguments)
        try:
            return self._answers[key]
        except KeyError:
            self._answers[key] = is_covered = self._covers(arguments)
            return is_covered
        except TypeError:  # an argument is not hashable
            return False

    def _covers(self, arguments: Sequence[OperatorArgument]) -> bool:
        if [(item.argument, item.element) for item in arguments] != [
            (item.argument, item.element) for item in self._slots
        ]:
            return False  # a list is longer or shorter
        pairs = [(slot, item.value) for slot, item in zip(self._slots, arguments, strict=True)]
        return all(self._is_same_kind(slot, value) for slot, value in pairs) and self._has_workload(pairs)

    def _is_same_kind(self, slot: ArgumentSource, value: object) -> bool:
        """Return whether a value is of the kind that the definition has there, whatever its sizes."""
        import torch

        if slot.input is None:
            return not isinstance(value, torch.Tensor) and self._is_constant(slot, value)
        if slot.input in self._definition.tensor_inputs:
            return isinstance(value, torch.Tensor) and self._has_layout(slot, value)
        return isinstance(value, float)

    def _has_workload(self, pairs: Sequence[tuple[ArgumentSource, Any]]) -> bool:
        """Return whether one workload has the sizes and types of all tensors."""
        specs = self._definition.tensor_inputs
        tensors = [
            (
                specs[slot.input],
                layout.stored_shape(value.shape, slot.order),
                str(value.dtype).removeprefix("torch."),
            )
            for slot, value in pairs
            if slot.input in specs
        ]
        return any(
            all(
                list(self._definition.shape(spec, workload)) == shape
                and self._definition.dtype(spec, workload) == dtype
                for spec, shape, dtype in tensors
            )
            for workload in self._workloads
        )

    def _has_layout(self, slot: ArgumentSource, value: torch.Tensor) -> bool:
        """Return whether a plain tensor is on the device, with the memory layout that the definition has."""
        import torch

        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.device.type != self._device:
            return False
        if value.layout != torch.strided or value.is_conj() or value.is_neg():
            return False
        if self._definition.tensor_inputs[str(slot.input)].layout == "any":
            return True
        order = slot.order or tuple(range(value.dim()))
        if len(order) != value.dim():
            return False
        stored = value.permute(layout.inverse_order(order))
        return layout.is_contiguous(stored.shape, stored.stride())

    def _is_constant(self, slot: ArgumentSource, value: object) -> bool:
        if slot.trailing:
            return isinstance(value, list | tuple) and len(value) == slot.trailing
        try:
            return operator_values.argument_source(value) == slot.source
        except TypeError:
            return False


def _call_key(value: object) -> object:
    """Return a key that distinguishes ways of calling."""
    import torch

    if isinstance(value, torch.Tensor):
        return (type(value), value.device.type, value.dtype, value.shape, value.stride())
    if isinstance(value, list | tuple):
        return tuple(value)
    return (type(value), value)
