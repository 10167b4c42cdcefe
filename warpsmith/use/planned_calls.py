"""Calls of a version by launch plans: made at the second call of a signature, used where they are safe."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from warpsmith.languages.base import LibraryEntry
from warpsmith.use import launch_plan
from warpsmith.use.launch_plan import NativePlan, PlanRefused
from warpsmith.use.native_launch import Extension

if TYPE_CHECKING:
    import threading

    import torch

_LOG = logging.getLogger(__name__)
_MOST_TRIES = 3
"""Recordings of a signature before it has no plan for good: PyTorch's allocator may disturb one."""
_MOST_SIGNATURES = 1024
_MASKS = {"cpu": 63, "cuda": 511}
"""Bits of an address that are zero in all memory that PyTorch allocates: a version may look at them."""
_DEVICE_TYPES = {"cpu": 0, "cuda": 1}
"""PyTorch's numbers of the types of device."""


class PlannedVersion(NamedTuple):
    """Facts of a loaded version that plans depend on."""

    solution: str
    """Operator and version, for the log: `softmax triton/v8`."""
    device: str
    """Type of the device: `cpu` or `cuda`."""
    call: Callable[[Sequence[Any]], list[torch.Tensor]]
    """Run the version on arguments as it takes them, and return its outputs."""
    namespace: dict[str, Any]
    """Global names of the version's file; empty for a library."""
    single: bool
    """True if it has one output, which is returned alone."""
    entry: LibraryEntry | None
    """Entry of a library's `run`; None for a version in Python."""


