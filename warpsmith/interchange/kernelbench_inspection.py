"""Inspection of a KernelBench problem in its own process: shapes, types and work. Start it with `python -m`.

Tensors may have gigabytes, so the problem runs on fake tensors without data. Only code that asks for values makes
it run for real.
"""

from __future__ import annotations

import inspect
import keyword
import resource
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.core.base import Model as Facts
from warpsmith.interchange.sibling import load_module

if TYPE_CHECKING:
    import torch


class ProblemTensor(Facts):
    """Tensor of the problem."""

    name: str
    """Name as an input or output of the definition."""
    key: str = ""
    """Key in the Model's state; empty for an argument or result of `forward`."""
    shape: tuple[int, ...]
    """Sizes along each axis."""
    dtype: str
    """PyTorch data type name."""


class ProblemScalar(Facts):
    """Number that `get_inputs` returns."""

    name: str
    """Name as an input of the definition."""
    value: bool | int | float
    """Value, the same at every call."""


class KernelBenchProblem(Facts):
    """Facts that the process found."""

    arguments: tuple[ProblemTensor | ProblemScalar, ...] = ()
    """Arguments of `forward`, in order."""
    state: tuple[ProblemTensor, ...] = ()
    """Parameters and buffers that `forward` reads."""
    scratch: tuple[str, ...] = ()
    """Keys of buffers that `forward` writes to."""
    outputs: tuple[ProblemTensor, ...] = ()
    """Results of `forward`."""
    flops: int = 0
    """Floating-point operations of its products and convolutions."""
    reduction: int = 1
    """Sum of the reduction lengths of all operations."""
    description: str = ""
    """First line of the Model's docstring."""
    error: str = ""
    """Reason why the problem cannot be used; empty if it can."""


class UnusableProblem(Exception):
    """The problem does something that no definition can express."""


def main() -> None:
    """Inspect the problem in argument 1 and write the result to the file in argument 2, as JSON.

    Argument 3 is the largest number of bytes that the process may allocate.
    """
    limit = int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    try:
        problem = inspect_problem(Path(sys.argv[1]))
    except UnusableProblem as error:
        problem = KernelBenchProblem(error=str(error))
    Path(sys.argv[2]).write_text(problem.model_dump_json())


def inspect_problem(path: Path) -> KernelBenchProblem:
    """Inspect the problem in `path`.

    Raises:
        UnusableProblem: it fails, or cannot become a definition.
    """
    module = _run_user_code("the file", lambda: load_module(path))
    from torch._subclasses.fake_tensor import FakeTensorMode

    try:
        return _inspect_module(module, FakeTensorMode(allow_non_fake_inputs=True))
    except UnusableProblem as error:
        if error.__cause__ is None:
            raise
    # The problem asked for values or is broken; a real run shows which.
    return _inspect_module(module, nullcontext())


def _inspect_module(module: ModuleType, mode: Any) -> KernelBenchProblem:  # noqa: ANN401 - one of two unrelated contexts
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode

    # Attention runs as its products, since only those are counted on every machine.
    with mode, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
        values = _run_user_code("get_inputs()", lambda: list(module.get_inputs()))
        model = _run_user_code("Model(*get_init_inputs())", lambda: module.Model(*module.get_init_inputs()))
        arguments = _arguments(model, values)
        state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        versions = {key: tensor._version for key, tensor in state.items()}
        with FlopCounterMode(display=False) as flops, reduction_lengths() as lengths:
            result = _run_user_code("Model.forward", lambda: model(*values))
        scratch = _running_statistics(model) | {
            key for key, tensor in state.items() if tensor._version != versions[key]
        }
    results = list(result) if isinstance(result, tuple | list) else [result]
    names = [argument.name for argument in arguments]
    state_tensors = [
        _tensor(_unused_identifier(key, names), t, key) for key, t in state.items() if key not in scratch
    ]
    output_names = ["out"] if len(results) == 1 else [f"out{i}" for i in range(len(results))]
    return KernelBenchProblem(
        arguments=arguments,
        state=state_tensors,
        scratch=tuple(sorted(scratch)),
        outputs=[
            _tensor(_unused_identifier(name, names), t) for name, t in zip(output_names, results, strict=True)
        ],
        flops=flops.get_total_flops(),
        reduction=max(1, lengths.total),
        description=" ".join(inspect.cleandoc(module.Model.__doc__ or "").split("\n\n")[0].split()),
    )


def _run_user_code(step: str, run: Any) -> Any:  # noqa: ANN401 - the problem's own code
    """Call the problem's code; turn any error into one sentence."""
    try:
        return run()
    except UnusableProblem:
        raise
    except (Exception, SystemExit) as error:
        message = " ".join(str(error).split())[:300]
        raise UnusableProblem(f"{step} fails with {type(error).__name__}: {message}") from error


