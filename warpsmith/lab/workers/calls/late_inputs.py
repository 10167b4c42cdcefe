"""Inputs that arrive late: a kernel that writes the inputs of a call and lets the call's own kernels start first.

A stream runs kernels one after the other unless one is launched to start early (programmatic dependent launch).
Such a kernel must wait for the kernels ahead of it. If it does not, its results are right most of the time.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from warpsmith.core import gate_rules
from warpsmith.lab.machine import cuda_driver

if TYPE_CHECKING:
    import torch

PTX = """\
.version 7.8
.target sm_90
.address_size 64

// Each row of the table has a source, a target and their number of bytes.
.visible .entry arrive(.param .u64 table, .param .u32 rows, .param .u64 late)
{
    .reg .pred %p;
    .reg .b16  %byte;
    .reg .b32  %row, %rows, %a, %b;
    .reg .b64  %at, %from, %to, %bytes, %first, %place, %step, %start, %now, %late;

    griddepcontrol.launch_dependents;

    ld.param.u64 %late, [late];
    mov.u64 %start, %globaltimer;
wait:
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %start;
    setp.lt.u64 %p, %now, %late;
    @%p bra wait;

    mov.u32 %a, %ctaid.x;
    mov.u32 %b, %ntid.x;
    mul.wide.u32 %first, %a, %b;
    mov.u32 %a, %tid.x;
    cvt.u64.u32 %place, %a;
    add.u64 %first, %first, %place;
    mov.u32 %a, %nctaid.x;
    mul.wide.u32 %step, %a, %b;

    ld.param.u64 %at, [table];
    cvta.to.global.u64 %at, %at;
    ld.param.u32 %rows, [rows];
    mov.u32 %row, 0;
next_row:
    setp.ge.u32 %p, %row, %rows;
    @%p bra done;
    ld.global.u64 %from, [%at];
    ld.global.u64 %to, [%at+8];
    ld.global.u64 %bytes, [%at+16];
    cvta.to.global.u64 %from, %from;
    cvta.to.global.u64 %to, %to;
    mov.u64 %place, %first;
next_byte:
    setp.ge.u64 %p, %place, %bytes;
    @%p bra row_done;
    add.u64 %now, %from, %place;
    ld.global.u8 %byte, [%now];
    add.u64 %now, %to, %place;
    st.global.u8 [%now], %byte;
    add.u64 %place, %place, %step;
    bra next_byte;
row_done:
    add.u64 %at, %at, 24;
    add.u32 %row, %row, 1;
    bra next_row;
done:
    ret;
}
"""
"""Source of the kernel. The driver compiles it, since a candidate controls its language's compiler and launches.
"""


def kernels_can_start_early() -> bool:
    """Return whether kernels can start early on this GPU."""
    return compute_capability() >= gate_rules.EARLY_START_CAPABILITY


def compute_capability() -> tuple[int, int]:
    """Return the GPU's compute capability."""
    import torch

    return torch.cuda.get_device_capability()


def prepare_late_copy(pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Callable[[], None]:
    """Return a function that launches the copy kernel on the current stream.

    The kernel lets whatever is launched behind it start at once, and copies after one millisecond.

    Args:
        pairs: source and target tensors of equal size in bytes, contiguous, on the GPU.

    Raises:
        MachineFailed: the driver refuses.
    """
    import torch

    rows = [(source.data_ptr(), target.data_ptr(), source.nbytes) for source, target in pairs]
    table = torch.tensor(rows, dtype=torch.int64, device="cuda")
    function = _function()

    def launch() -> None:
        arguments = (
            ctypes.c_uint64(table.data_ptr()),
            ctypes.c_uint32(len(rows)),
            ctypes.c_uint64(gate_rules.LATE_NANOSECONDS),
        )
        addresses = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        cuda_driver.call_driver(
            "cuLaunchKernel",
            function,
            gate_rules.LATE_BLOCKS,
            1,
            1,
            gate_rules.LATE_THREADS,
            1,
            1,
            0,
            stream,
            addresses,
            None,
        )

    return launch


@cache
def _function() -> ctypes.c_void_p:
    """Load the kernel into this process's context, which PyTorch has created by then."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    cuda_driver.call_driver("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX.encode()))
    cuda_driver.call_driver("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(b"arrive"))
    return function
