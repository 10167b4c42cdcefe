"""A device that is not there: cuTile reads a launch's arguments as on a GPU, and launches nothing."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

from warpsmith.languages.triton import pretend as triton_pretend

_LIBCUDA = "cuda.tile._load_libcuda"
_DRIVER_VERSION = 13000
_CUDA = 2  # DLPack's number for a CUDA device, in a tensor's second field


class Launch(NamedTuple):
    """A kernel, and the signature that its arguments give it."""

    kernel: Any
    signature: Any


@contextmanager
def pretend(arch: str, launches: list[Launch]) -> Iterator[None]:
    """Inside, CPU tensors pass for CUDA ones, and a launch adds its kernel and signature to `launches`.

    Only for a process that ends soon: cuTile keeps the driver that it finds first.
    """
    sys.modules[_LIBCUDA] = _driver()
    torch: Any = importlib.import_module("torch._C")
    torch._to_dlpack = _on_cuda(torch._to_dlpack)
    tile: Any = importlib.import_module("cuda.tile")
    compilation: Any = importlib.import_module("cuda.tile.compilation")
    convention = compilation.CallingConvention.cutile_python_v2()

    def launch(stream: Any, grid: Any, kernel: Any, args: tuple[Any, ...], /, **options: Any) -> None:  # noqa: ANN401
        signature = compilation.KernelSignature.from_kernel_args(kernel, args, convention)
        launches.append(Launch(kernel, signature))

    tile.launch = launch
    with triton_pretend.pretend(arch, {}):
        yield


def _tell_version(into: Any) -> int:  # noqa: ANN401 - a pointer
    into[0] = _DRIVER_VERSION
    return 0


def _find(name: bytes, into: Any) -> int:  # noqa: ANN401 - a pointer
    """The driver's function of that name: one that does nothing and says that it did."""
    into[0] = ctypes.cast(_version if name == b"cuDriverGetVersion" else _succeeds, ctypes.c_void_p)
    return 0


# Kept as long as the process: cuTile calls them by address.
_succeeds = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 0)
_version = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))(_tell_version)
_finder = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))(_find)
_found = ctypes.c_void_p(ctypes.cast(_finder, ctypes.c_void_p).value)


def _driver() -> ModuleType:
    """What cuTile asks for the driver's functions, in the place of the module that loads libcuda."""
    module = ModuleType(_LIBCUDA)
    module.cuGetProcAddress_v2_ptrptr = ctypes.addressof(_found)  # type: ignore[attr-defined]
    return module


def _on_cuda(to_dlpack: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same tensors, said to be on a CUDA device: cuTile takes no others."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)

    def converted(tensor: Any) -> Any:  # noqa: ANN401
        capsule = to_dlpack(tensor)
        device = pointer(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)
        ctypes.c_int32.from_address(device).value = _CUDA
        return capsule

    return converted