def _arguments(model: torch.nn.Module, values: list[Any]) -> tuple[ProblemTensor | ProblemScalar, ...]:
    import torch

    parameters = list(inspect.signature(model.forward).parameters.values())
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        names += [f"x{i}" for i in range(len(names), len(values))]
    if len(values) > len(names):
        raise UnusableProblem(f"get_inputs() returns {len(values)} values, but Model.forward takes {len(names)}")
    arguments: list[ProblemTensor | ProblemScalar] = []
    for name, value in zip(names, values, strict=False):
        if isinstance(value, torch.Tensor):
            arguments.append(_tensor(name, value))
            continue
        try:
            arguments.append(ProblemScalar(name=name, value=value))
        except ValidationError as error:
            kind = type(value).__name__
            raise UnusableProblem(
                f"get_inputs() gives `{name}` as {kind}, neither a tensor nor a number"
            ) from error
    if not any(isinstance(argument, ProblemTensor) for argument in arguments):
        raise UnusableProblem("get_inputs() returns no tensor")
    return tuple(arguments)


def _tensor(name: str, value: Any, key: str = "") -> ProblemTensor:  # noqa: ANN401 - what a model returned
    import torch

    if not isinstance(value, torch.Tensor):
        raise UnusableProblem(
            f"Model.forward returns a {type(value).__name__}, not a tensor or a tuple of tensors"
        )
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise UnusableProblem(f"`{key or name}` has the dtype {dtype}; known: {', '.join(DTYPES)}")
    return ProblemTensor(name=name, key=key, shape=tuple(value.shape), dtype=dtype)


def _unused_identifier(key: str, names: list[str]) -> str:
    """Return an identifier for a key of the state that is not in `names`, and add it there."""
    name = key.replace(".", "_")
    while name in names or not name.isidentifier() or keyword.iskeyword(name):
        name = f"p_{name}"
    names.append(name)
    return name


def _running_statistics(model: torch.nn.Module) -> set[str]:
    """Return the running statistics of normalizations: they are written inside the operation, which bumps no
    version."""
    from torch.nn.modules.batchnorm import _NormBase

    return {
        f"{name}.{buffer}" if name else buffer
        for name, module in model.named_modules()
        if isinstance(module, _NormBase) and module.training
        for buffer, _ in module.named_buffers(recurse=False)
    }


def reduction_lengths() -> Any:  # noqa: ANN401 - a class of torch, which is imported late
    """Return a dispatch mode that adds up the reduction lengths of all operations, and refuses random ones."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Lengths(TorchDispatchMode):  # type: ignore[no-untyped-call]
        total = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            if torch.Tag.nondeterministic_seeded in func.tags:
                raise UnusableProblem(
                    f"Model.forward draws random numbers ({func}), so no result can be compared; remove them"
                )
            result = func(*args, **(kwargs or {}))
            self.total += _reduction_length(func, args, kwargs or {}, result)
            return result

    return Lengths()  # type: ignore[no-untyped-call]


def _reduction_length(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> int:  # noqa: ANN401
    """Return how many numbers an operation adds up for one number of its result; 0 for views, 1 for
    elementwise."""
    import torch
    from torch.utils._pytree import tree_leaves
    from torch.utils.flop_counter import flop_registry

    if isinstance(result, list) and any(
        isinstance(argument, list) and len(argument) == len(result) for argument in args
    ):
        return max(
            (_reduction_length(func, *element) for element in _split_foreach(args, kwargs, result)), default=0
        )
    results = [t.numel() for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.numel()]
    operands = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    if not results or not operands or func.is_view:
        return 0
    count = flop_registry.get(func._overloadpacket)
    if count is not None:
        return int(count(*args, **kwargs, out_val=result)) // (2 * max(results))
    length = -(-max(t.numel() for t in operands) // min(results))
    # Scans and softmaxes keep the size, so the dimension that they run along gives the length.
    names = [argument.name for argument in func._schema.arguments]
    by_name = dict(zip(names, args, strict=False)) | kwargs
    dimension, first = by_name.get("dim"), args[0] if args else None
    if isinstance(dimension, int) and isinstance(first, torch.Tensor) and first.ndim:
        length = max(length, first.shape[dimension])
    return length


def _split_foreach(args: tuple[Any, ...], kwargs: dict[str, Any], result: list[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the arguments and the result of each element of an operation on lists that returns a list of lists."""

    def element_of(index: int, value: Any) -> Any:  # noqa: ANN401
        return value[index] if isinstance(value, list) and len(value) == len(result) else value

    for index, element in enumerate(result):
        yield (
            tuple(element_of(index, argument) for argument in args),
            {key: element_of(index, argument) for key, argument in kwargs.items()},
            element,
        )


if __name__ == "__main__":
    main()
