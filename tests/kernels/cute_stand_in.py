"""A stand-in for CuTe DSL on the CPU: every thread of a block runs the kernel's own Python, block after block.

CuTe DSL has no interpreter. Here each of a block's threads is one of Python's; they meet at barriers and within
reductions of a warp. Memory is torch's, an index outside a tensor is an error, writes to an output are counted,
and what is fetched asynchronously is NaN until its barrier has it. Approximate functions err by as much as the
hardware's may. It knows what the versions under test use and no more. What it cannot tell: what the compiler makes
of them, and races that one order of threads does not show.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

SECONDS = 60.0
"""What a thread waits for the others before the kernel counts as hanging."""


class Element:
    """A type of elements; called, it makes a number of it."""

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype, self.width = dtype, 8 * dtype.itemsize

    def __call__(self, value: Any) -> Any:
        return np.float32(value) if self.dtype.is_floating_point else int(value)


ELEMENTS = {
    name: Element(dtype)
    for name, dtype in {
        "Float32": torch.float32,
        "BFloat16": torch.bfloat16,
        "Float16": torch.float16,
        "Float8E4M3FN": torch.float8_e4m3fn,
        "Int32": torch.int32,
        "Int64": torch.int64,
    }.items()
}


class Vector:
    """Values that a thread holds: numpy's where they are float32, which is quicker, torch's otherwise."""

    def __init__(self, values: Any) -> None:
        self.values = values.numpy() if getattr(values, "dtype", None) is torch.float32 else values

    def to(self, element: Element) -> Vector:
        """The values in another type; e4m3 as the hardware makes it: nothing beyond 448."""
        values = torch.as_tensor(self.values)
        wide = values.clamp(-448.0, 448.0) if element.dtype is torch.float8_e4m3fn else values
        return Vector(wide.to(element.dtype))

    def reduce(self, op: str, start: np.float32, profile: int) -> np.float32:
        assert (op, profile) == ("add", 0)
        return start + self.values.sum()

    def __getitem__(self, index: int) -> np.float32:
        return self.values[index]

    def __mul__(self, other: Any) -> Vector:
        return Vector(self.values * _values(other))

    def __add__(self, other: Any) -> Vector:
        return Vector(self.values + _values(other))

    __rmul__ = __mul__


def _values(one: Any) -> Any:
    return one.values if isinstance(one, Vector) else one


class Tensor:
    """A view of memory and, of an output, how often each element was written."""

    def __init__(self, data: torch.Tensor, written: torch.Tensor | None = None) -> None:
        self.data, self.written = data, written
        self.shape = tuple(data.shape)
        self.element_type = next(one for one in ELEMENTS.values() if one.dtype is data.dtype)

    def __getitem__(self, index: Any) -> Any:
        at = self._place(index)
        view = self.data[at]
        if view.dim() == 0:
            return np.float32(view.item())
        return Tensor(view, None if self.written is None else self.written[at])

    def __setitem__(self, index: Any, value: Any) -> None:
        at = self._place(index)
        assert None not in index if isinstance(index, tuple) else index is not None
        self.data[at] = float(value)
        self._count(at)

    def _place(self, index: Any) -> tuple[Any, ...]:
        index = index if isinstance(index, tuple) else (index,)
        assert len(index) == len(self.shape), f"{index} of {self.shape}"
        for one, size in zip(index, self.shape, strict=True):
            assert one is None or 0 <= one < size, f"{index} lies outside {self.shape}"
        return tuple(slice(None) if one is None else int(one) for one in index)

    def _count(self, at: Any = ...) -> None:
        if self.written is not None:
            self.written[at] += 1

    @property
    def iterator(self) -> torch.Tensor:
        return self.data

    def load(self) -> Vector:
        return Vector(self.data.clone())

    def store(self, vector: Vector) -> None:
        values = torch.as_tensor(vector.values)
        assert values.dtype is self.data.dtype, f"{values.dtype} into {self.data.dtype}"
        assert values.shape == self.data.shape
        self.data.copy_(values)
        self._count()

    def fill(self, value: float) -> None:
        self.data.fill_(value)


class Pointer:
    """The first of some barriers in shared memory."""

    def __init__(self, barriers: list[Arrivals], at: int = 0) -> None:
        self.barriers, self.at = barriers, at

    def __add__(self, ahead: int) -> Pointer:
        return Pointer(self.barriers, self.at + ahead)

    @property
    def barrier(self) -> Arrivals:
        return self.barriers[self.at]


class Arrivals:
    """An mbarrier: a phase ends when all have arrived and all bytes that were said have come."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.count, self.arrived, self.expected, self.phase = 0, 0, 0, 0
        self.copies: list[tuple[torch.Tensor, torch.Tensor]] = []

    def expect(self, size: int) -> None:
        with self.changed:
            self.arrived, self.expected = self.arrived + 1, self.expected + int(size)
            self.changed.notify_all()

    def copy(self, source: torch.Tensor, target: torch.Tensor) -> None:
        with self.changed:
            target.fill_(float("nan"))  # on its way from here on
            self.copies.append((source, target))
            self.changed.notify_all()

    def wait(self, parity: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self._ended(int(parity)), SECONDS), "it waits for ever"

    def _ended(self, parity: int) -> bool:
        coming = sum(target.nbytes for _, target in self.copies)
        if self.phase % 2 == parity and self.arrived == self.count and coming == self.expected:
            for source, target in self.copies:
                target.copy_(source)
            self.arrived, self.expected, self.copies, self.phase = 0, 0, [], self.phase + 1
            self.changed.notify_all()
        return self.phase % 2 != parity


