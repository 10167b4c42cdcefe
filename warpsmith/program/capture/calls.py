"""What a call gives that enters no function of the user's: PyTorch's functions and methods, and Python's own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from warpsmith.program.capture.source import Source
from warpsmith.program.capture.values import (
    COUNTER,
    DEVICE,
    HOST,
    MASK,
    PYTHON,
    TENSORS,
    UNKNOWN,
    Kind,
    Scope,
    Value,
    joined,
)

if TYPE_CHECKING:
    from warpsmith.program.capture.kinds import Kinds

_PYTHON_METHODS = {
    "item", "tolist", "size", "dim", "numel", "stride", "data_ptr", "element_size", "get_device",
    "nelement", "storage_offset",
}  # fmt: skip
_MASKS = {
    "eq", "ne", "lt", "le", "gt", "ge", "isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_not",
    "logical_xor", "isin", "isclose", "bool", "greater", "less", "any", "all",
}  # fmt: skip
_FACTORIES = {
    "zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "eye",
    "tensor", "as_tensor", "from_numpy", "normal", "tril_indices", "triu_indices", "scalar_tensor", "asarray",
}  # fmt: skip
_TENSOR_HOMES = ("torch", "torch.linalg", "torch.fft", "torch.special", "torch.sparse")
_NO_TENSOR = ("is_", "get_", "set_", "no_grad", "enable_grad", "inference_mode", "autocast", "finfo", "iinfo",
              "load", "save", "manual_seed", "seed", "initial_seed", "numel", "equal", "allclose", "compile", "_",
              "are_", "use_", "typename", "result_type", "can_cast", "promote_types", "Size")  # fmt: skip
"""Beginnings of PyTorch's functions that give no tensor."""

_DEVICE_WORDS = ("device", "dev")

_MADE: tuple[tuple[str, Kind], ...] = (
    ("torch.optim.lr_scheduler.", "scheduler"),
    ("torch.optim.", "optimizer"),
    ("torch.amp.GradScaler", "scaler"),
    ("torch.Generator", "generator"),
    ("torch.device", "place"),
    ("torch.utils.data.DataLoader", "loader"),
)
"""What the classes of PyTorch make that matter here; the first that fits."""


class Calls:
    """Answers for one `Kinds`."""

    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds

    def builtin(self, call: ast.Call, scope: Scope) -> Value:
        """What one of Python's own functions gives."""
        assert isinstance(call.func, ast.Name)
        given = [self._kinds.value(argument, scope) for argument in call.args]
        match call.func.id:
            case "iter" | "next" if given and given[0].kind == "loader":
                return given[0] if call.func.id == "iter" else HOST
            case "sum" if given and given[0].parts and given[0].parts[0].kind in TENSORS:
                return given[0].parts[0]
            case "reversed" | "list" | "tuple" if given:
                return given[0]
            case "int" | "float" | "bool" | "str" | "len" | "range" | "round" | "abs" | "min" | "max":
                return COUNTER if any(value.kind == "counter" for value in given) else PYTHON
        return UNKNOWN

    def method(self, call: ast.Call, base: Value, scope: Scope) -> Value:
        """What a method gives that is not the user's, of what `base` holds."""
        assert isinstance(call.func, ast.Attribute)
        name = call.func.attr
        if base.kind in TENSORS:
            if name in _PYTHON_METHODS or name.startswith("is_"):
                return PYTHON
            if name in ("to", "cuda", "cpu"):
                aim = "cpu" if name == "cpu" else "cuda" if name == "cuda" else self.aim(call, scope)
                return HOST if aim == "cpu" else DEVICE if aim else base
            if name in _MASKS:
                return MASK if base.kind != "host" else HOST
            return UNKNOWN if name == "numpy" else Value("device") if base.kind == "mask" else base
        if base.kind == "module" and name in ("to", "cuda", "cpu", "eval", "train", "half", "bfloat16", "float"):
            return base
        if base.kind == "generator" and name == "manual_seed":
            return base
        if base.kind == "module" and name in ("parameters", "buffers"):
            return Value(parts=(DEVICE,))
        if name in ("to", "cuda"):
            return DEVICE if name == "cuda" or self.aim(call, scope) in ("cuda", "device") else UNKNOWN
        if name in ("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"):
            return DEVICE
        if name == "values" and base.kind == "module":
            return base
        return UNKNOWN

    def aim(self, call: ast.Call, scope: Scope) -> str:
        """Where `.to(…)` or a factory's device puts a tensor: `cuda`, `cpu`, `device`, or nothing."""
        words = [word.value for word in call.keywords if word.arg == "device"]
        method = isinstance(call.func, ast.Attribute) and call.func.attr == "to"
        for node in words or (call.args[:1] if method else []):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                return "cpu" if node.value.startswith("cpu") else "cuda"
            if isinstance(node, ast.Constant) and node.value is None:
                return ""
            if words or self._kinds.value(node, scope).kind == "place":
                return "device"
            last = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
            if last.casefold().endswith(_DEVICE_WORDS):
                return "device"
            if self._kinds.value(node, scope).kind in TENSORS:
                return "device"
        return ""

    def external(self, name: str, call: ast.Call, scope: Scope) -> Value:
        """What a function or class of a library gives, by its full name."""
        last = name.rpartition(".")[2]
        made = (scope.source, call)
        for prefix, kind in _MADE:
            if name.startswith(prefix):
                return Value(kind, made=made)
        if name == "torch.compile" and call.args:
            return self._kinds.value(call.args[0], scope)
        if name.startswith("torch.nn.functional."):
            return DEVICE
        if name.startswith("torch.nn."):
            return self._module(name, call, scope, made)
        if name.rpartition(".")[0] not in _TENSOR_HOMES or last.startswith(_NO_TENSOR):
            changes = any(self._kinds.value(argument, scope).kind == "counter" for argument in call.args)
            return COUNTER if changes and name.startswith(("math.", "numpy.")) else UNKNOWN
        if last in _FACTORIES and name == f"torch.{last}":
            aim = self.aim(call, scope)
            return DEVICE if aim in ("cuda", "device") or (not aim and self._default_device()) else HOST
        if last in _MASKS:
            return MASK
        given = joined(*(self._kinds.value(argument, scope) for argument in call.args))
        return HOST if given.kind == "host" else DEVICE

    def _module(self, name: str, call: ast.Call, scope: Scope, made: tuple[Source, ast.Call]) -> Value:
        last = name.rpartition(".")[2]
        if last == "Parameter" or last == "Buffer":
            return DEVICE
        if not last[:1].isupper():
            return UNKNOWN
        return Value("module", self._kinds.inside(call, scope.source), made=made)

    def _default_device(self) -> bool:
        return any("set_default_device" in line for source in self._kinds.sources for line in source.lines)
