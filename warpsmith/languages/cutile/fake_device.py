"""Fake CUDA device for cuTile: a launch's arguments are read as on a GPU, and nothing is launched."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

from warpsmith.languages.shared.fake_device import fake_device

_LIBCUDA = "cuda.tile._load_libcuda"
_DRIVER_VERSION = 13000
_CUDA = 2
"""DLPack's number for a CUDA device, in a tensor's second field."""


class TileLaunch(NamedTuple):
    """A kernel, and the signature of its arguments."""

    kernel: Any
    signature: Any


@contextmanager
def fake_cutile_device(arch: str, launches: list[TileLaunch]) -> Iterator[None]:
    """Make CPU tensors pass for CUDA ones, and launches only append to `launches`, within the context.

    Only for a process that ends soon: cuTile keeps the driver that it finds first.
    """
    sys.modules[_LIBCUDA] = _driver()
    torch: Any = importlib.import_module("torch._C")
    torch._to_dlpack = _with_cuda_device(torch._to_dlpack)
    tile: Any = importlib.import_module("cuda.tile")
    compilation: Any = importlib.import_module("cuda.tile.compilation")
    convention = compilation.CallingConvention.cutile_python_v2()

    def launch(stream: Any, grid: Any, kernel: Any, args: tuple[Any, ...], /, **options: Any) -> None:  # noqa: ANN401
        signature = compilation.KernelSignature.from_kernel_args(kernel, args, convention)
        launches.append(TileLaunch(kernel, signature))

    tile.launch = launch
    with fake_device(arch, {}):
        yield


def _driver_version(result: Any) -> int:  # noqa: ANN401 - a pointer
    result[0] = _DRIVER_VERSION
    return 0


def _find_function(name: bytes, result: Any) -> int:  # noqa: ANN401 - a pointer
    """Store the driver's function of that name: all but one do nothing and report success."""
    result[0] = ctypes.cast(_version if name == b"cuDriverGetVersion" else _succeed, ctypes.c_void_p)
    return 0


# Global, because cuTile calls them by address until the process ends.
_succeed = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
_version = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))(_driver_version)
_finder = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))(_find_function)
_finder_address = ctypes.c_void_p(ctypes.cast(_finder, ctypes.c_void_p).value)


def _driver() -> ModuleType:
    """Return a replacement for cuTile's module that loads libcuda and looks up the driver's functions."""
    module = ModuleType(_LIBCUDA)
    module.cuGetProcAddress_v2_ptrptr = ctypes.addressof(_finder_address)  # type: ignore[attr-defined]
    return module


def _with_cuda_device(to_dlpack: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return `to_dlpack` with tensors marked as being on a CUDA device: cuTile takes no others."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

    def convert(tensor: Any) -> Any:  # noqa: ANN401
        capsule = to_dlpack(tensor)
        device = pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)
        ctypes.c_int32.from_address(device).value = _CUDA
        return capsule

    return convert
