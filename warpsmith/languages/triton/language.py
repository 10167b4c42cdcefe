"""Triton: one file with `run(...)` and its kernels. On a CPU the interpreter says only whether it is right."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from warpsmith.core.definition import Definition, Workload
from warpsmith.core.evaluation import Resources
from warpsmith.languages.base import Build, Language, Run
from warpsmith.languages.shared import python_file
from warpsmith.languages.shared.compile_only import CompileOnly
from warpsmith.languages.shared.python_file import has_device
from warpsmith.languages.triton import interpret as triton_interpret
from warpsmith.languages.triton import key as triton_key
from warpsmith.languages.triton import source as triton_source

ARCHITECTURES = {"sm_80": 80, "sm_89": 89, "sm_90a": 90, "sm_100": 100}
"""What `inspect` compiles for, with the compute capability times ten."""


class Triton(CompileOnly):
    """The language `triton`."""

    name = "triton"
    suffix = ".py"
    targets: tuple[str, ...] = ("gpu",)
    kernels_are = "Triton kernels are"
    compiler = "warpsmith.languages.triton.compile"
    architectures = ARCHITECTURES

    def missing(self, target_kind: str) -> str | None:
        """What this machine lacks, in one sentence; None: ready.

        `cpu` is the interpreter: it tells whether a kernel is right, never how fast it is.
        """
        lacking = [name for name in ("torch", "triton") if find_spec(name) is None]
        if lacking:
            return f"Python's {' and '.join(lacking)} cannot be imported: pip install 'warpsmith[lab,triton]'."
        if target_kind != "cpu" and not has_device():
            return "No CUDA device: the kernels can be compiled and interpreted here, not timed."
        return None

    def distrust(self, definition: Definition, workload: Workload) -> str | None:
        """Why the interpreter's result says nothing at this workload; None: it does."""
        specs = [*definition.tensor_inputs.values(), *definition.outputs.values()]
        if any(definition.dtype(spec, workload) == "bfloat16" for spec in specs):
            return f"Triton's interpreter computes bfloat16 wrongly: `{workload.name}` needs a GPU to be judged."
        return None

    def template(self, definition: Definition) -> str:
        """A starting file for a definition: the signature, and a body to fill in."""
        return triton_source.template(definition)

    def normalise(self, source: str) -> str:
        """The source without comments, docstrings and layout."""
        return triton_source.normalise(source)

    def findings(self, source: str) -> list[str]:
        """What deserves a look in this source; a tripwire, not the defence."""
        return triton_source.findings(source)

    def build(self, source: Path, definition: Definition, folder: Path) -> Build:
        """Check syntax and signature; kernels are compiled at their first call.

        Raises:
            BuildFailed: the file does not parse, or `run` does not take the definition's parameters.
        """
        return python_file.check(source, definition)

    def load(self, build: Build, definition: Definition) -> Run:
        """The file's `run`, in the worker process only; without a device its kernels are interpreted."""
        if not has_device() and "triton" not in sys.modules:
            os.environ["TRITON_INTERPRET"] = "1"  # read when triton and the kernels are imported
        if not has_device():
            triton_interpret.mend()
        elif build.kept is not None:
            triton_key.remember(build.kept)
        run: Run = python_file.execute(build.artifact).run
        return run

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """While it is entered, launches of kernels do nothing; in the worker process only."""
        from triton.runtime.autotuner import Autotuner, Heuristics
        from triton.runtime.interpreter import InterpretedFunction
        from triton.runtime.jit import JITFunction

        launchers = (JITFunction, InterpretedFunction, Autotuner, Heuristics)
        real = [launcher.run for launcher in launchers]
        for launcher in launchers:
            launcher.run = lambda *_, **__: None
        try:
            yield
        finally:
            for launcher, run in zip(launchers, real, strict=True):
                launcher.run = run

    def resources(self, run: Run) -> tuple[Resources, ...]:
        """What the driver says of every kernel that was launched; nothing from the interpreter."""
        functions = _functions(getattr(run, "__globals__", {}))
        found = (_launched(function.__name__, kernel) for function in functions for kernel in _kernels(function))
        return tuple(dict.fromkeys(found))

    def uninstalled(self) -> str | None:
        """What compiling needs and this machine lacks, in one sentence; None: nothing."""
        return self.missing("cpu")

    def environment(self, folder: Path, arch: str) -> dict[str, str]:
        """Variables of the child."""
        return {"TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(folder / "cache")}


LANGUAGE: Language = Triton()


def launch_note(metadata: Any) -> str:  # noqa: ANN401 - triton publishes no types
    """The launch's knobs, from a compiled kernel's metadata."""
    knobs = ("num_warps", "num_stages", "num_ctas")
    return ", ".join(f"{knob} {getattr(metadata, knob)}" for knob in knobs if hasattr(metadata, knob))


def _functions(names: dict[str, Any]) -> Iterator[Any]:
    """The jitted functions among a module's globals, out of their wrappers."""
    for value in list(names.values()):
        inner = value
        while inner is not None and not hasattr(inner, "device_caches"):
            inner = getattr(inner, "fn", None)
        if inner is not None:
            yield inner


def _kernels(function: Any) -> Iterator[Any]:  # noqa: ANN401 - triton publishes no types
    """Its kernels that were loaded; every release keeps them first in a device's entry."""
    for entry in dict(function.device_caches).values():
        cache = entry[0] if isinstance(entry, tuple) else entry
        if isinstance(cache, dict):
            yield from (kernel for kernel in cache.values() if getattr(kernel, "n_regs", None) is not None)


def _launched(name: str, kernel: Any) -> Resources:  # noqa: ANN401
    metadata = kernel.metadata
    spills = getattr(kernel, "n_spills", None)
    return Resources(
        kernel=name,
        registers=kernel.n_regs,
        shared_bytes=getattr(metadata, "shared", None),
        spill_bytes=None if spills is None else 4 * spills,  # the driver's local memory, counted in words
        notes=(launch_note(metadata),),
    )
