"""CUDA C++: one Python file whose strings hold the kernels; NVRTC compiles them, cuda.core launches them."""

from __future__ import annotations

import ast
import gc
import hashlib
import importlib
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import _lru_cache_wrapper, partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import patch

from warpsmith import files
from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.languages.base import Build, Language, Run
from warpsmith.languages.cuda import kept as cuda_kept
from warpsmith.languages.cuda import source as cuda_source
from warpsmith.languages.shared import python_file
from warpsmith.languages.shared.compile_only import CompileOnly
from warpsmith.languages.shared.python_file import has_device
from warpsmith.languages.triton.language import ARCHITECTURES

_HEADERS = {"cudart": "nvidia-cuda-runtime", "cccl": "nvidia-cuda-cccl"}
"""NVIDIA's name of a folder of headers, and the package that brings it: `cuda_bf16.h` and its like; CCCL's
`cuda/ptx` and `cub`, which `cooperative_groups.h` needs too."""
_CONTAINERS = (dict, list, tuple, set, _lru_cache_wrapper)


class Cuda(CompileOnly):
    """The language `cuda`."""

    name = "cuda"
    suffix = ".py"
    targets: tuple[str, ...] = ("gpu",)
    kernels_are = "CUDA C++ is"
    compiler = "warpsmith.languages.cuda.compile"
    architectures = ARCHITECTURES
    texts = ("sass",)

    def missing(self, target_kind: str) -> str | None:
        """What this machine lacks, in one sentence; None: ready."""
        if lacks := _lacking():
            return lacks
        if target_kind == "cpu":
            return "CUDA C++ has no interpreter: its versions are compiled anywhere, and judged on a GPU only."
        if not has_device():
            return "No CUDA device: the kernels can be compiled here, not run."
        return None

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """None: what runs is the compiled code itself."""
        return None

    def template(self, definition: Definition) -> str:
        """A starting file for a definition: a kernel, how it is compiled, and a `run` to fill in."""
        return cuda_source.template(definition)

    def normalise(self, source: str) -> str:
        """The source without docstrings, layout and comments, those of the kernels included."""
        return cuda_source.normalise(source)

    def findings(self, source: str) -> list[str]:
        """What deserves a look in this source; a tripwire, not the defence."""
        return cuda_source.findings(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check the signature, and the syntax of programs that stand in the file; the rest compiles when it runs.

        Raises:
            BuildFailed: the file or a program does not parse, or `run` does not take the definition's parameters.
        """
        built = python_file.check(source, definition)
        text = source.read_bytes()
        checked = folder / f"{hashlib.sha256(text).hexdigest()}.cuda"
        if not checked.exists() and cuda_source.static_programs(ast.parse(text)) and not _lacking():
            with tempfile.TemporaryDirectory(prefix="warpsmith-") as temporary:
                self.child(source, {"syntax": True}, Path(temporary), "does not compile")
            with suppress(OSError):  # a user's first call does not wait for it again
                files.write(checked, b"")
        return built

    def load(self, build: Build, definition: Definition) -> Run:
        """The file's `run`, in the worker process only; NVRTC's messages name lines of the file."""
        core = importlib.import_module("cuda.core")
        path, real = build.artifact, core.Program
        place = partial(cuda_source.placed, source=path.read_text(), file=path.name)

        class Program(real):  # type: ignore[misc, valid-type]
            def __init__(self, code: Any, code_type: str, options: Any = None) -> None:  # noqa: ANN401
                self.given = place(code) if code_type == "c++" else code, options
                self.folder = build.kept if code_type == "c++" and options is not None else None
                super().__init__(self.given[0], code_type, options)

            def compile(self, target_type: str, name_expressions: Any = (), **more: Any) -> Any:  # noqa: ANN401
                compile_ = partial(super().compile, target_type, name_expressions, **more)
                if self.folder is None or target_type != "cubin" or more:
                    return compile_()
                return cuda_kept.compiled(self.folder, *self.given, name_expressions, compile_)

        with patch.object(core, "Program", Program):
            run: Run = python_file.execute(path).run
        return run

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """While it is entered, launches of kernels do nothing; in the worker process only."""
        core, driver = importlib.import_module("cuda.core"), importlib.import_module("cuda.bindings.driver")
        fine = (driver.CUresult.CUDA_SUCCESS,)
        nothing = {core.launch: lambda *_, **__: None}
        nothing |= {driver.cuLaunchKernel: lambda *_: fine, driver.cuLaunchKernelEx: lambda *_: fine}
        solutions = [module for name, module in sys.modules.items() if name.startswith("warpsmith_solution_")]
        with ExitStack() as stack:
            for module in (core, driver, *solutions):
                for name, value in list(vars(module).items()):
                    held = next((held for real, held in nothing.items() if value is real), None)
                    if held is not None:
                        stack.enter_context(patch.object(module, name, held))
            yield

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """What the driver says of every kernel that the file keeps."""
        found = map(_loaded, _kernels(getattr(run, "__globals__", {})))
        return tuple(dict.fromkeys(found))

    def uninstalled(self) -> str | None:
        """What compiling and reading what was made need and this machine lacks, in one sentence; None: nothing."""
        if find_spec("triton") is None:
            return "The disassemblers come with Triton, which is missing: pip install 'warpsmith[triton]'."
        return _lacking()

    def environment(self, folder: Path, arch: str) -> dict[str, str]:
        """Variables of the child."""
        return {"TMPDIR": str(folder)}

    def telling(self, said: list[str]) -> list[str]:
        """All of it: NVRTC's first error is the one to read."""
        return said


LANGUAGE: Language = Cuda()


def headers() -> dict[str, Path | None]:
    """Where NVIDIA's headers are, by NVIDIA's name for each folder; None: nowhere."""
    find = importlib.import_module("cuda.pathfinder").find_nvidia_header_directory
    found = {name: find(name) for name in _HEADERS}
    return {name: Path(path) if path else None for name, path in found.items()}


def told_headers() -> str:
    """Which headers are where, and how to get the others; those of CCCL are needed by some versions only."""
    return ", ".join(
        f"{name} in {path}" if path else f"{name} nowhere (pip install {_HEADERS[name]})"
        for name, path in headers().items()
    )


def short_name(name: str) -> str:
    """A kernel's name without namespaces and template arguments, mangled or not: `softmax`."""
    plain = name.partition("<")[0].rpartition("::")[2]
    if not plain.startswith("_Z"):
        return plain
    at = re.match(r"_ZN?", plain)
    rest, last = plain[at.end() :] if at else plain, plain
    while found := re.match(r"(\d+)", rest):
        end = found.end() + int(found[1])
        last, rest = rest[found.end() : end], rest[end:]
    return last


def _lacking() -> str | None:
    """What stands against compiling here, in one sentence."""
    packages = {"torch": "torch", "cuda.core": "cuda"}
    lacking = [name for name, parent in packages.items() if not (find_spec(parent) and find_spec(name))]
    if lacking:
        return f"Python's {' and '.join(lacking)} cannot be imported: pip install 'warpsmith[lab,cuda]'."
    if headers()["cudart"] is None:
        return f"NVIDIA's headers are missing: {told_headers()}, or set CUDA_HOME to a toolkit."
    return None


def _kernels(names: dict[str, Any]) -> Iterator[Any]:
    """The kernels that a module's globals hold, in containers and in what `functools.cache` keeps."""
    kernel = importlib.import_module("cuda.core").Kernel
    seen, left = set[int](), list[Any](names.values())
    while left:
        value = left.pop()
        if id(value) in seen or isinstance(value, ModuleType):
            continue
        seen.add(id(value))
        if isinstance(value, kernel):
            yield value
        elif isinstance(value, _CONTAINERS):
            left.extend(gc.get_referents(value))


def _loaded(kernel: Any) -> Resources:  # noqa: ANN401 - an extension type
    driver = importlib.import_module("cuda.bindings.driver")
    status, name = driver.cuKernelGetName(kernel.handle)

    def told(attribute: str) -> int:
        value = getattr(kernel.attributes, attribute)
        return int(value() if callable(value) else value)  # methods before cuda.core 1.0

    return Resources(
        kernel=short_name(name.decode()) if int(status) == 0 else "kernel",
        registers=told("num_regs"),
        shared_bytes=told("shared_size_bytes"),
        spill_bytes=told("local_size_bytes"),
        notes=(f"threads a block at most {told('max_threads_per_block')}",),
    )
