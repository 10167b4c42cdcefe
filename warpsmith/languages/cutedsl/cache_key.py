"""Cache key of a function that CuTe DSL compiles: a digest of everything that decides the result.

Values are described by their type and content. A value that cannot be described exactly, such as a closure over
anything but plain values, has no key and is compiled every time.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import re
import sys
from collections.abc import Mapping
from enum import Enum
from functools import cache
from importlib.metadata import version
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any

from warpsmith.languages.shared.host_cpu import cpu_features
from warpsmith.languages.shared.object_store import file_stamp

_PLAIN = (NoneType, bool, int, float, str, bytes)
_LIBRARIES = sys.stdlib_module_names | {"cutlass", "torch"}
_PACKAGES = ("nvidia-cutlass-dsl", "apache-tvm-ffi", "torch")
_OPTIONS = re.compile(r"--(enable-tvm-ffi|opt-level|gpu-arch|generate-line-info|enable-assertions)|\d|sm_\w+")
_SIDE_OUTPUT = re.compile(r"^CUTE_DSL_.*(KEEP|DUMP|PRINT|DRYRUN|LOG|COMPILER_OPT)")
"""Environment variables of a user who inspects the compiler: it has to run then."""

Description = tuple[Any, ...]
"""A value as nested tuples of strings."""


class NoKey(Exception):
    """Something that may decide the compiled code cannot be described exactly."""


def function_key(
    source: str,
    module: ModuleType,
    function: Any,  # noqa: ANN401 - the DSL publishes no types
    arguments: tuple[Any, ...],
    options: str,
) -> str:
    """Return the key in hexadecimal.

    Args:
        source: digest of the file that `module` was executed from.
        module: module whose globals the function can see.
        function: result of `cute.jit` on a function at the file's top level.
        arguments: arguments that it is compiled for, fake tensors and streams among them.
        options: options of `cute.compile`.

    Raises:
        NoKey: something cannot be described exactly.
    """
    describer = _Describer(module)
    bindings = {name: value for name, value in vars(module).items() if not name.startswith("__")}
    try:
        description = (
            (source, str(module.__file__), options, *_surroundings(options)),
            (describer.describe(function), *map(describer.describe, arguments)),
            tuple((name, describer.describe_global(name, value)) for name, value in bindings.items()),
        )
    except NoKey:
        raise
    except Exception as error:  # another release of the DSL, or a driver that does not answer
        raise NoKey(str(error)) from error
    return hashlib.sha256(repr(description).encode()).hexdigest()


def _surroundings(options: str) -> tuple[str, ...]:
    """Describe the compiler, its settings, the processor that runs the host code, and the GPU."""
    if any(not _OPTIONS.fullmatch(option) for option in re.split(r"[\s=]+", options.strip())):
        raise NoKey(f"the options {options}")
    variables = sorted((name, value) for name, value in os.environ.items() if name.startswith("CUTE_DSL_"))
    if any(_SIDE_OUTPUT.match(name) for name, _ in variables):
        raise NoKey("a variable that has the compiler write more than its result")
    # The DSL read its settings and the architecture when it was imported; the variables may have changed since.
    settings = importlib.import_module("cutlass.cutlass_dsl").CuTeDSL._get_dsl().envar.cache_key_str()
    return (*_installation(), settings, repr(variables), cpu_features(), *_device())


@cache
def _installation() -> tuple[str, ...]:
    """Describe the releases and the compiler: one package brings several, and the driver's version chooses."""
    library = Path(str(importlib.import_module("cutlass._mlir._mlir_libs._cutlass_ir").__file__))
    return (sys.version, *map(version, _PACKAGES), file_stamp(library))


def _device() -> tuple[str, ...]:
    """Describe the driver and the current GPU, whose figures a version may ask for; empty without a GPU."""
    cuda = importlib.import_module("torch").cuda
    if not cuda.is_available():
        return ()
    properties = cuda.get_device_properties(cuda.current_device())
    figures = ("name", "major", "minor", "multi_processor_count", "total_memory")
    driver = importlib.import_module("cutlass.base_dsl.runtime.cuda").get_driver_version()
    return (str(driver), *(str(getattr(properties, name)) for name in figures))


