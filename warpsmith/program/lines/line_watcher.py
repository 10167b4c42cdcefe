"""In the program's process: count operators, waits and copies by the line that called them, in watched steps."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from warpsmith.program.capture.events import UserLine
from warpsmith.program.capture.models import Certainty
from warpsmith.program.capture.tensors import list_tensors, storage_key
from warpsmith.program.capture.watcher import StepWatcher
from warpsmith.program.lines.frames import CallSite, FrameReader, SourceLoop
from warpsmith.program.process import gather

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

WAITS = ("host-read", "truth", "print", "to-host", "data-shape", "synchronize", "error-check")
"""Kinds of observations of the CUDA graph check in which the host waits for the device."""

_COPIES = ("aten::clone", "aten::_to_copy", "aten::copy_")
_ACCUMULATIONS = ("add", "add_", "sub", "sub_", "maximum", "minimum", "cat", "copy_", "fill_", "zero_", "stack")
"""Operators that gather results in any order; a chain of them alone does not make a loop sequential."""


class SiteCounts:
    """Counts at one line that calls operators."""

    def __init__(self) -> None:
        self.operators: Counter[str] = Counter()
        """Calls by operator."""
        self.bytes: Counter[str] = Counter()
        """Bytes of their tensors, results included, by operator."""
        self.copies: Counter[str] = Counter()
        """Calls of copies of strided tensors by the Python function that made them."""
        self.copied = 0
        """Bytes that these copies wrote."""
        self.depths = (0, 0)
        """Shortest and longest chain of operators, from the begin of the step, that ends here."""


class LineWatcher(StepWatcher):
    """Watcher that keeps the counts of all steps, in addition to the observations for a CUDA graph."""

    def __init__(
        self, folders: Sequence[str], modules: Mapping[str, nn.Module], whole: frozenset[SourceLoop] = frozenset()
    ) -> None:
        """Watch lines of files below `folders`, and the program's `modules` by path.

        The body of a loop in `whole` is a step or more.
        """
        from torch.utils import flop_counter

        super().__init__(folders, modules)
        self.sites: dict[CallSite, SiteCounts] = {}
        """Counts by line."""
        self.waits: Counter[tuple[str, str, CallSite]] = Counter()
        """Number of waits by kind, description and line."""
        self.copied = 0
        """Bytes that all copies wrote, also those of backward passes and of contiguous tensors."""
        self.flops = 0
        """Floating-point operations of products, convolutions and attention, forward and backward."""
        self.optimizer_site: CallSite | None = None
        """The line that called an optimizer's step."""
        self._last_copy: tuple[CallSite, int] | None = None
        self._flop_formulas = flop_counter.flop_registry
        self._frames = FrameReader(list(folders), compiled=bool(gather.compile_modes), whole=whole)
        self._depths: dict[int, dict[int | None, int]] = {}

    def report(
        self, kind: str, description: str, certainty: Certainty = "certain", at: UserLine | None = None
    ) -> None:
        """Keep an observation as `StepWatcher` does, and count it if the host waits."""
        super().report(kind, description, certainty, at)
        if kind not in WAITS or self._loading or self._optimizer is not None or certainty == "look":
            return
        site = CallSite(at, "", None, None) if at else self._frames.read_site()
        if site is None:
            return
        copy = (site, len(self.events[-1]))
        if kind == "to-host" and copy == self._last_copy:
            return  # the Python function and its operator both report it
        self._last_copy = copy
        self.waits[kind, description, site] += 1

    def begin_step(self) -> None:
        """Begin a step as `StepWatcher` does; chains of operators begin anew."""
        self._depths.clear()
        super().begin_step()

    def begin_update(
        self, optimizer: Optimizer, arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """Note that an optimizer's step begins, and at which line."""
        self.optimizer_site = self._frames.read_site(update=True)
        return super().begin_update(optimizer, arguments, options)

    def record_operator(
        self,
        operator: Any,  # noqa: ANN401 - OpOverload
        arguments: Sequence[Any],
        options: dict[str, Any],
        result: object,
    ) -> None:
        """Record an operator that ran, and count it at its line."""
        super().record_operator(operator, arguments, options, result)
        if self._loading:
            return
        inputs, outputs = list_tensors((*arguments, *options.values())), list_tensors(result)
        if not outputs or _is_view(operator, inputs, outputs):
            return
        self._count_flops(operator._overloadpacket, arguments, options, result)
        name = operator._overloadpacket.__name__
        depth = self._note_depth(name, inputs, outputs)
        full_name = f"{operator.namespace}::{name}"
        written = sum(map(_count_bytes, outputs))
        if full_name in _COPIES:
            self.copied += written
        site = None if self._optimizer is not None else self._frames.read_site()
        if site is None:
            return
        counts = self.sites.setdefault(site, SiteCounts())
        counts.operators[full_name] += 1
        counts.bytes[full_name] += written + sum(map(_count_bytes, inputs))
        counts.depths = (min(counts.depths[0] or depth, depth), max(counts.depths[1], depth))
        if full_name in _COPIES and _packs_strided(full_name, inputs, outputs):
            counts.copies[self._calls[-1].name if self._calls else name] += 1
            counts.copied += written

    def _count_flops(
        self, packet: object, arguments: Sequence[Any], options: dict[str, Any], result: object
    ) -> None:
        """Add the operations of a product, a convolution or attention; what PyTorch cannot count adds none."""
        formula = self._flop_formulas.get(packet)
        if formula:
            with contextlib.suppress(TypeError, ValueError, RuntimeError, AssertionError, AttributeError):
                self.flops += formula(*arguments, **options, out_val=result)

    def _note_depth(self, name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> int:
        """Note how long the chain of operators is that ends in these results, and return it.

        The key is the memory of a tensor, then its offset in it: rows that are written one by one are no chain.
        """
        old = {storage_key(tensor) for tensor in inputs}
        depth = max((self._depth(tensor) for tensor in inputs), default=0) + (name not in _ACCUMULATIONS)
        for tensor in outputs:
            key = storage_key(tensor)
            if key in old:
                self._depths.setdefault(key, {None: 0})[_offset(tensor)] = depth
            else:
                self._depths[key] = {None: depth}
        return depth

    def _depth(self, tensor: Tensor) -> int:
        depths = self._depths.get(storage_key(tensor))
        return depths.get(_offset(tensor), depths[None]) if depths else 0


def _is_view(operator: Any, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> bool:  # noqa: ANN401
    """Return true if an operator computes nothing: its results share memory that it did not write."""
    keys = {storage_key(tensor) for tensor in inputs}
    return not operator._schema.is_mutable and all(storage_key(tensor) in keys for tensor in outputs)


def _packs_strided(name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> bool:
    """Return true if a copy changes nothing but strides: its source is not contiguous, its result is."""
    source, result = inputs[-1] if name == "aten::copy_" else inputs[0], outputs[0]
    if source.layout != result.layout or source.device != result.device or source.dtype != result.dtype:
        return False
    return not source.is_contiguous() and result.is_contiguous() and source.stride() != result.stride()


def _count_bytes(tensor: Tensor) -> int:
    return tensor.numel() * tensor.element_size()


def _offset(tensor: Tensor) -> int:
    try:
        return int(tensor.storage_offset())
    except (RuntimeError, NotImplementedError):  # a sparse tensor
        return 0
