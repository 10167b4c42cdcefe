"""Kernels of the lab on a rank's GPU: one waits for the common start, one holds a stream or the whole GPU."""

from __future__ import annotations

import ctypes
import random
from functools import cache
from typing import TYPE_CHECKING

from warpsmith.lab.machine import cuda_driver

if TYPE_CHECKING:
    import torch

PTX = """\
.version 7.0
.target sm_80
.address_size 64

.visible .entry hold(.param .u64 nanoseconds)
{
    .reg .pred %p;
    .reg .b64  %start, %time, %most;

    ld.param.u64 %most, [nanoseconds];
    mov.u64 %start, %globaltimer;
hold_on:
    mov.u64 %time, %globaltimer;
    sub.u64 %time, %time, %start;
    setp.lt.u64 %p, %time, %most;
    @%p bra hold_on;
    ret;
}

.visible .entry await_start(.param .u64 word, .param .u32 number, .param .u64 nanoseconds)
{
    .reg .pred %p, %q;
    .reg .b32  %seen, %number;
    .reg .b64  %at, %start, %time, %most;

    ld.param.u64 %at, [word];
    ld.param.u32 %number, [number];
    ld.param.u64 %most, [nanoseconds];
    mov.u64 %start, %globaltimer;
look:
    ld.volatile.u32 %seen, [%at];
    setp.ge.s32 %p, %seen, %number;
    @%p bra begin;
    mov.u64 %time, %globaltimer;
    sub.u64 %time, %time, %start;
    setp.lt.u64 %q, %time, %most;
    @%q bra look;
begin:
    ret;
}
"""
"""Source of the kernels; the driver compiles it, so that a version's compiler has no part in it."""

WAIT_SECONDS = 20.0
"""Seconds after which a GPU no longer waits for the common start. Chosen: the grader has ended by then."""

JAMS, JAM_SECONDS = 24, (3e-5, 5e-5)
"""Times that a jolted rank's GPU is taken from its kernels in a block, the mean seconds between two of these, and
the seconds of each. Chosen: a block of small calls takes a millisecond."""

_MAPPED, _PORTABLE = 2, 1
_THREADS, _BLOCKS_PER_PROCESSOR = 1024, 2


def hold_stream(seconds: float) -> None:
    """Launch a kernel on the current stream that does nothing for so long."""
    _launch("hold", 1, 1, ctypes.c_uint64(round(seconds * 1e9)))


def await_start(word: int, number: int) -> None:
    """Launch a kernel on the current stream that ends once the signed word at a device address is at least a
    number."""
    most = ctypes.c_uint64(round(WAIT_SECONDS * 1e9))
    _launch("await_start", 1, 1, ctypes.c_uint64(word), ctypes.c_uint32(number), most)


def jam_device(stream: torch.cuda.Stream) -> None:
    """Take the whole GPU from other kernels several times, at instants by chance: a kernel that runs goes on, and
    the next one behind it waits. `stream` should have the highest priority."""
    import torch

    between, length = JAM_SECONDS
    blocks = _BLOCKS_PER_PROCESSOR * torch.cuda.get_device_properties(stream.device).multi_processor_count
    with torch.cuda.stream(stream):
        for _ in range(JAMS):
            hold_stream(random.uniform(0, 2 * between))
            _launch("hold", blocks, _THREADS, ctypes.c_uint64(round(length * 1e9)))


def map_host_memory(address: int, size: int) -> int:
    """Pin this process's memory and return the address at which its GPU reads it.

    Raises:
        MachineFailed: the driver refuses.
    """
    pointer = ctypes.c_uint64()
    cuda_driver.call_driver(
        "cuMemHostRegister_v2", ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_uint(_MAPPED | _PORTABLE)
    )
    cuda_driver.call_driver(
        "cuMemHostGetDevicePointer_v2", ctypes.byref(pointer), ctypes.c_void_p(address), ctypes.c_uint(0)
    )
    return pointer.value


def load_kernels() -> None:
    """Load the kernels into this process's context, so that none is loaded while the GPU waits."""
    for name in ("hold", "await_start"):
        _function(name)


def _launch(name: str, blocks: int, threads: int, *arguments: ctypes.c_uint64 | ctypes.c_uint32) -> None:
    import torch

    addresses = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    cuda_driver.call_driver(
        "cuLaunchKernel", _function(name), blocks, 1, 1, threads, 1, 1, 0, stream, addresses, None
    )


@cache
def _module() -> ctypes.c_void_p:
    module = ctypes.c_void_p()
    cuda_driver.call_driver("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX.encode()))
    return module


@cache
def _function(name: str) -> ctypes.c_void_p:
    function = ctypes.c_void_p()
    cuda_driver.call_driver(
        "cuModuleGetFunction", ctypes.byref(function), _module(), ctypes.c_char_p(name.encode())
    )
    return function
