"""Extension that replays launch plans: compiled once for this machine's PyTorch, in a process of its own."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.machinery
import importlib.util
import logging
import os
import re
import secrets
import shutil
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path
from types import ModuleType
from typing import Any

from warpsmith import files
from warpsmith.languages.shared.cxx_compiler import find_cxx_compiler

_LOG = logging.getLogger(__name__)
_SOURCES = tuple(Path(__file__).with_name(name) for name in ("native_launch.cpp", "native_recorder.hpp"))
_NAME = "native_launch"
_SECONDS_BETWEEN_LOOKS = 0.5
SWITCH = "WARPSMITH_LAUNCH_PLANS"
"""Environment variable: `0` for calls without launch plans, as where no compiler is."""
BUILD_SECONDS = 300.0
"""Time that the compiler and the check of its result may take."""


class Extension:
    """The extension of a cache folder: loaded as soon as it is there."""

    def __init__(self, folder: Path) -> None:
        """Have it compiled in the background if it is not in `folder`, and if there is a compiler."""
        self._path = folder / library_file_name()
        self._module: ModuleType | None = None
        self._next_look = 0.0
        self.usable = os.environ.get(SWITCH) != "0"
        """False if it is turned off, or if it has been loaded or is known not to load."""
        if self.usable and not self._path.is_file():
            self.usable = find_cxx_compiler() is not None
            if self.usable:
                threading.Thread(target=_build_in_background, args=(self._path,), daemon=True).start()

    def module(self) -> Any:  # noqa: ANN401 - compiled
        """Return the loaded extension; None until it is compiled, and where it does not compile."""
        if self._module is None and self.usable and time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _SECONDS_BETWEEN_LOOKS
            if self._path.is_file():
                self.usable = False  # an extension that does not load is not tried again
                try:
                    self._module = load_extension(self._path)
                except (ImportError, OSError) as error:
                    _LOG.info("launch plans are not used: %s", error)
        return self._module


@functools.cache
def extension(folder: Path) -> Extension:
    """Return the extension of a cache folder, one per process."""
    return Extension(folder)


def load_extension(path: Path) -> ModuleType:
    """Load a compiled extension and connect it to the CUDA driver, if PyTorch has one.

    Raises:
        ImportError, OSError: it is not for this PyTorch or Python.
    """
    import torch

    loader = importlib.machinery.ExtensionFileLoader(_NAME, str(path))
    spec = importlib.util.spec_from_file_location(_NAME, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    probe = torch.empty(3, 5)
    if module.describe(probe) != (probe.data_ptr(), (3, 5), 6):  # 6 is float32
        raise ImportError(f"{path.name} reads tensors of another PyTorch")
    if torch.version.cuda and torch.cuda.is_available():
        connect_driver(module, ctypes.CDLL("libcuda.so.1"), _loaded_cupti())
    return module


def connect_driver(module: Any, driver: ctypes.CDLL, cupti: ctypes.CDLL | None) -> None:  # noqa: ANN401
    """Give the extension the addresses of the driver's functions, and of CUPTI's if it is there."""
    functions = [
        (driver, "cuLaunchKernelEx"),
        (driver, "cuFuncGetParamInfo"),
        (driver, "cuKernelGetParamInfo"),
        (driver, "cuPointerGetAttribute"),
        (cupti, "cuptiSubscribe"),
        (cupti, "cuptiUnsubscribe"),
        (cupti, "cuptiEnableDomain"),
    ]
    addresses = [_address(library, name) for library, name in functions]
    if not all(addresses[:4]):  # a driver before CUDA 12.4 does not say what a kernel's parameters are
        addresses[4] = 0
    module.connect(*addresses)


def _address(library: ctypes.CDLL | None, name: str) -> int:
    function = getattr(library, name, None)
    return ctypes.cast(function, ctypes.c_void_p).value or 0 if function is not None else 0


def _loaded_cupti() -> ctypes.CDLL | None:
    """Return the CUPTI that PyTorch has loaded for its profiler, else the system's; None if there is none."""
    import torch

    loaded = re.search(r"(/\S*/libcupti\.so[.\d]*)$", Path("/proc/self/maps").read_text(), re.MULTILINE)
    try:
        return ctypes.CDLL(loaded[1] if loaded else f"libcupti.so.{str(torch.version.cuda).partition('.')[0]}")
    except OSError:
        return None


