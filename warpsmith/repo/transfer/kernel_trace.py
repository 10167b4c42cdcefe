"""Trace of a Python command: calls of a kernel, seconds inside of it, and where the other time is.

This file runs alone, by the interpreter of the traced command, which need not have Warpsmith. It takes that
command's place: `python kernel_trace.py RESULT ROOT KERNELS MODE SCRIPT [ARGUMENT ...]`, or `-m MODULE`.
The functions of the kernel's module are wrapped when it is imported. Where the kernel is no Python file, every
module that was compiled below ROOT counts as the kernel. Mode `calls` adds nothing else. Mode `buckets` also
watches every call outside of the kernel, which slows Python code down, so only its proportions are used.
"""

from __future__ import annotations

import atexit
import functools
import importlib.machinery
import json
import os
import runpy
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, FunctionType, ModuleType

COMPILED_FUNCTIONS = frozenset(
    {"builtin_function_or_method", "cython_function_or_method", "fused_cython_function"}
)
"""Names of the types of functions of compiled modules."""


class KernelClock:
    """Counter of the outermost calls of a kernel, and of their seconds."""

    def __init__(self) -> None:
        self.calls: defaultdict[str, int] = defaultdict(int)
        self.seconds = 0.0
        self.watch: BucketClock | None = None
        self._inside = threading.local()
        self._lock = threading.Lock()

    def wrap(self, function: Callable[..., object], name: str) -> Callable[..., object]:
        """Return a function that counts and times the outermost calls of another one."""

        @functools.wraps(function)
        def kernel_call(*arguments: object, **options: object) -> object:
            if getattr(self._inside, "call", False):
                return function(*arguments, **options)
            self._inside.call = True
            watch = self.watch if sys.getprofile() is not None else None
            if watch:
                sys.setprofile(None)
                watch.pause()
            began = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                seconds = time.perf_counter() - began
                self._inside.call = False
                with self._lock:
                    self.calls[name] += 1
                    self.seconds += seconds
                if watch:
                    watch.resume()
                    sys.setprofile(watch.observe)

        return kernel_call


class BucketClock:
    """Profile function that adds up seconds by the file or package that runs."""

    def __init__(self, root: Path) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self._root = root
        self._names: dict[str, str] = {}
        self._bucket, self._last = "start", time.perf_counter()

    def observe(self, frame: FrameType, event: str, argument: object) -> None:
        """Attribute the time since the last event, and note what runs from then on."""
        self.pause()
        if event == "return":
            self._bucket = self._of_frame(frame.f_back)
        elif event == "c_call":
            module = str(getattr(argument, "__module__", None) or "").partition(".")[0]
            self._bucket = self._of_frame(frame) if module in ("", *sys.stdlib_module_names) else module
        else:
            self._bucket = self._of_frame(frame)
        self.resume()

    def pause(self) -> None:
        """Attribute the time since the last event."""
        self.seconds[self._bucket] += time.perf_counter() - self._last

    def resume(self) -> None:
        """Let time count from this moment."""
        self._last = time.perf_counter()

    def _of_frame(self, frame: FrameType | None) -> str:
        path = frame.f_code.co_filename if frame else "<start>"
        if path not in self._names:
            self._names[path] = self._bucket_of(path)
        return self._names[path]

    def _bucket_of(self, path: str) -> str:
        full = Path(path).absolute()
        for folder in ("site-packages", "dist-packages"):
            if folder in full.parts[:-1]:
                return full.parts[full.parts.index(folder) + 1].partition(".")[0]
        if full.is_relative_to(self._root) and not path.startswith("<"):
            return full.relative_to(self._root).as_posix()
        return "Python and its library"


