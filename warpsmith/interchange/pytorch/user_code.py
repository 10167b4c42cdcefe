"""User's Python file: its operator, example inputs, and the values of a call."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from warpsmith.interchange.pytorch.example_flags import ExampleFlag, FlagTensor, FlagValue
from warpsmith.interchange.pytorch.reductions import UnusableOperator
from warpsmith.interchange.sibling import load_module

if TYPE_CHECKING:
    import torch

_PROBLEM = ("Model", "get_inputs", "get_init_inputs")
_INPUTS = ("get_inputs", "example_inputs", "make_inputs")
"""Names of a function or value that gives the example inputs, the first that the file has."""

_NO_OPERATORS = frozenset({*_INPUTS, "get_init_inputs", "main"})

_VECTORS = frozenset({"weight", "bias", "gamma", "beta"})

_Parameter = inspect.Parameter
_POSITIONAL = (_Parameter.POSITIONAL_ONLY, _Parameter.POSITIONAL_OR_KEYWORD)


@dataclass
class Example:
    """Values of one call of the operator, by parameter, in the order of the call."""

    positional: dict[str, Any] = field(default_factory=dict)
    """Values that are passed by position."""
    keywords: dict[str, Any] = field(default_factory=dict)
    """Values that are passed by name."""

    @property
    def values(self) -> dict[str, Any]:
        """All values by parameter."""
        return self.positional | self.keywords


class UserCode:
    """Loaded file with the operator to import.

    Raises:
        UnusableOperator: the file fails, or does not say which operator is meant.
    """

    def __init__(self, path: Path, object_name: str, inputs: tuple[Path, str] | None = None) -> None:
        """Load the file.

        Args:
            path: the user's file.
            object_name: its operator; empty for the only one.
            inputs: a file and the name of its function or value that gives the example inputs; by default those
                of the operator's own file.
        """
        self.path = path
        self._refuse_local_imports()
        self.module: ModuleType = call_user_code("the file", lambda: load_module(path))
        self.name = object_name or self._only_operator()
        self.target: Any = self._attribute(self.name)
        self._inputs_name, self._inputs = self._find_inputs(inputs)

    @property
    def is_class(self) -> bool:
        """True if the operator is a class of modules, which the definition constructs."""
        return inspect.isclass(self.target)

    @property
    def is_module(self) -> bool:
        """True if the operator is a class of modules or an instance."""
        import torch

        return self.is_class or isinstance(self.target, torch.nn.Module)

    @property
    def has_init_inputs(self) -> bool:
        """True if the file gives the arguments of the constructor."""
        return hasattr(self.module, "get_init_inputs")

    @property
    def forward(self) -> Callable[..., Any]:
        """Function whose parameters the example gives."""
        return self.target.forward if self.is_module else self.target  # type: ignore[no-any-return]

    def construct(self) -> torch.nn.Module:
        """Construct the module, or return the instance."""
        if not self.is_class:
            return self.target  # type: ignore[no-any-return]
        if self.has_init_inputs:
            return call_user_code(  # type: ignore[no-any-return]
                f"{self.name}(*get_init_inputs())", lambda: self.target(*self.module.get_init_inputs())
            )
        missing = [
            p.name
            for p in inspect.signature(self.target).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        if missing:
            raise UnusableOperator(
                f"the constructor of {self.name} needs {', '.join(missing)}; add `def get_init_inputs(): return "
                f"[...]` to the file, or an instance `model = {self.name}(...)` and import `{self.path}:model`"
            )
        return call_user_code(f"{self.name}()", self.target)  # type: ignore[no-any-return]

    def example(self, flags: Sequence[ExampleFlag]) -> Example:
        """Return the file's example inputs, with those of the flags in place of its own.

        Raises:
            UnusableOperator: a parameter has no value, or there are more values than parameters.
        """
        parameters = list(inspect.signature(self.forward).parameters.values())
        if self.is_class:
            parameters = parameters[1:]
        values = self._values_by_name(parameters) | {flag.name: _flag_value(flag) for flag in flags}
        names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        is_open = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
        if unknown := [name for name in values if name not in names and not is_open]:
            raise UnusableOperator(f"{self.name} has no parameter `{unknown[0]}`; it has {', '.join(names)}")
        missing = [
            p
            for p in parameters
            if p.default is p.empty and p.name not in values and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
        ]
        if missing:
            raise UnusableOperator(self._missing_inputs(missing, parameters, values))
        example, by_position = Example(), True
        for p in parameters:
            by_position = by_position and p.kind in _POSITIONAL and p.name in values
            if p.name in values:
                (example.positional if by_position else example.keywords)[p.name] = values.pop(p.name)
        example.positional |= values  # Those of `*args`, in order.
        return example

    def _values_by_name(self, parameters: Sequence[inspect.Parameter]) -> dict[str, Any]:
        examples, step = self._inputs, self._inputs_name
        if examples is None:
            return {}
        if callable(examples):
            examples = call_user_code(f"{step}()", examples)
            step += "()"
        if isinstance(examples, dict):
            return dict(examples)
        values = list(examples) if isinstance(examples, tuple | list) else [examples]
        names = [p.name for p in parameters if p.kind in _POSITIONAL]
        if any(p.kind is p.VAR_POSITIONAL for p in parameters):
            names += [f"x{i}" for i in range(len(names), len(values))]
        if len(values) > len(names):
            raise UnusableOperator(f"{step} returns {len(values)} values, but {self.name} takes {len(names)}")
        return dict(zip(names, values, strict=False))

    def _find_inputs(self, inputs: tuple[Path, str] | None) -> tuple[str, Any]:
        """Return the name and value of the example inputs; `None` if there are none."""
        module, names = self.module, list(_INPUTS)
        if inputs is not None:
            path, name = inputs
            if path.resolve() != self.path.resolve():
                module = call_user_code(f"{path}", lambda: load_module(path))
            names = [name] if name else names
        for name in names:
            if hasattr(module, name):
                return name, getattr(module, name)
        if inputs is not None:
            raise UnusableOperator(f"{inputs[0]} has no `{names[0]}`, which should give the example inputs")
        return "", None

    def _missing_inputs(
        self,
        missing: Sequence[inspect.Parameter],
        parameters: Sequence[inspect.Parameter],
        values: dict[str, Any],
    ) -> str:
        flags = " ".join(f'--input "{_suggested_flag(p)}"' for p in missing)
        names = ", ".join(p.name for p in missing)
        lack = "has no example inputs" if not values else f"has no example of {names}"
        return (
            f"{self.name}({', '.join(p.name for p in parameters)}) {lack}; name sizes and types, as in {flags}, "
            "or add `def get_inputs(): return [...]` to the file"
        )

    def _only_operator(self) -> str:
        import torch

        if all(hasattr(self.module, name) for name in _PROBLEM):
            return "Model"
        own = {
            name: value
            for name, value in vars(self.module).items()
            if not name.startswith("_") and name not in _NO_OPERATORS
        }
        classes = [
            name
            for name, value in own.items()
            if inspect.isclass(value)
            and issubclass(value, torch.nn.Module)
            and value.__module__ == self.module.__name__
        ]
        instances = [name for name, value in own.items() if isinstance(value, torch.nn.Module)]
        functions = [
            name
            for name, value in own.items()
            if inspect.isfunction(value) and value.__module__ == self.module.__name__
        ]
        for candidates in (instances, classes, functions):
            if len(candidates) == 1:
                return candidates[0]
            if candidates:
                raise UnusableOperator(
                    f"the file has several operators: {', '.join(candidates)}; name one, as in "
                    f"`--from {self.path}:{candidates[-1]}`"
                )
        raise UnusableOperator("the file has no operator: neither a function nor an nn.Module")

    def _attribute(self, name: str) -> Any:  # noqa: ANN401
        import torch

        if not hasattr(self.module, name):
            raise UnusableOperator(f"the file has no `{name}`")
        target = getattr(self.module, name)
        if inspect.isclass(target) and not issubclass(target, torch.nn.Module):
            raise UnusableOperator(f"`{name}` is a class, but no nn.Module")
        if not callable(target):
            raise UnusableOperator(
                f"`{name}` is of the type {type(target).__name__}, neither a function nor an nn.Module"
            )
        return target

    def _refuse_local_imports(self) -> None:
        """Refuse modules beside the file: the definition's copy of the file could not import them."""
        folder = self.path.resolve().parent
        for node in ast.walk(ast.parse(self.path.read_text(encoding="utf-8-sig"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = ["." * node.level + (node.module or "")]
            for name in names:
                root = name.partition(".")[0]
                if not root or (folder / f"{root}.py").is_file() or (folder / root / "__init__.py").is_file():
                    raise UnusableOperator(
                        f"it imports `{name}` from its own folder, but a definition is one file; move that code "
                        f"into {self.path.name}, or install it as a package"
                    )


def call_user_code(step: str, run: Callable[[], Any]) -> Any:  # noqa: ANN401 - the user's own code
    """Call the user's code; turn any error into one sentence.

    Raises:
        UnusableOperator: it fails.
    """
    try:
        return run()
    except UnusableOperator:
        raise
    except (Exception, SystemExit) as error:
        message = " ".join(str(error).split())[:300]
        raise UnusableOperator(f"{step} fails with {type(error).__name__}: {message}") from error


def _flag_value(flag: ExampleFlag) -> Any:  # noqa: ANN401 - whatever the flag says
    import torch

    if isinstance(flag, FlagValue):
        return ast.literal_eval(flag.source)
    assert isinstance(flag, FlagTensor)
    return torch.zeros(flag.shape, dtype=getattr(torch, flag.dtype))


def _suggested_flag(parameter: inspect.Parameter) -> str:
    """Return a flag that fits a parameter, by its annotation and name."""
    name, annotation = parameter.name, parameter.annotation
    kind = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    if kind == "bool":
        return f"{name}=false"
    if kind == "int" or (kind == "" and name in ("k", "n", "dim", "num", "groups", "stride", "padding")):
        return f"{name}=1"
    if kind == "float" or "eps" in name or name in ("scale", "alpha", "momentum", "p"):
        return f"{name}={'1e-5' if 'eps' in name else '1.0'}"
    if any(part in name for part in ("idx", "index", "indices", "ids", "target", "label")):
        return f"{name}=1024:int64<1000"
    return f"{name}={'1024' if name in _VECTORS else '8,1024'}:float32"
