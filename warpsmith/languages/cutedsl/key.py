"""What decides what CuTe DSL compiles, as one digest, by which a process finds what an earlier one compiled.

Values are told by their type and content; what cannot be told exactly has no key.
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

from warpsmith.languages.cpp import language as cpp
from warpsmith.languages.cuda.kept import stamp

_PLAIN = (NoneType, bool, int, float, str, bytes)
_LIBRARIES = sys.stdlib_module_names | {"cutlass", "torch"}
_PACKAGES = ("nvidia-cutlass-dsl", "apache-tvm-ffi", "torch")
_OPTIONS = re.compile(r"--(enable-tvm-ffi|opt-level|gpu-arch|generate-line-info|enable-assertions)|\d|sm_\w+")
_LOOKED_AT = re.compile(r"^CUTE_DSL_.*(KEEP|DUMP|PRINT|DRYRUN|LOG|COMPILER_OPT)")
"""Variables of somebody who looks at the compiler: it has to run for them."""


class Untold(Exception):
    """Something that may decide what is compiled cannot be told exactly."""


def make(source: str, module: ModuleType, function: Any, arguments: tuple[Any, ...], options: str) -> str:  # noqa: ANN401
    """The key, in hexadecimal.

    Args:
        source: digest of the file that `module` was executed from.
        module: whose globals the function can see.
        function: what `cute.jit` made of a function at the file's top level.
        arguments: what it is compiled for, fake tensors and streams among them.
        options: of `cute.compile`.

    Raises:
        Untold: there is none.
    """
    teller = _Teller(module)
    seen = {name: value for name, value in vars(module).items() if not name.startswith("__")}
    try:
        told = (
            (source, str(module.__file__), options, *_surroundings(options)),
            (teller.told(function), *map(teller.told, arguments)),
            tuple((name, teller.bound(name, value)) for name, value in seen.items()),
        )
    except Untold:
        raise
    except Exception as error:  # of another release of the DSL, of a driver that does not answer
        raise Untold(str(error)) from error
    return hashlib.sha256(repr(told).encode()).hexdigest()


def _surroundings(options: str) -> tuple[str, ...]:
    """The compiler, its settings, the processor that the host's part is for, and the GPU."""
    if any(not _OPTIONS.fullmatch(option) for option in re.split(r"[\s=]+", options.strip())):
        raise Untold(f"the options {options}")
    variables = sorted((name, value) for name, value in os.environ.items() if name.startswith("CUTE_DSL_"))
    if any(_LOOKED_AT.match(name) for name, _ in variables):
        raise Untold("a variable that has the compiler write more than its result")
    # What the DSL read when it was imported, with the architecture, need not be what the variables are now.
    settings = importlib.import_module("cutlass.cutlass_dsl").CuTeDSL._get_dsl().envar.cache_key_str()
    return (*_installed(), settings, repr(variables), cpp.cpu(), *_device())


@cache
def _installed() -> tuple[str, ...]:
    """Releases, and the compiler itself: one package brings several, of which the driver's version chooses."""
    library = Path(str(importlib.import_module("cutlass._mlir._mlir_libs._cutlass_ir").__file__))
    return (sys.version, *map(version, _PACKAGES), stamp(library))


def _device() -> tuple[str, ...]:
    """The driver and the current GPU, of which a version may ask for more than its architecture; nothing where
    there is none."""
    cuda = importlib.import_module("torch").cuda
    if not cuda.is_available():
        return ()
    known = cuda.get_device_properties(cuda.current_device())
    asked = ("name", "major", "minor", "multi_processor_count", "total_memory")
    driver = importlib.import_module("cutlass.base_dsl.runtime.cuda").get_driver_version()
    return (str(driver), *(str(getattr(known, name)) for name in asked))


@cache
def _made_of() -> tuple[type, ...]:
    """What arguments are made of: classes of the DSL whose instances are what their attributes are."""
    runtime, typing = map(importlib.import_module, ("cutlass.cute.runtime", "cutlass.cute.typing"))
    stream = type(runtime.make_fake_stream())
    return runtime._FakeTensor, typing.TypedTensor, typing.SymInt, stream, typing.Numeric


class _Teller:
    """Tells values as nested tuples of strings, and an object that comes again by its number.

    The same symbolic integer in two tensors ties them, equal ones do not.
    """

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.numbers: dict[int, int] = {}

    def told(self, value: Any) -> tuple[Any, ...]:  # noqa: ANN401
        """Raises Untold."""
        kind = type(value)
        if kind in _PLAIN:
            return kind.__name__, repr(value)
        if kind in (tuple, list):
            return kind.__name__, *map(self.told, value)
        if kind is dict:
            return "dict", *((self.told(key), self.told(part)) for key, part in value.items())
        if kind is importlib.import_module("torch").dtype:
            return "dtype", str(value)
        if isinstance(value, Enum):
            return "enum", self.named(kind), repr(value.value)
        if id(value) in self.numbers:
            return "same", str(self.numbers[id(value)])
        self.numbers[id(value)] = len(self.numbers)
        if issubclass(kind, _made_of()) and kind.__module__.startswith("cutlass."):
            return "made", self.named(kind), self.parts(vars(value))
        return self.named(value)

    def named(self, value: Any) -> tuple[Any, ...]:  # noqa: ANN401
        """A module, class or function by the name under which it is found; raises Untold."""
        if isinstance(value, ModuleType):
            return "module", self.home(value.__name__, value)
        module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if not isinstance(module, str) or not isinstance(name, str):
            raise Untold(f"a {type(value).__name__}")
        found: Any = self.module if module == self.module.__name__ else sys.modules.get(module)
        home = self.home(module, found)
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is not value:
            raise Untold(f"{name}, made by a function or of a name that became another's")
        return "named", home, name, *(self.own(value) if home == "" else ())

    def own(self, value: Any) -> tuple[Any, ...]:  # noqa: ANN401
        """What a class or function of the version holds beside what its file says."""
        if isinstance(value, type):
            return (self.parts({name: part for name, part in vars(value).items() if not name.startswith("__")}),)
        plain = inspect.unwrap(value)
        cells = tuple(cell.cell_contents for cell in plain.__closure__ or ())
        return tuple(map(self.told, (plain.__defaults__, plain.__kwdefaults__, cells)))

    def bound(self, name: str, value: Any) -> tuple[Any, ...]:  # noqa: ANN401
        """A global, some of which have no name of their own: `annotations` of `__future__`; raises Untold."""
        library = sys.modules.get(type(value).__module__)
        if library is not None and library is not self.module and getattr(library, name, None) is value:
            return "bound", self.home(library.__name__, library)
        return self.told(value)

    def home(self, name: str, module: ModuleType | None) -> str:
        """A library's name; nothing for the version's own module, whose name counts loads; raises Untold."""
        if module is self.module:
            return ""
        if module is None or sys.modules.get(name) is not module or name.partition(".")[0] not in _LIBRARIES:
            raise Untold(f"{name}, which the version's file does not say")
        return name

    def parts(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        """Raises Untold."""
        return tuple((name, self.told(value)) for name, value in values.items())
