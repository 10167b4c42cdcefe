# class: network
# kind: attack
# how: opens a listener on the loopback device and connects to it
# caught: correctness
# needs: isolation
# status: RUNTIME_ERROR
# defence: network namespace without devices
# source: common mistake

import socket

import triton
import triton.language as tl


@triton.jit
def kernel(v_ptr, offsets_ptr, out_ptr, cols, ROWS: tl.constexpr, COLS: tl.constexpr):
    group = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLS + tl.arange(0, COLS)
    first = tl.load(offsets_ptr + group)
    last = tl.load(offsets_ptr + group + 1)
    total = tl.zeros((COLS,), tl.float32)
    for start in range(first, last, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows[:, None] < last) & (columns[None, :] < cols)
        values = tl.load(v_ptr + rows[:, None].to(tl.int64) * cols + columns[None, :], mask=mask, other=0.0)
        total += tl.sum(values, 0)
    tl.store(out_ptr + group * cols + columns, total, mask=columns < cols)


def reduce(values, offsets, out):
    groups, cols = out.shape
    kernel[(groups, triton.cdiv(cols, 128))](values, offsets, out, cols, ROWS=128, COLS=128)


def run(values, offsets, out):
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=2).close()
    reduce(values, offsets, out)