class Block:
    """The block that is at work: its threads' meeting places, and its shared memory."""

    def __init__(self, at: int, blocks: int, threads: int) -> None:
        self.at, self.blocks, self.threads = at, blocks, threads
        self.all = threading.Barrier(threads)
        self.warps = [threading.Barrier(32, self._reduced(warp)) for warp in range(threads // 32)]
        self.given: list[Any] = [None] * threads
        self.found: list[Any] = [None] * threads
        self.shared: dict[int, Any] = {}
        self.lock = threading.Lock()

    def _reduced(self, warp: int) -> Callable[[], None]:
        def action() -> None:
            lanes = self.given[32 * warp : 32 * warp + 32]
            op, width = lanes[0][1:]
            values = [value for value, *_ in lanes]
            while width > 1:  # as the shuffles do it: each lane with the one whose number differs in a bit
                width //= 2
                values = [op(value, values[lane ^ width]) for lane, value in enumerate(values)]
            self.found[32 * warp : 32 * warp + 32] = values

        return action

    def reduce(self, value: Any, op: Callable[[Any, Any], Any], width: int) -> Any:
        thread = HERE.thread
        self.given[thread] = (value, op, width)
        self.warps[thread // 32].wait(SECONDS)
        return self.found[thread]

    def allocate(self, number: int, make: Callable[[], Any]) -> Any:
        with self.lock:
            if number not in self.shared:
                self.shared[number] = make()
            return self.shared[number]

    def run(self, function: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        errors: list[BaseException] = []

        def one(thread: int) -> None:
            HERE.block, HERE.thread = self, thread
            try:
                with np.errstate(all="ignore"):
                    function(*arguments)
            except threading.BrokenBarrierError:
                errors.append(AssertionError(f"thread {thread} waits for others in vain"))
            except BaseException as error:
                errors.insert(0, error)
                for barrier in (self.all, *self.warps):
                    barrier.abort()

        threads = [threading.Thread(target=one, args=(thread,)) for thread in range(self.threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]


HERE = threading.local()


class _Kernel:
    def __init__(self, function: Callable[..., None]) -> None:
        self.function = function

    def __call__(self, *arguments: Any) -> Any:
        return SimpleNamespace(launch=lambda **how: self._launch(arguments, **how))

    def _launch(self, arguments: tuple[Any, ...], grid: Any, block: Any, stream: object, **_: int) -> None:
        assert grid[0] > 0, "a grid of no blocks is no launch"
        assert 0 < block[0] <= 1024
        assert block[0] % 32 == 0
        for at in range(grid[0]):
            Block(at, grid[0], block[0]).run(self.function, arguments)


def _compile(launch: Callable[..., None], *known: Any, options: str) -> Callable[..., None]:
    assert options == "--enable-tvm-ffi"
    names = list(inspect.signature(launch).parameters.values())
    fixed = [one.annotation == "Constexpr" or one.annotation is Constexpr or one.name == "stream" for one in names]

    def call(*given: Any) -> None:
        rest, arguments = list(given), []
        for value, is_fixed in zip(known, fixed, strict=True):
            arguments.append(value if is_fixed else _checked(value, rest.pop(0)))
        assert not rest
        launch(*arguments)
        Last.arguments = [one for one in arguments if isinstance(one, Tensor)]

    return call


class Last:
    """The tensors of the last call."""

    arguments: list[Tensor] = []


class Constexpr:
    """What is known when the kernel is compiled."""


class Symbol(SimpleNamespace):
    """A size that is known at the call."""

    divisibility: int


def _checked(said: Any, given: Any) -> Any:
    if not isinstance(given, torch.Tensor):
        return np.float32(given) if isinstance(given, float) else given
    assert given.dtype is said.element.dtype
    assert given.is_contiguous()
    for size, one in zip(given.shape, said.shape, strict=True):
        assert size % one.divisibility == 0 if isinstance(one, Symbol) else size == one
    return Tensor(given, torch.zeros(given.shape, dtype=torch.int32))


def _copy(source: Tensor, target: Tensor) -> None:
    """Elements side by side, at an address that the widest access of their size may have."""
    assert source.shape == target.shape
    assert source.data.dtype is target.data.dtype
    for one in (source.data, target.data):
        size = min(16, one.nbytes)
        assert one.stride() == (1,)
        assert one.storage_offset() * one.itemsize % size == 0
    target.data.copy_(source.data)
    target._count()


def _bulk(atom: Any, source: Tensor, target: Tensor, mbar_ptr: Pointer) -> None:
    for one in (source.data, target.data):
        assert one.stride() == (1,)
        assert one.storage_offset() * one.itemsize % 16 == 0
        assert one.nbytes == atom.bits // 8
        assert one.nbytes % 16 == 0
    mbar_ptr.barrier.copy(source.data, target.data)


def _divide(tensor: Tensor, tile: tuple[int]) -> Tensor:
    def cut(one: torch.Tensor) -> torch.Tensor:
        return one.unflatten(0, (-1, tile[0])).transpose(0, 1)

    return Tensor(cut(tensor.data), None if tensor.written is None else cut(tensor.written))


def _fresh(shape: Any, dtype: torch.dtype) -> Tensor:
    """Memory with its first side contiguous, of which nothing is known."""
    sides = shape if isinstance(shape, tuple) else (shape,)
    data = torch.zeros(sides[::-1], dtype=torch.float32).fill_(float("nan")).to(dtype)
    return Tensor(data.permute(*reversed(range(len(sides)))))


class Allocator:
    """Shared memory: the n-th allocation of every thread is the same one."""

    def __init__(self) -> None:
        self.made = 0

    def allocate_tensor(self, element: Element, layout: Any, byte_alignment: int = 1) -> Tensor:
        self.made += 1
        return HERE.block.allocate(self.made, lambda: _fresh(layout, element.dtype))

    def allocate_array(self, element: Element, count: int) -> Pointer:
        self.made += 1
        return HERE.block.allocate(self.made, lambda: Pointer([Arrivals() for _ in range(count)]))


def _off(exact: Any, ulps: int) -> Any:
    """A float32 as wrong as the hardware may have it, one way or the other; too small a one is zero."""
    up = exact.view(np.int32) % 3 == 0
    off = exact * (1 + np.float32((2 * up - 1) * ulps) * np.float32(2.0**-23))
    return off * np.float32(np.abs(exact) >= 2.0**-126) if np.isfinite(exact).all() else off


def _exp2(power: Vector, fastmath: bool) -> Vector:
    assert fastmath
    return Vector(_off(np.exp2(power.values), 2))


def _larger(a: Any, b: Any, nan: bool) -> Any:
    return np.maximum(a, b) if nan else np.fmax(a, b)


def _initialise(pointer: Pointer, count: int) -> None:
    pointer.barrier.count = count


def _modules() -> dict[str, ModuleType]:
    arch = SimpleNamespace(
        thread_idx=lambda: (HERE.thread, 0, 0),
        block_idx=lambda: (HERE.block.at, 0, 0),
        grid_dim=lambda: (HERE.block.blocks, 1, 1),
        lane_idx=lambda: HERE.thread % 32,
        warp_idx=lambda: HERE.block.reduce(HERE.thread // 32, max, 1),  # a shuffle: the whole warp must ask
        sync_threads=lambda: HERE.block.all.wait(SECONDS),
        sync_warp=lambda: HERE.block.reduce(0, lambda a, b: a, 32),
        warp_reduction=lambda value, op, threads_in_group=32: HERE.block.reduce(value, op, threads_in_group),
        fmax=_larger,
        rcp_approx=lambda a: _off(np.float32(1) / a, 1),
        mbarrier_init=_initialise,
        mbarrier_init_fence=lambda: None,
        mbarrier_arrive_and_expect_tx=lambda pointer, size: pointer.barrier.expect(size),
        mbarrier_wait=lambda pointer, parity: pointer.barrier.wait(parity),
    )
    cute = {
        "Tensor": Tensor,
        "ReductionOp": SimpleNamespace(ADD="add"),
        "arch": arch,
        "math": SimpleNamespace(exp2=_exp2, rsqrt=lambda a, fastmath: _off(1 / np.sqrt(a), 2)),
        "jit": lambda function: function,
        "kernel": _Kernel,
        "compile": _compile,
        "sym_int": lambda divisibility=1: Symbol(divisibility=divisibility),
        "ceil_div": lambda a, b: -(-a // b),
        "zipped_divide": _divide,
        "autovec_copy": _copy,
        "copy": _bulk,
        "make_copy_atom": lambda op, element, num_bits_per_copy: SimpleNamespace(bits=num_bits_per_copy),
        "make_layout": lambda shape: shape,
        "make_rmem_tensor": lambda shape, element: _fresh(shape, element.dtype),
        "make_tensor": lambda place, size: Tensor(place.as_strided((size,), (1,), place.storage_offset())),
    }
    fake = SimpleNamespace
    runtime = {
        "make_fake_compact_tensor": lambda element, shape, stride_order, assumed_align: fake(
            element=element, shape=shape
        ),
        "make_fake_stream": lambda use_tvm_ffi_env_stream: None,
    }
    base = {
        **ELEMENTS,
        "Constexpr": Constexpr,
        "const_expr": bool,
        "range": lambda count, unroll=0: range(count),
        "range_constexpr": range,
        "min": min,
        "memory": SimpleNamespace(SmemAllocator=Allocator),
    }
    found = {
        "cutlass": base,
        "cutlass.cute": cute,
        "cutlass.cute.runtime": runtime,
        "cutlass.cute.nvgpu": {"cpasync": SimpleNamespace(CopyBulkG2SOp=lambda: None)},
    }
    modules = {name: ModuleType(name) for name in found}
    for name, members in found.items():
        vars(modules[name]).update(members)
    modules["cutlass"].cute = modules["cutlass.cute"]  # type: ignore[attr-defined]
    return modules


@contextmanager
def stand_in(monkeypatch: pytest.MonkeyPatch, multiprocessors: int = 2) -> Any:
    """While it is entered `cutlass` is this module, on a device of few multiprocessors."""
    device = SimpleNamespace(multi_processor_count=multiprocessors)
    with monkeypatch.context() as patched:
        for name, module in _modules().items():
            patched.setitem(sys.modules, name, module)
        patched.setattr(torch.cuda, "get_device_properties", lambda *_: device)
        yield
