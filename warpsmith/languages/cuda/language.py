"""CUDA C++: one Python file whose strings hold the kernels; NVRTC compiles them, cuda.core launches them."""

from __future__ import annotations

import ast
import gc
import hashlib
import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import _lru_cache_wrapper, partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from warpsmith import files
from warpsmith.core.definition import Definition
from warpsmith.core.evaluation import Resources
from warpsmith.languages.base import Build, Run, SourcePattern
from warpsmith.languages.cuda import program_cache
from warpsmith.languages.cuda import source as cuda_source
from warpsmith.languages.shared import kernel_strings, stamp_table, stamps
from warpsmith.languages.shared.compile_only import CompileOnly
from warpsmith.languages.shared.disassembly import missing_triton
from warpsmith.languages.shared.python_file import check_python_file, execute_file, has_cuda_device
from warpsmith.packages import install_command
from warpsmith.temporary import TemporaryFolder

if TYPE_CHECKING:
    import torch

_HEADERS = {"cudart": "nvidia-cuda-runtime", "cccl": "nvidia-cuda-cccl"}
"""NVIDIA's name of a folder of headers, and the package that brings it: `cuda_bf16.h` and the like, and CCCL's
`cuda/ptx` and `cub`, which `cooperative_groups.h` needs too."""
_NOT_HIP = r"\A(?![\s\S]*#\s*include\s*<hip/)"
"""Beginning of a text without HIP's headers."""
_CONTAINERS = (dict, list, tuple, set, _lru_cache_wrapper)


