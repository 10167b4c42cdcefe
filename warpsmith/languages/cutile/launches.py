"""Control over the launches of this process: they can be suppressed, and what they need can be compiled ahead."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warpsmith.core.evaluation import Resources
from warpsmith.languages.cutile import cubin as cutile_cubin
from warpsmith.languages.cutile import kernel_store
from warpsmith.languages.shared import disassembly
from warpsmith.temporary import TemporaryFolder

_REPORT_THREADS = 16

Compilation = tuple[Any, tuple[Any, ...], dict[str, Any]]
"""A kernel, and the other arguments of its compilation."""


class _NotCompiledYet(Exception):
    """A launch that needs a kernel which is compiled later."""


class LaunchControl:
    """Control over this process's kernels: a switch that suppresses launches, and what was compiled."""

    def __init__(self) -> None:
        self.suppressed = False
        self.compiled: list[tuple[Any, bytes]] = []
        self._postponed: dict[tuple[int, str], Compilation] | None = None
        self._compile: Callable[..., Any]
        self._reports: dict[tuple[int, bytes], Resources] = {}
        self._installed = False

    def install(self) -> None:
        """Route every `ct.launch` of this process through here; a second call changes nothing."""
        if self._installed:
            return
        tile: Any = importlib.import_module("cuda.tile")
        launch, self._compile = tile.launch, tile.kernel._compile

        def launch_unless_suppressed(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - cuTile's own arguments
            if self.suppressed:
                return
            with contextlib.suppress(_NotCompiledYet):
                launch(*args, **kwargs)

        def compile_and_record(kernel: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
            if self._postponed is not None:
                self._postponed[id(kernel), _symbol(kernel, args[0])] = kernel, args, kwargs
                raise _NotCompiledYet
            result = self._compile(kernel, *args, **kwargs)
            self.compiled.append((kernel, result[0]))
            return result

        tile.launch, tile.kernel._compile = launch_unless_suppressed, compile_and_record
        self._installed = True

    def compile_ahead(self, calls: Iterable[Callable[[], object]], threads: int) -> int:
        """Compile what the calls would launch, in that many threads at once, and launch none of it; return the
        number of kernels.

        A call that fails is left to the check that makes it, and so is a kernel that does not compile.
        """
        self._postponed = {}
        try:
            for call in calls:
                with contextlib.suppress(Exception):
                    call()
            compilations = list(self._postponed.values())
        finally:
            self._postponed = None
        with _unlocked_compiler(), ThreadPoolExecutor(max(threads, 1)) as pool:
            return sum(pool.map(self._compile_and_report, compilations))

    def reports(self) -> tuple[Resources, ...]:
        """Return the report of every compiled kernel; nothing if the disassemblers are missing."""
        if not self.compiled or disassembly.missing_disassembler():
            return ()
        new = {(id(kernel), cubin): kernel for kernel, cubin in self.compiled}
        new = {key: kernel for key, kernel in new.items() if key not in self._reports}
        with ThreadPoolExecutor(_REPORT_THREADS) as pool:
            reports = pool.map(lambda item: _report(item[1], item[0][1]), new.items())
            self._reports |= dict(zip(new, reports, strict=True))
        return tuple(dict.fromkeys(self._reports[id(kernel), cubin] for kernel, cubin in self.compiled))

    def _compile_and_report(self, compilation: Compilation) -> bool:
        kernel, args, kwargs = compilation
        with contextlib.suppress(Exception):
            cubin = self._compile(kernel, *args, **kwargs)[0]
            if not disassembly.missing_disassembler():
                _report(kernel, cubin)
            return True
        return False


def compiler_hints(kernel: Any) -> str:  # noqa: ANN401 - cuTile publishes no types
    """Format a kernel's hints to the compiler: `num_worker_warps auto, occupancy 2, num_ctas auto`."""
    options = kernel._compiler_options
    hints = {name: getattr(options, name) for name in ("num_worker_warps", "occupancy", "num_ctas")}
    return ", ".join(f"{name} {'auto' if value is None else value}" for name, value in hints.items())


def _report(kernel: Any, cubin: bytes) -> Resources:  # noqa: ANN401
    name, hints = kernel._pyfunc.__name__, compiler_hints(kernel)

    def make_report() -> Resources:
        with TemporaryFolder() as folder:
            path = Path(folder) / "kernel.cubin"
            path.write_bytes(cubin)
            return cutile_cubin.cubin_report(path, name, hints)

    return kernel_store.report_once(cubin, name, hints, make_report)


def _symbol(kernel: Any, signature: Any) -> str:  # noqa: ANN401
    """Return what tells a kernel's specialisations apart."""
    symbol: str = signature.with_mangled_symbol(kernel._pyfunc.__name__).symbol
    return symbol


@contextmanager
def _unlocked_compiler() -> Iterator[None]:
    """Give up cuTile's lock while tileiras runs, which is a process of its own, within the context."""
    compiler: Any = importlib.import_module("cuda.tile._compile")
    lock, run_tileiras = compiler._compiler_lock, compiler.compile_cubin

    def without_lock(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        lock.release()
        try:
            return run_tileiras(*args, **kwargs)
        finally:
            lock.acquire()

    compiler.compile_cubin = without_lock
    try:
        yield
    finally:
        compiler.compile_cubin = run_tileiras
