"""One GPU allocation shared by several processes, through the CUDA driver's inter-process handles."""

from __future__ import annotations

import base64
import ctypes
from typing import TYPE_CHECKING, Any

from warpsmith.lab.machine import cuda_driver

if TYPE_CHECKING:
    import torch

_HANDLE_BYTES = 64
_LAZY_PEER_ACCESS = 1


class _Handle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_char * _HANDLE_BYTES),)


class _Memory:
    """Bytes at a device address, in the form that torch can wrap without a copy."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


def export_memory(memory: torch.Tensor) -> dict[str, Any]:
    """Return a JSON-serializable handle with which another process can open `memory`, bytes on a GPU.

    Raises:
        MachineFailed: the driver refuses.
    """
    handle, base, size = _Handle(), ctypes.c_uint64(), ctypes.c_size_t()
    address = memory.data_ptr()
    cuda_driver.call_driver(
        "cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), ctypes.c_uint64(address)
    )
    cuda_driver.call_driver("cuIpcGetMemHandle", ctypes.byref(handle), base)
    raw = base64.b64encode(bytes(handle)).decode()
    return {"cuda": raw, "offset": address - base.value, "size": memory.numel()}


def open_memory(handle: dict[str, Any]) -> torch.Tensor:
    """Open exported bytes in another process on the same GPU; they stay open until that process ends.

    Raises:
        MachineFailed: the driver refuses.
    """
    import torch

    torch.empty(1, device="cuda")  # Creates the context in which the handle is opened.
    driver_handle = _Handle.from_buffer_copy(base64.b64decode(handle["cuda"]))
    base = ctypes.c_uint64()
    cuda_driver.call_driver(
        "cuIpcOpenMemHandle_v2", ctypes.byref(base), driver_handle, ctypes.c_uint(_LAZY_PEER_ACCESS)
    )
    return torch.as_tensor(_Memory(base.value + handle["offset"], handle["size"]), device="cuda")