class Cuda(CompileOnly):
    """The language `cuda`."""

    name = "cuda"
    title = "CUDA C++"
    aliases = ("cudacpp",)
    suffix = ".py"
    targets = ("gpu",)
    architectures = ("sm_80+",)
    control = "inline PTX, barriers and shared memory by hand"
    product = "a CUDA C++ kernel"
    source_patterns = (
        SourcePattern((".cu", ".cuh")),
        SourcePattern((".cpp", ".cc", ".cxx", ".c", ".h", ".hpp"), rf"{_NOT_HIP}[\s\S]*\b__global__\b"),
        SourcePattern((".py",), r"^\s*(import|from)\s+cuda\.core\b"),
    )
    packages = ("cuda-bindings", "cuda-core", "nvidia-cuda-nvrtc")
    compiler = "warpsmith.languages.cuda.compile"
    texts = ("sass",)

    def missing(self, target_kind: str) -> str | None:
        """Say in one sentence what this machine lacks; None: nothing."""
        if lack := missing_compiler():
            return lack
        if target_kind == "cpu":
            return "CUDA C++ has no interpreter: its versions are compiled anywhere, and judged on a GPU only."
        if not has_cuda_device():
            return "No CUDA device: the kernels can be compiled here, not run."
        return None

    def template(self, definition: Definition) -> str:
        """Return a starting file for a definition: a kernel, the code that compiles it, and a `run` to fill in."""
        return cuda_source.cuda_template(definition)

    def normalise(self, source: str) -> str:
        """Return the source without docstrings, layout and comments, those of the kernels included."""
        return kernel_strings.normalise_kernels(source)

    def findings(self, source: str) -> list[str]:
        """List what a reviewer should look at in this source; a tripwire, not the defence."""
        return cuda_source.lint_cuda(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check the signature, and the syntax of programs that can be read without running the file.

        The kernels are compiled when the file runs. A file whose syntax was checked is not checked again.

        Raises:
            BuildFailed: the file or a program does not parse, or `run` does not take the definition's parameters.
        """
        build = check_python_file(source, definition)
        text = source.read_bytes()
        checked = folder / f"{hashlib.sha256(text).hexdigest()}.cuda"
        if not checked.exists() and cuda_source.static_programs(ast.parse(text)) and not missing_compiler():
            with TemporaryFolder() as temporary:
                self.run_child(source, {"syntax": True}, Path(temporary), "does not compile")
            with suppress(OSError):  # a folder that is read-only costs the check again
                files.write_file(checked, b"")
        return build

    def load(self, build: Build, definition: Definition) -> Run:
        """Return the file's `run`, in the worker process only; NVRTC's messages name lines of the file."""
        core: Any = importlib.import_module("cuda.core")
        path, original = build.artifact, core.Program
        add_lines = partial(kernel_strings.with_line_numbers, source=path.read_text(), file=path.name)
        add_stamps = self._add_stamps

        class CachedProgram(original):  # type: ignore[misc, valid-type]
            def __init__(self, code: Any, code_type: str, options: Any = None) -> None:  # noqa: ANN401
                self.arguments = add_stamps(add_lines(code)) if code_type == "c++" else code, options
                self.folder = build.cache if code_type == "c++" and options is not None else None
                super().__init__(self.arguments[0], code_type, options)

            def compile(self, target_type: str, name_expressions: Any = (), **more: Any) -> Any:  # noqa: ANN401
                compile_ = partial(super().compile, target_type, name_expressions, **more)
                if self.folder is None or target_type != "cubin" or more:
                    return compile_()
                return program_cache.compile_cached(self.folder, *self.arguments, name_expressions, compile_)

        core.Program = CachedProgram
        try:
            run: Run = execute_file(path).run
        finally:
            core.Program = original
        return run

    def with_stamps(self, source: str) -> str:
        """Return the file with its stamps turned into code that stores them."""
        return stamps.numbered_stamps(source)

    def stamp_rows(self, build: Build) -> torch.Tensor:
        """Return the table of the stamps of all versions here, int64 of (rows, phases, 3); in a worker only."""
        return stamp_table.stamp_table()

    def _add_stamps(self, code: str) -> str:
        """Put the prelude before a program that stores stamps; its address is fixed when it is compiled."""
        if not stamps.stores_stamps(code):
            return code
        return stamps.cuda_prelude(stamp_table.stamp_table().data_ptr()) + code

    @contextmanager
    def suppress_launches(self) -> Iterator[None]:
        """Make kernel launches do nothing within the context; in the worker process only."""
        from unittest.mock import patch  # slow to import, and users' processes do without it

        core, driver = importlib.import_module("cuda.core"), importlib.import_module("cuda.bindings.driver")
        success = (driver.CUresult.CUDA_SUCCESS,)
        replacements = {core.launch: lambda *_, **__: None}
        replacements |= {driver.cuLaunchKernel: lambda *_: success, driver.cuLaunchKernelEx: lambda *_: success}
        versions = [module for name, module in sys.modules.items() if name.startswith("warpsmith_solution_")]
        with ExitStack() as stack:
            for module in (core, driver, *versions):
                for name, value in list(vars(module).items()):
                    stand_in = next((new for launch, new in replacements.items() if value is launch), None)
                    if stand_in is not None:
                        stack.enter_context(patch.object(module, name, stand_in))
            yield

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """Return the driver's report of every kernel that the file's globals hold."""
        reports = map(_report, _kernels(getattr(run, "__globals__", {})))
        return tuple(dict.fromkeys(reports))

    def uninstalled(self) -> str | None:
        """Say in one sentence what compiling and disassembling need and this machine lacks; None: nothing."""
        return missing_triton() or missing_compiler()

    def environment(self, folder: Path, arch: str) -> dict[str, str]:
        """Return the environment variables of the compiling process."""
        return {"TMPDIR": str(folder)}

    def error_lines(self, output: list[str]) -> list[str]:
        """Select all lines: NVRTC's first error is the one to read."""
        return output


LANGUAGE = Cuda()


def header_folders() -> dict[str, Path | None]:
    """Return the folders of NVIDIA's headers, by NVIDIA's name for each; None for a folder that is not found."""
    find = importlib.import_module("cuda.pathfinder").find_nvidia_header_directory
    paths = {name: find(name) for name in _HEADERS}
    return {name: Path(path) if path else None for name, path in paths.items()}


def describe_headers() -> str:
    """Say where each folder of headers is, or which package brings it; only some versions need CCCL's."""
    return ", ".join(
        f"{name} in {path}" if path else f"{name} nowhere (pip install {_HEADERS[name]})"
        for name, path in header_folders().items()
    )


def short_name(name: str) -> str:
    """Return a kernel's name, mangled or not, without namespaces and template arguments: `softmax`."""
    plain = name.partition("<")[0].rpartition("::")[2]
    if not plain.startswith("_Z"):
        return plain
    prefix = re.match(r"_ZN?", plain)
    rest, last = plain[prefix.end() :] if prefix else plain, plain
    while length := re.match(r"(\d+)", rest):
        end = length.end() + int(length[1])
        last, rest = rest[length.end() : end], rest[end:]
    return last


def missing_compiler() -> str | None:
    """Say in one sentence what compiling CUDA C++ needs and this machine lacks; None: nothing."""
    packages = {"torch": "torch", "cuda.core": "cuda"}
    modules = [name for name, parent in packages.items() if not (find_spec(parent) and find_spec(name))]
    if modules:
        return f"Python's {' and '.join(modules)} cannot be imported: run `{install_command('lab', 'cuda')}`."
    if header_folders()["cudart"] is None:
        return f"NVIDIA's headers are missing: {describe_headers()}, or set CUDA_HOME to a toolkit."
    return None


def _kernels(module: dict[str, Any]) -> Iterator[Any]:
    """Yield the kernels that a module's globals hold, also in containers and in caches of `functools`."""
    kernel = importlib.import_module("cuda.core").Kernel
    visited, left = set[int](), list[Any](module.values())
    while left:
        value = left.pop()
        if id(value) in visited or isinstance(value, ModuleType):
            continue
        visited.add(id(value))
        if isinstance(value, kernel):
            yield value
        elif isinstance(value, _CONTAINERS):
            left.extend(gc.get_referents(value))


def _report(kernel: Any) -> Resources:  # noqa: ANN401 - an extension type
    driver = importlib.import_module("cuda.bindings.driver")
    status, name = driver.cuKernelGetName(kernel.handle)

    def attribute(name: str) -> int:
        value = getattr(kernel.attributes, name)
        return int(value() if callable(value) else value)  # methods before cuda.core 1.0

    return Resources(
        kernel=short_name(name.decode()) if int(status) == 0 else "kernel",
        registers=attribute("num_regs"),
        shared_bytes=attribute("shared_size_bytes"),
        spill_bytes=attribute("local_size_bytes"),
        notes=(f"threads a block at most {attribute('max_threads_per_block')}",),
    )
