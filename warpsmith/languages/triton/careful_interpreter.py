"""Triton's interpreter where nothing but it tells if a version is correct: it forgives less than a device.

It refuses what the compiler computes otherwise, fills in what Triton leaves undefined, and takes blocks in another
order. Host code gets no values of tensors, which are a device's, and launches no kernel around the record.
"""

from __future__ import annotations

import ast
import functools
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from warpsmith.core import gate_rules
from warpsmith.languages.triton import block_conflicts, interpreter_fixes
from warpsmith.languages.triton.kernel_rules import TellingKernel

_TRUTH = "warpsmith_truth"
"""Name under which interpreted functions reach `_check_truth`."""

_ELSEWHERE = 1 << 62
"""Distance between the address that host code sees and the true one; nothing can be read there."""

_running = 0
"""Launches that are being interpreted; more than one where a kernel's own code launches another."""


def patch_for_ports() -> None:
    """Apply this module's rules to the interpreter; once in a worker."""
    interpreter_fixes.patch_interpreter()
    _leave_undefined()
    _mix_blocks()
    block_conflicts.patch_interpreter_accesses()
    _refuse_other_ways()


@contextmanager
def launching() -> Iterator[None]:
    """Interpret within the context; outside of it no kernel runs."""
    global _running
    _running += 1
    try:
        yield
    finally:
        _running -= 1


def interpreted_kernel(function: FunctionType, options: Mapping[str, Any]) -> Any:  # noqa: ANN401
    """Return a kernel or a function that kernels call, for the interpreter."""
    from triton.runtime.interpreter import ASTTransformer, InterpretedFunction

    class CarefulTransformer(ASTTransformer):  # type: ignore[misc]
        """Checks each value that is asked if it is true."""

        def generic_visit(self, node: ast.AST) -> ast.AST:
            super().generic_visit(node)
            if isinstance(node, ast.BoolOp):
                node.values = [_checked(value, "flag") for value in node.values]
            elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
                node.operand = _checked(node.operand, "scalar")
            elif isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
                node.test = _checked(node.test, "scalar")
            elif isinstance(node, ast.comprehension):
                node.ifs = [_checked(value, "scalar") for value in node.ifs]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in own:
                node.args = [_checked(value, "scalar") for value in node.args]
            return node

        def visit_Assign(self, node: ast.Assign) -> ast.AST:  # noqa: N802 - as the class above has it
            node.value = self.visit(node.value)
            return super().visit_Assign(node)  # type: ignore[no-any-return]

    own = {"min", "max"} - {*function.__globals__}
    function.__globals__[_TRUTH] = _check_truth
    kernel = InterpretedFunction(function, **options)
    kernel.rewriter.ast_transformer = CarefulTransformer()
    return kernel


