"""Triton: one file with `run(...)` and its kernels. On a CPU the interpreter only tells if it is correct."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.core.port.check import KernelLaunch
from warpsmith.languages.base import Build, BuildFailed, Listing, Run, SourcePattern, TraceLanguage
from warpsmith.languages.shared import stamp_table, stamps
from warpsmith.languages.shared.compile_only import CompileOnly, read_listings
from warpsmith.languages.shared.fake_device import AMD_ARCHITECTURES, ARCHITECTURES
from warpsmith.languages.shared.python_file import check_python_file, execute_file, has_cuda_device
from warpsmith.languages.shared.python_source import lint_python, normalise_python
from warpsmith.languages.triton import careful_interpreter, interpreter_fixes, launch_recorder, toolchain_key
from warpsmith.languages.triton.source import triton_template
from warpsmith.packages import install_command

if TYPE_CHECKING:
    import torch


class Triton(CompileOnly):
    """The language `triton`."""

    name = "triton"
    title = "Triton"
    aliases = ("openaitriton",)
    suffix = ".py"
    targets = ("gpu",)
    architectures = ("sm_80+", "gfx942", "gfx950")
    control = "tiles that a compiler maps to threads"
    product = "a Triton kernel"
    fallback = "stay with PyTorch and `torch.compile`"
    preference = 1
    source_patterns = (SourcePattern((".py",), r"^\s*(import|from)\s+triton\b"),)
    packages = ("triton",)
    preloaded = ("triton",)
    notice_entries = MappingProxyType(
        {
            "unaligned": "triton-constexpr-specialisation-of-strides",
            "tf32": "triton-default-tf32-dot",
            "unpipelined": "triton-num-stages-pipelining",
            "float atomics": "triton-atomic-add-nondeterminism",
            "block reductions": "triton-accumulators-per-thread",
            "slow exponentials": "triton-exp2-instead-of-exp",
        }
    )
    compiler = "warpsmith.languages.triton.compile"
    compiled_architectures = (*ARCHITECTURES, *AMD_ARCHITECTURES)
    texts = ("ptx", "sass", "amdgcn")
    trace_language: TraceLanguage = "triton"
    replaces_instructions = True
    _recording = False

    def missing(self, target_kind: str) -> str | None:
        """Say in one sentence what this machine lacks; None: nothing.

        `cpu` is the interpreter: it tells if a kernel is correct, never how fast it is.
        """
        modules = [name for name in ("torch", "triton") if find_spec(name) is None]
        if modules:
            return (
                f"Python's {' and '.join(modules)} cannot be imported: run `{install_command('lab', 'triton')}`."
            )
        if target_kind != "cpu" and not has_cuda_device():
            return "No CUDA device: the kernels can be compiled and interpreted here, not timed."
        return None

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Say why the interpreter's result proves nothing at this workload; None: it does."""
        specs = [*definition.tensor_inputs.values(), *definition.outputs.values()]
        if any(definition.dtype(spec, workload) == "bfloat16" for spec in specs):
            return f"Triton's interpreter computes bfloat16 wrongly: `{workload.name}` needs a GPU to be judged."
        return None

    def template(self, definition: Definition) -> str:
        """Return a starting file for a definition: the signature, and a body to fill in."""
        return triton_template(definition)

    def normalise(self, source: str) -> str:
        """Return the source without comments, docstrings and layout."""
        return normalise_python(source)

    def findings(self, source: str) -> list[str]:
        """List what a reviewer should look at in this source; a tripwire, not the defence."""
        return lint_python(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check syntax and signature; kernels are compiled at their first call.

        Raises:
            BuildFailed: the file does not parse, or `run` does not take the definition's parameters.
        """
        return check_python_file(source, definition)

    def load(self, build: Build, definition: Definition) -> Run:
        """Return the file's `run`, in the worker process only; without a device its kernels are interpreted."""
        if not has_cuda_device() and "triton" not in sys.modules:
            os.environ["TRITON_INTERPRET"] = "1"  # read when triton and the kernels are imported
        if not has_cuda_device():
            interpreter_fixes.patch_interpreter()
        elif build.cache is not None:
            toolchain_key.cache_key_in(build.cache)
        run: Run = execute_file(build.artifact).run
        return careful_interpreter.without_host_reads(run) if self._recording else run

    def prepare_fork(self) -> None:
        """Compute Triton's key of its toolchain, if Triton is imported and compiles."""
        if "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") != "1":
            toolchain_key.compute_key()

    def with_stamps(self, source: str) -> str:
        """Return the file with its stamps turned into code that stores them."""
        return stamps.python_with_stamps(source, "warpsmith.languages.triton.stamp_store", "store_triton_stamp")

    def stamp_rows(self, build: Build) -> torch.Tensor:
        """Return the table of the stamps of all versions here, int64 of (rows, phases, 3); in a worker only."""
        return stamp_table.stamp_table()

    @contextmanager
    def suppress_launches(self) -> Iterator[None]:
        """Make kernel launches do nothing within the context; in the worker process only."""
        from triton.runtime.autotuner import Autotuner, Heuristics
        from triton.runtime.interpreter import InterpretedFunction
        from triton.runtime.jit import JITFunction

        launchers = (JITFunction, InterpretedFunction, Autotuner, Heuristics)
        originals = [launcher.run for launcher in launchers]
        for launcher in launchers:
            launcher.run = lambda *_, **__: None
        try:
            yield
        finally:
            for launcher, run in zip(launchers, originals, strict=True):
                launcher.run = run

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """Return the driver's report of every kernel that was launched; nothing from the interpreter."""
        return tuple(dict.fromkeys(report_kernel(name, kernel) for name, kernel in launched_kernels(run)))

    def uninstalled(self) -> str | None:
        """Say in one sentence what compiling needs and this machine lacks; None: nothing."""
        return self.missing("cpu")

    def port_architectures(self) -> tuple[str, ...]:
        """Return the architectures that it compiles for."""
        return self.compiled_architectures

    def assemble_relaunches(
        self, source: Path, definition: Definition, workloads: Sequence[Workload], arch: str, folder: Path
    ) -> tuple[tuple[Listing, ...], ...]:
        """Compile what these workloads launch as the version says, then with other warps and stages.

        A change at which the compiler stops or runs out of time leaves the earlier ones. Raises as `assembly`.
        """
        folder.mkdir(parents=True, exist_ok=True)
        try:
            self._compile(source, definition, workloads, arch, folder, relaunches=True)
        except BuildFailed:
            if not read_listings(folder):  # the version itself comes first
                raise
        changes = sorted(folder.glob("change-*"))
        return tuple(listings for path in (folder, *changes) if (listings := read_listings(path)))

    def record_launches(self, arch: str) -> None:
        """Record launches from now on, and show host code a device of `arch`; in the worker process only."""
        launch_recorder.record_launches(arch)
        self._recording = True

    def hold_launches(self) -> AbstractContextManager[None]:
        """Record launches within the context and interpret none; in the worker process only."""
        return launch_recorder.held_launches()

    def take_launches(self) -> list[KernelLaunch]:
        """Return the launches since the last call, each once; in the worker process only."""
        return launch_recorder.take_launches()

    def assemble_launches(
        self,
        source: Path,
        definition: Definition,
        launches: Mapping[str, Sequence[KernelLaunch]],
        arch: str,
        folder: Path,
    ) -> tuple[Listing, ...]:
        """Compile recorded launches, by workload, and leave the assembly in `folder`; `run` is not called.

        Raises:
            BuildFailed: a kernel does not compile, or is another one than the interpreter ran.
            MachineLacks: a tool is missing.
        """
        recorded = {name: [launch.model_dump() for launch in each] for name, each in launches.items()}
        folder.mkdir(parents=True, exist_ok=True)
        self._compile(source, definition, (), arch, folder, launches=recorded)
        return read_listings(folder)

    def environment(self, folder: Path, arch: str) -> dict[str, str]:
        """Return the environment variables of the compiling process."""
        return {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(folder / "cache")}