class PlannedCalls:
    """Plans of one version's calls in this process."""

    def __init__(self, version: PlannedVersion, lock: threading.Lock, extension: Extension) -> None:
        """Make no plan yet; `lock` is held by whoever runs the version."""
        self._version, self._lock, self._extension = version, lock, extension
        self._tries: dict[bytes, int] = {}
        self._caller: Any = None
        self.replay: Callable[[tuple[Any, ...], bool], Any] = _no_plan
        """Return the results of a call by its plan; None if it has none. The bool is True where autograd and all
        modes of PyTorch have had their turn."""
        self.refusals: dict[bytes, str] = {}
        """Why a signature has no plan, by its key."""
        self._keys: set[bytes] = set()
        self.calls = 0
        """Calls by way of PyTorch's dispatcher: from compiled graphs, from autograd, and those without a plan."""

    @property
    def count(self) -> int:
        """Number of plans."""
        return len(self._keys)

    @property
    def may_plan(self) -> bool:
        """False where there is no extension and none will come: no compiler, or turned off."""
        return self._caller is not None or self._extension.usable

    def call_version(self, values: Sequence[Any]) -> list[torch.Tensor]:
        """Run the version as it is, without a plan; it keeps a workspace, so one call at a time."""
        with self._lock:
            return self._version.call(values)

    def run(self, values: Sequence[Any]) -> list[torch.Tensor]:
        """Run the version and return its outputs. Make a plan if it is time to; the lock is held."""
        caller = self._caller or self._connect()
        key = caller.key(tuple(values), True) if caller is not None else None
        if (
            key is None
            or key in self.refusals
            or len(self._tries) > _MOST_SIGNATURES
            or _is_capturing(self._version)
        ):
            return self._version.call(values)
        if key in self._keys:  # copies of inputs may have a plan where the inputs have none
            return self._version.call(values) if self._version.entry else self._replay_locked(values)
        self._tries[key] = tries = self._tries.get(key, -1) + 1
        if self._version.entry is not None:
            outputs = self._version.call(values)
            self._add(key, self._library_plan(values, outputs))
            return outputs
        if tries == 0:  # the first call compiles kernels and makes what the version caches
            return self._version.call(values)
        return self._record(key, tuple(values), tries)

    def _replay_locked(self, values: Sequence[Any]) -> list[torch.Tensor]:
        results = self._caller.call(tuple(values), True)
        return [results] if self._version.single else list(results)

    def _connect(self) -> Any:  # noqa: ANN401 - the extension's Caller
        module = self._extension.module()
        if module is None:
            return None
        import torch

        version = self._version
        stream_of = _current_stream if version.device == "cuda" else int
        self._caller = module.Caller(
            torch.Tensor, torch.nn.Parameter, _DEVICE_TYPES[version.device], _MASKS[version.device], stream_of,
            self._lock.acquire, self._lock.release,
        )  # fmt: skip
        self.replay = self._caller.call
        return self._caller

    def _record(self, key: bytes, values: tuple[Any, ...], tries: int) -> list[torch.Tensor]:
        """Call twice, on the values and on copies; add the plan if it proves right. Return the first outputs."""
        import torch

        module, call = self._extension.module(), self._version.call
        outputs: list[torch.Tensor] | None = None
        try:
            check_caches(self._version.namespace)
            stream = _stream_of(values, self._version.device)
            copies = tuple(value.clone() if isinstance(value, torch.Tensor) else value for value in values)
            if self._caller.key(copies, True) != key:
                raise PlanRefused("an input overlaps itself")
            first = launch_plan.record_call(module, lambda: call(values), values, stream)
            outputs = first.outputs
            second = launch_plan.record_call(module, lambda: call(copies), copies, stream)
            if not launch_plan.same_bytes(outputs, second.outputs):
                raise PlanRefused("its results differ from call to call")
            self._add(key, launch_plan.derive_plan(first, second, module, single=self._version.single))
            results = self._caller.replay(key, values, launch_plan.fill)
            if not launch_plan.same_bytes(outputs, [results] if self._version.single else results):
                self._remove(key)
                raise PlanRefused("the plan's results are not the version's")
        except (PlanRefused, torch.OutOfMemoryError) as refused:
            _LOG.info("%s is called without a plan: %s", self._version.solution, refused)
            if tries >= _MOST_TRIES:
                self.refusals[key] = str(refused)
        return call(values) if outputs is None else outputs

    def _library_plan(self, values: Sequence[Any], outputs: Sequence[torch.Tensor]) -> NativePlan:
        assert self._version.entry is not None
        address, codes = self._version.entry
        describe = self._extension.module().describe
        kinds = [describe(output)[2] for output in outputs]
        layouts = [(tuple(output.shape), output.stride()) for output in outputs]
        return NativePlan(
            allocations=[(*layout, kind) for layout, kind in zip(layouts, kinds, strict=True)],
            outputs=[(i, True, *layout, 0, kinds[i]) for i, layout in enumerate(layouts)],
            launches=[],
            entry=(address, codes([*values, *outputs])),
            single=self._version.single,
        )

    def _add(self, key: bytes, plan: NativePlan) -> None:
        try:
            self._caller.add(key, *plan)
            self._keys.add(key)
        except ValueError as error:
            self.refusals[key] = str(error)

    def _remove(self, key: bytes) -> None:
        self._caller.remove(key)
        self._keys.discard(key)


def check_caches(namespace: dict[str, Any]) -> None:
    """Check that no cache of a version forgets, since a plan holds the handles of its kernels.

    Raises:
        PlanRefused: one forgets.
    """
    for name, value in namespace.items():
        parameters = getattr(value, "cache_parameters", None)
        if callable(parameters) and parameters().get("maxsize") is not None:
            raise PlanRefused(f"`{name}` forgets what it cached")


def _no_plan(_values: tuple[Any, ...], _below_autograd: bool) -> None:
    """Return None: no plan exists."""


def _current_stream(device: int) -> int:
    import torch

    return int(torch._C._cuda_getCurrentRawStream(device))


def _stream_of(values: Sequence[Any], device: str) -> int:
    import torch

    if device == "cpu":
        return 0
    return _current_stream(next(value for value in values if isinstance(value, torch.Tensor)).device.index)


def _is_capturing(version: PlannedVersion) -> bool:
    import torch

    return version.device == "cuda" and torch.cuda.is_current_stream_capturing()