@cache
def _argument_classes() -> tuple[type, ...]:
    """Return classes of the DSL whose instances are described by their attributes."""
    runtime, typing = map(importlib.import_module, ("cutlass.cute.runtime", "cutlass.cute.typing"))
    stream = type(runtime.make_fake_stream())
    return runtime._FakeTensor, typing.TypedTensor, typing.SymInt, stream, typing.Numeric


class _Describer:
    """Describes values; an object that occurs again is described by its number.

    The same symbolic integer in two tensors ties them together, equal ones do not.
    """

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.numbers: dict[int, int] = {}

    def describe(self, value: Any) -> Description:  # noqa: ANN401
        """Describe a value; raises NoKey."""
        kind = type(value)
        if kind in _PLAIN:
            return kind.__name__, repr(value)
        if kind in (tuple, list):
            return kind.__name__, *map(self.describe, value)
        if kind is dict:
            return "dict", *((self.describe(key), self.describe(part)) for key, part in value.items())
        if kind is importlib.import_module("torch").dtype:
            return "dtype", str(value)
        if isinstance(value, Enum):
            return "enum", self.describe_by_name(kind), repr(value.value)
        if id(value) in self.numbers:
            return "same", str(self.numbers[id(value)])
        self.numbers[id(value)] = len(self.numbers)
        if issubclass(kind, _argument_classes()) and kind.__module__.startswith("cutlass."):
            return "instance", self.describe_by_name(kind), self.describe_parts(vars(value))
        return self.describe_by_name(value)

    def describe_by_name(self, value: Any) -> Description:  # noqa: ANN401
        """Describe a module, class or function by the name under which it is found; raises NoKey."""
        if isinstance(value, ModuleType):
            return "module", self.library_name(value.__name__, value)
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if not isinstance(module, str) or not isinstance(name, str):
            raise NoKey(f"a {type(value).__name__}")
        target: Any = self.module if module == self.module.__name__ else sys.modules.get(module)
        library = self.library_name(module, target)
        for part in name.split("."):
            target = getattr(target, part, None)
        if target is not value:
            raise NoKey(f"{name}, which is a function's result, or whose name now means something else")
        return "name", library, name, *(self.describe_own(value) if library == "" else ())

    def describe_own(self, value: Any) -> Description:  # noqa: ANN401
        """Describe what a class or function of the version holds besides its source."""
        if isinstance(value, type):
            members = {name: part for name, part in vars(value).items() if not name.startswith("__")}
            return (self.describe_parts(members),)
        plain = inspect.unwrap(value)
        cells = tuple(cell.cell_contents for cell in plain.__closure__ or ())
        return tuple(map(self.describe, (plain.__defaults__, plain.__kwdefaults__, cells)))

    def describe_global(self, name: str, value: Any) -> Description:  # noqa: ANN401
        """Describe a global; some have no name of their own, as `annotations` of `__future__`; raises NoKey."""
        library = sys.modules.get(type(value).__module__)
        if library is not None and library is not self.module and getattr(library, name, None) is value:
            return "global", self.library_name(library.__name__, library)
        return self.describe(value)

    def library_name(self, name: str, module: ModuleType | None) -> str:
        """Return a library's name, and "" for the version's own module, whose name counts loads; raises NoKey."""
        if module is self.module:
            return ""
        if module is None or sys.modules.get(name) is not module or name.partition(".")[0] not in _LIBRARIES:
            raise NoKey(f"{name}, which is outside of the version's file")
        return name

    def describe_parts(self, values: Mapping[str, Any]) -> Description:
        """Describe named values in their order; raises NoKey."""
        return tuple((name, self.describe(value)) for name, value in values.items())