@functools.cache
def library_file_name() -> str:
    """Return the extension's file name, with a digest of all that it depends on."""
    import torch

    compiler = find_cxx_compiler() or []
    program = shutil.which(compiler[0]) if compiler else None
    parts: list[object] = [torch.__version__, torch.__file__, sys.version, compiler, program]
    if program:
        parts.append(Path(program).resolve().stat().st_mtime_ns)
    digest = hashlib.sha256(repr(parts).encode())
    for source in _SOURCES:
        digest.update(source.read_bytes())
    return f"{_NAME}_{digest.hexdigest()[:16]}.so"


def _build_in_background(path: Path) -> None:
    """Compile in another process, which also tries the result: if it crashes there, it is not used here."""
    command = [sys.executable, "-m", __name__, str(path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), SWITCH: "0"}
    try:
        subprocess.run(
            ["nice", "-n", "10", *command] if shutil.which("nice") else command,
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            timeout=BUILD_SECONDS, check=False, start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        _LOG.info("launch plans are not used: %s", error)


def build_extension(path: Path) -> None:
    """Compile the extension, try it, and put it at `path`; several processes may do so at once.

    Raises:
        OSError, subprocess.SubprocessError, ImportError: it does not compile, or it is not for this PyTorch.
        RuntimeError: it does not record what PyTorch launches on this GPU.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{files.TEMPORARY_PREFIX}{secrets.token_hex(4)}-{path.name}")
    try:
        subprocess.run(compile_command(temporary), check=True, capture_output=True, timeout=BUILD_SECONDS)
        try_recording(load_extension(temporary))
        os.replace(temporary, path)  # noqa: PTH105 - the compiler made it; a cache needs no fsync
    finally:
        temporary.unlink(missing_ok=True)


def compile_command(target: Path) -> list[str]:
    """Return the compiler's command for the extension."""
    from torch.utils import cpp_extension

    compiler = find_cxx_compiler()
    if compiler is None:
        raise OSError("there is no C++ compiler")
    folders = [*cpp_extension.include_paths(), sysconfig.get_path("include")]
    header = Path(folders[0], "torch/csrc/autograd/python_variable.h").read_text()
    macros = {
        "WARPSMITH_MAYBE_OWNED": "MaybeOwned<at::Tensor> cdata" in header,
        "WARPSMITH_WRAP_BY_VALUE": re.search(r"THPVariable_Wrap\(at::TensorBase \w+\);", header) is not None,
    }
    return [
        *compiler, "-O2", "-std=c++20", "-fPIC", "-shared", "-w",
        *(f"-D{name}" for name, is_so in macros.items() if is_so),
        *(f"-I{folder}" for folder in folders), str(_SOURCES[0]), "-o", str(target),
        *(f"-L{folder}" for folder in cpp_extension.library_paths()),
        "-ltorch", "-ltorch_cpu", "-ltorch_python", "-lc10",
    ]  # fmt: skip


def try_recording(module: Any) -> None:  # noqa: ANN401
    """Record one launch of PyTorch's on a GPU, if there is one.

    Raises:
        RuntimeError: nothing was recorded, or something else.
    """
    import torch

    if not torch.cuda.is_available():
        return
    x = torch.zeros(1024, device="cuda")
    torch.add(x, 1)  # loads the kernel
    torch.cuda.synchronize()
    if not module.start_recording():
        raise RuntimeError("CUPTI does not call back")
    torch.add(x, 1)
    events = module.stop_recording()
    launches = [event for event in events if len(event) > 1]
    if len(launches) != 1 or x.data_ptr().to_bytes(8, "little") not in launches[0][7]:
        raise RuntimeError(f"one launch with the address of its input was expected, not {events}")


if __name__ == "__main__":
    build_extension(Path(sys.argv[1]))