LANGUAGE = Triton()


def launch_knobs(metadata: Any) -> str:  # noqa: ANN401 - triton publishes no types
    """Format the launch options in a compiled kernel's metadata: `num_warps 4, num_stages 3`."""
    knobs = ("num_warps", "num_stages", "num_ctas", "occupancy")
    return ", ".join(f"{knob} {getattr(metadata, knob)}" for knob in knobs if hasattr(metadata, knob))


def jit_functions(module: dict[str, Any]) -> Iterator[Any]:
    """Yield the jitted functions among a module's globals, out of their wrappers."""
    for value in list(module.values()):
        inner = value
        while inner is not None and not hasattr(inner, "device_caches"):
            inner = getattr(inner, "fn", None)
        if inner is not None:
            yield inner


def launched_kernels(run: Run) -> Iterator[tuple[str, Any]]:
    """Yield name and compiled kernel of every launch of a version's kernels in this process."""
    for function in jit_functions(getattr(run, "__globals__", {})):
        yield from ((function.__name__, kernel) for kernel in _loaded_kernels(function))


def _loaded_kernels(function: Any) -> Iterator[Any]:  # noqa: ANN401 - triton publishes no types
    """Yield its loaded kernels; every release keeps them first in a device's entry."""
    for entry in dict(function.device_caches).values():
        cache = entry[0] if isinstance(entry, tuple) else entry
        if isinstance(cache, dict):
            yield from (kernel for kernel in cache.values() if getattr(kernel, "n_regs", None) is not None)


def report_kernel(name: str, kernel: Any) -> Resources:  # noqa: ANN401
    """Return the driver's report of one compiled kernel, with its launch options."""
    metadata = kernel.metadata
    spills = getattr(kernel, "n_spills", None)
    return Resources(
        kernel=name,
        registers=kernel.n_regs,
        shared_bytes=getattr(metadata, "shared", None),
        spill_bytes=None if spills is None else 4 * spills,  # the driver counts local memory in words
        notes=(launch_knobs(metadata),),
    )