class KernelFinder:
    """Finder of modules that wraps the functions of the kernel's when they are imported."""

    def __init__(self, clock: KernelClock, root: Path, kernels: Sequence[str]) -> None:
        self._clock, self._root = clock, root
        self._files = {(root / path).resolve() for path in kernels if path.endswith(".py")}
        self._compiled = any(not path.endswith(".py") for path in kernels)
        self.modules: list[str] = []
        self.opaque: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module by the other finders, and wrap its loader if it is the kernel's."""
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: importlib.machinery.ModuleSpec | None = find(name, path, target) if find else None
            if spec is not None:
                if self._is_kernel(spec):
                    self._wrap_loader(spec)
                return spec
        return None

    def _is_kernel(self, spec: importlib.machinery.ModuleSpec) -> bool:
        if not spec.origin or not spec.has_location:
            return False
        origin = Path(spec.origin).resolve()
        compiled = self._compiled and isinstance(spec.loader, importlib.machinery.ExtensionFileLoader)
        return origin in self._files or (compiled and origin.is_relative_to(self._root))

    def _wrap_loader(self, spec: importlib.machinery.ModuleSpec) -> None:
        loader = spec.loader
        execute: Callable[[ModuleType], object] = getattr(loader, "exec_module")  # noqa: B009 - a loader may lack it

        def execute_and_wrap(module: ModuleType) -> None:
            execute(module)
            self.modules.append(spec.name)
            self._wrap_module(module)

        try:
            setattr(loader, "exec_module", execute_and_wrap)  # noqa: B010 - on this instance alone
        except AttributeError:
            self.opaque.append(spec.name)

    def _wrap_module(self, module: ModuleType) -> None:
        for name, value in list(vars(module).items()):
            if name.startswith("__") or getattr(value, "__module__", module.__name__) != module.__name__:
                continue
            if isinstance(value, FunctionType) or type(value).__name__ in COMPILED_FUNCTIONS:
                setattr(module, name, self._clock.wrap(value, name))
            elif isinstance(value, type):
                self._wrap_class(value)
            elif hasattr(value, "run") and hasattr(value, "fn"):  # a kernel of Triton
                value.run = self._clock.wrap(value.run, name)
            elif hasattr(value, "py_func"):  # numba: other compiled functions may call it without Python
                self.opaque.append(name)

    def _wrap_class(self, value: type) -> None:
        for name, member in list(vars(value).items()):
            kind, full = type(member), f"{value.__name__}.{name}"
            function = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            if isinstance(function, FunctionType):
                wrapped = self._clock.wrap(function, full)
                setattr(value, name, wrapped if function is member else kind(wrapped))
            elif kind.__name__ in ("method_descriptor", *COMPILED_FUNCTIONS) and not name.startswith("__"):
                self.opaque.append(full)


def main(result: str, root: Path, kernels: Sequence[str], mode: str, command: list[str]) -> None:
    """Run the command, and write the trace when the process ends."""
    clock, process, began = KernelClock(), os.getpid(), time.perf_counter()
    finder = KernelFinder(clock, root, kernels)
    sys.meta_path.insert(0, finder)
    buckets = BucketClock(root) if mode == "buckets" else None
    clock.watch = buckets

    def write() -> None:
        sys.setprofile(None)
        if os.getpid() != process:  # a forked child
            return
        torch = sys.modules.get("torch")
        contents = {
            "seconds": time.perf_counter() - began,
            "kernel_seconds": clock.seconds,
            "calls": dict(clock.calls),
            "buckets": dict(buckets.seconds) if buckets else {},
            "modules": finder.modules,
            "opaque": finder.opaque,
            "device": bool(torch and torch.cuda.is_available() and torch.cuda.is_initialized()),
        }
        Path(result).write_text(json.dumps(contents), encoding="utf-8")

    atexit.register(write)
    as_module = command[0] == "-m"
    sys.argv = command[as_module:]
    sys.path[0] = str(Path.cwd() if as_module else Path(command[0]).absolute().parent)
    if buckets:
        buckets.resume()
        sys.setprofile(buckets.observe)
    if as_module:
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(command[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve(), json.loads(sys.argv[3]), sys.argv[4], sys.argv[5:])
