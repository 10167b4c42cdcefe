"""Forward of an operator on tensors of any sizes; fake tensors without data, unless the code asks for values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpsmith.core.arithmetic.dtype import DTYPES
from warpsmith.interchange.pytorch.example_flags import ExampleFlag
from warpsmith.interchange.pytorch.reductions import Operation, UnusableOperator, operation_trace
from warpsmith.interchange.pytorch.user_code import Example, UserCode, call_user_code

if TYPE_CHECKING:
    import torch

Shapes = dict[str, tuple[int, ...]]
"""Shape of every tensor input, by name."""

HALVES = ("float16", "bfloat16")
"""Types in which PyTorch rounds the result of every operation."""


@dataclass(frozen=True)
class ForwardRun:
    """Results and operations of one forward."""

    shapes: tuple[tuple[int, ...], ...]
    """Shape of each result."""
    dtypes: tuple[str, ...]
    """Data type of each result."""
    chains: tuple[tuple[int, ...], ...]
    """Indices of the operations in the longest chain of reductions behind each result."""
    operations: tuple[Operation, ...]
    """All operations, in order."""
    uses: dict[str, set[int]]
    """Indices of the lookups into each tensor input, and -1 for any other use of it."""
    is_nested: bool
    """True if the results are not one tensor or a flat tuple of tensors."""


class Forward:
    """Operator that can run on tensors of other sizes.

    Raises:
        UnusableOperator: its code fails, or no definition can express it.
    """

    def __init__(
        self, source: UserCode, flags: Sequence[ExampleFlag], *, fake: bool, like: Forward | None = None
    ) -> None:
        import torch
        from torch._subclasses.fake_tensor import FakeTensorMode

        self.source, self.fake = source, fake
        self._mode: Any = FakeTensorMode(allow_non_fake_inputs=True) if fake else nullcontext()
        self.module: torch.nn.Module | None = None
        with self._mode, torch.no_grad():
            with _generator_log() as log:
                self.example: Example = source.example(flags)
            self.packed = self._unpack_tuples()
            self.module = source.construct() if source.is_module else None
        values = self.values
        self.arguments = {n: v for n, v in values.items() if isinstance(v, torch.Tensor)}
        self.generators = {name: log.generator_of(tensor) for name, tensor in self.arguments.items()}
        self.numbers = {name: value for name, value in values.items() if isinstance(value, bool | int | float)}
        self.constants = {
            name: value
            for name, value in values.items()
            if name not in self.arguments and name not in self.numbers
        }
        for name, value in self.constants.items():
            if not _is_literal(value):
                raise UnusableOperator(
                    f"`{name}` is of the type {type(value).__name__}, neither a tensor nor a plain value"
                )
        self.scratch: tuple[str, ...] = ()
        self.keys: dict[str, str] = {}
        self.tensors: dict[str, torch.Tensor] = dict(self.arguments)
        self._find_state(like)
        if not self.tensors:
            raise UnusableOperator(f"{source.name} gets no tensor")
        self.dtypes = {name: _known_dtype(name, tensor) for name, tensor in self.tensors.items()}
        self._is_widened = False

    @property
    def values(self) -> dict[str, Any]:
        """Values of the example by name, with the parts of a tuple in its place."""
        values: dict[str, Any] = {}
        for name, value in self.example.values.items():
            values |= dict(zip(self.packed[name], value, strict=True)) if name in self.packed else {name: value}
        return values

    def _unpack_tuples(self) -> dict[str, tuple[str, ...]]:
        """Name the tensors of each argument that is a tuple of tensors: `hx_0` and `hx_1` of `hx`."""
        import torch

        return {
            name: tuple(f"{name}_{i}" for i in range(len(value)))
            for name, value in self.example.values.items()
            if isinstance(value, tuple | list) and value and all(isinstance(v, torch.Tensor) for v in value)
        }

    @property
    def shapes(self) -> Shapes:
        """Shapes of the example."""
        return {name: tuple(tensor.shape) for name, tensor in self.tensors.items()}

    def with_values(self, flags: Sequence[ExampleFlag]) -> Forward:
        """Return the same operator with the values of its example, without a run."""
        return Forward(self.source, flags, fake=False, like=self)

    def leave_in_module(self, names: Sequence[str]) -> None:
        """Leave buffers in the module, as its constructor makes them, instead of giving them to a kernel."""
        self.scratch = tuple(sorted({*self.scratch, *(self.keys[name] for name in names)}))
        for name in names:
            del self.keys[name], self.tensors[name], self.dtypes[name]

    def buffer_names(self) -> list[str]:
        """Return the inputs that are buffers of the module."""
        buffers = dict(self.module.named_buffers()) if self.module is not None else {}
        return [name for name, key in self.keys.items() if key in buffers]

    def run(self, shapes: Shapes) -> ForwardRun:
        """Run on tensors of these shapes.

        Raises:
            UnusableOperator: it fails there.
        """
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        # Attention runs as its products, since only those are counted on every machine.
        with self._mode, torch.no_grad(), sdpa_kernel(SDPBackend.MATH):
            tensors = {name: self._tensor(name, shape) for name, shape in shapes.items()}
            with operation_trace() as trace:
                trace.guard(tensors)
                result = call_user_code(self._label, lambda: self._call(tensors))
            return _forward_run(result, trace)

    def runs(self, shapes: Shapes) -> bool:
        """Return whether it runs on these shapes; a real run is not repeated at other sizes."""
        if not self.fake:
            return False
        try:
            self.run(shapes)
        except UnusableOperator:
            return False
        return True

    def runs_with_integer(self, shapes: Shapes, name: str, value: int, is_offsets: bool) -> bool:
        """Return whether a real run accepts a value in one integer input; the other integers are zero.

        With `is_offsets`, the input rises from 0 to the value.
        """
        import torch

        def filled(tensor: str, shape: tuple[int, ...]) -> torch.Tensor:
            dtype = getattr(torch, self.dtypes[tensor])
            if tensor in self.keys and shape == tuple(self.tensors[tensor].shape):
                return self.tensors[tensor]
            if dtype.is_floating_point:
                return torch.rand(shape).to(dtype)
            full = torch.full(shape, (value if tensor == name else 0) if dtype != torch.bool else 1, dtype=dtype)
            if tensor == name and is_offsets:
                full[0] = 0
            return full

        tensors = {tensor: filled(tensor, shape) for tensor, shape in shapes.items()}
        try:
            with torch.no_grad():
                call_user_code(self._label, lambda: self._call(tensors))
        except UnusableOperator:
            return False
        return True

    def accepts_float32(self) -> bool:
        """Return whether it has half-precision inputs, and runs if they are float32."""
        if not self.fake or not set(self.dtypes.values()) & set(HALVES):
            return False
        self._is_widened = True
        try:
            return self.runs(self.shapes)
        finally:
            self._is_widened = False

    @property
    def _label(self) -> str:
        return f"{self.source.name}.forward" if self.source.is_module else f"{self.source.name}()"

    def _tensor(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        import torch

        if not self.fake:
            return self.tensors[name]
        dtype = "float32" if self._is_widened and self.dtypes[name] in HALVES else self.dtypes[name]
        return torch.empty(shape, dtype=getattr(torch, dtype))

    def _call(self, tensors: Mapping[str, torch.Tensor]) -> Any:  # noqa: ANN401
        import torch

        values = self.example.values | {name: tensors[name] for name in self.arguments}
        values |= {name: tuple(tensors[part] for part in parts) for name, parts in self.packed.items()}
        positional = tuple(values[name] for name in self.example.positional)
        keywords = {name: values[name] for name in self.example.keywords}
        if self.module is None:
            return self.source.target(*positional, **keywords)
        state = {key: tensors[name] for name, key in self.keys.items()}
        return torch.func.functional_call(self.module, state, positional, keywords)

    def _find_state(self, like: Forward | None) -> None:
        """Name the parameters and buffers that the forward reads; those that it writes to are scratch."""
        import torch
        from torch.nn.attention import SDPBackend, sdpa_kernel

        if self.module is None:
            return
        state = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
        if like is not None:
            self.scratch, self.keys = like.scratch, dict(like.keys)
            self.tensors |= {name: state[key] for name, key in self.keys.items()}
            return
        versions = {key: tensor._version for key, tensor in state.items()}
        with self._mode, torch.no_grad(), sdpa_kernel(SDPBackend.MATH), operation_trace():
            values = self.example
            call_user_code(self._label, lambda: self.module(*values.positional.values(), **values.keywords))  # type: ignore[misc]
        written = {key for key, tensor in state.items() if tensor._version != versions[key]}
        self.scratch = tuple(sorted(written | _running_statistics(self.module)))
        names = list(self.values)
        for key, tensor in state.items():
            if key not in self.scratch:
                name = unused_identifier(key, names)
                self.keys[name] = key
                self.tensors[name] = tensor


def _generator_log() -> Any:  # noqa: ANN401 - a class of torch, which is imported late
    """Return a dispatch mode that notes which distribution drew a tensor; `generator_of(tensor)` returns it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class GeneratorLog(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[no-untyped-call]
            self._generators: dict[int, str] = {}
            self._storages: list[Any] = []  # They stay alive, so that no other storage gets the key of one.

        def generator_of(self, tensor: torch.Tensor) -> str:
            return self._generators.get(tensor.untyped_storage()._cdata, "")

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
            result = func(*args, **(kwargs or {}))
            name = func._overloadpacket.__name__
            if name == "rand":
                self._note(result, "uniform")
            elif name == "randint":
                bounds = [value for value in args if isinstance(value, int)]
                self._note(result, ":".join(["integers", *map(str, [0, *bounds] if len(bounds) == 1 else bounds)]))
            return result

        def _note(self, tensor: torch.Tensor, generator: str) -> None:
            self._storages.append(tensor.untyped_storage())
            self._generators[self._storages[-1]._cdata] = generator

    return GeneratorLog()


def unused_identifier(key: str, names: list[str]) -> str:
    """Return an identifier for a key of the state that is not in `names`, and add it there."""
    import keyword

    name = key.replace(".", "_")
    while name in names or not name.isidentifier() or keyword.iskeyword(name):
        name = f"p_{name}"
    names.append(name)
    return name


def _forward_run(result: Any, trace: Any) -> ForwardRun:  # noqa: ANN401
    import torch
    from torch.utils._pytree import tree_leaves

    if isinstance(result, dict):
        raise UnusableOperator("it returns a dict, not a tensor or a tuple of tensors")
    flat = list(result) if isinstance(result, tuple | list) else [result]
    is_nested = not all(isinstance(value, torch.Tensor) for value in flat)
    if is_nested:
        flat = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    if not flat:
        raise UnusableOperator(f"it returns a {type(result).__name__}, not a tensor or a tuple of tensors")
    return ForwardRun(
        shapes=tuple(tuple(tensor.shape) for tensor in flat),
        dtypes=tuple(_known_dtype("the result", tensor) for tensor in flat),
        chains=tuple(trace.chain_of(tensor) for tensor in flat),
        operations=tuple(trace.operations),
        uses=trace.uses,
        is_nested=is_nested,
    )


def _known_dtype(name: str, tensor: torch.Tensor) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise UnusableOperator(f"`{name}` has the dtype {dtype}; known: {', '.join(DTYPES)}")
    return dtype


def _is_literal(value: object) -> bool:
    """Return whether a value can stand in source as a literal."""
    if isinstance(value, tuple | list):
        return all(_is_literal(item) for item in value)
    return value is None or isinstance(value, str | bool | int | float)


def _running_statistics(module: torch.nn.Module) -> set[str]:
    """Return the running statistics of normalizations: they are written inside the operation, which bumps no
    version."""
    from torch.nn.modules.batchnorm import _NormBase

    return {
        f"{name}.{buffer}" if name else buffer
        for name, part in module.named_modules()
        if isinstance(part, _NormBase) and part.training
        for buffer, _ in part.named_buffers(recurse=False)
    }