def without_host_reads(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a version's `run` that is refused where it reads tensors on the host."""
    import torch
    from torch.overrides import TorchFunctionMode

    refused, counted = _reading_functions()

    class HostReads(TorchFunctionMode):
        """Counts the numbers that are read in one call, such as the largest length; a device waits for each."""

        read = 0

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            if not _running and func is torch.Tensor.data_ptr:
                return func(*args) + _ELSEWHERE
            if not _running:
                self.read += func in counted
                if func in refused or self.read > gate_rules.LIBRARY_ELEMENTS:
                    raise TellingKernel(
                        "run reads the values of tensors on the host: no device's time would show what is computed"
                        " there; leave it to a kernel"
                    )
            return func(*args, **(kwargs or {}))

    @functools.wraps(run)
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        with HostReads():
            return run(*args, **kwargs)

    return call


def _reading_functions() -> tuple[frozenset[Any], frozenset[Any]]:
    """Return the functions by which host code gets a tensor's memory, and those that read a single number."""
    import torch

    tensor: Any = torch.Tensor
    whole = (
        "numpy",
        "tolist",
        "__array__",
        "__dlpack__",
        "untyped_storage",
        "storage",
        "__reduce_ex__",
        "__repr__",
    )
    single = ("item", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__contains__", "is_nonzero")
    return frozenset(getattr(tensor, name) for name in whole), frozenset(getattr(tensor, name) for name in single)


def _checked(value: ast.expr, use: str) -> ast.expr:
    return ast.Call(ast.Name(_TRUTH, ast.Load()), [value, ast.Constant(use)], [])


def _check_truth(value: Any, use: str) -> Any:  # noqa: ANN401
    """Return a value that is asked if it is true; the compiler's `and` of blocks or numbers is not Python's."""
    import triton.language as tl

    if isinstance(value, tl.tensor):
        if value.type.is_block():
            raise ValueError(
                "a block is neither true nor false: use `&`, `|`, `~`, `tl.minimum` and `tl.maximum` in place of"
                " Python's words"
            )
        if use == "flag" and not value.type.is_bool():
            raise ValueError("`and` and `or` take comparisons, not numbers: write `n != 0`")
    return value


def _leave_undefined() -> None:
    """Fill what a load's mask leaves out with NaN or the largest number: without `other` Triton promises none."""
    import numpy
    from triton.runtime.interpreter import InterpreterBuilder, TensorHandle, _get_np_dtype

    load: Callable[..., Any] = InterpreterBuilder.create_masked_load

    def create_masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *options: Any, **others: Any) -> Any:  # noqa: ANN401
        if other is None:
            kind = numpy.dtype(_get_np_dtype(ptrs.get_element_ty()))
            plain = kind.kind == "b" or (kind.kind in "iu" and numpy.iinfo(kind).max)
            fill = numpy.full(ptrs.data.shape, numpy.nan if kind.kind == "f" else plain, dtype=kind)
            other = TensorHandle(fill, ptrs.get_element_ty())
        return load(self, ptrs, mask, other, *options, **others)

    InterpreterBuilder.create_masked_load = create_masked_load


def _mix_blocks() -> None:
    """Run the blocks of each launch from a random one on, upwards or downwards: their order means nothing."""
    from triton.runtime.interpreter import InterpreterBuilder

    chance = random.SystemRandom()
    set_size: Callable[..., None] = InterpreterBuilder.set_grid_dim
    set_index: Callable[..., None] = InterpreterBuilder.set_grid_idx

    def set_grid_dim(self: Any, *sizes: int) -> None:  # noqa: ANN401
        set_size(self, *sizes)
        self.block_order = [(chance.randrange(max(size, 1)), chance.choice((1, -1)), size) for size in sizes]

    def set_grid_idx(self: Any, *index: int) -> None:  # noqa: ANN401
        turned = [
            (start + way * number) % size
            for number, (start, way, size) in zip(index, self.block_order, strict=True)
        ]
        set_index(self, *turned)

    InterpreterBuilder.set_grid_dim, InterpreterBuilder.set_grid_idx = set_grid_dim, set_grid_idx


def _refuse_other_ways() -> None:
    """Refuse to interpret a kernel but by a launch, which is recorded, threads, to which nothing listens, and
    tensors in memory that host code can read."""
    import threading

    import torch
    from triton.runtime.interpreter import GridExecutor, InterpretedFunction

    for kind in (GridExecutor, InterpretedFunction):
        kind.__call__ = _within_launches(kind.__call__)
    thread: Any = threading.Thread
    thread.start = _refuse_thread
    for name in ("from_numpy", "frombuffer", "from_dlpack", "from_file", "asarray", "as_tensor"):
        setattr(torch, name, _of_numbers(getattr(torch, name)))


def _of_numbers(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of PyTorch that makes tensors of Python's numbers, not of memory that it would share."""
    import torch

    @functools.wraps(make)
    def checked(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if not _running and not (args and isinstance(args[0], bool | int | float | list | tuple | torch.Tensor)):
            raise TellingKernel(
                f"run calls torch.{make.__name__}, whose tensors host code can read: use torch.tensor"
            )
        return make(*args, **kwargs)

    return checked


def _refuse_thread(*_: object) -> None:
    raise TellingKernel("the version starts a thread, whose work no check here sees")


def _within_launches(call: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if not _running:
            raise TellingKernel("run interprets a kernel without launching it; launch it as `kernel[grid](...)`")
        return call(*args, **kwargs)

    return checked
