"""The kernel that writes late, on a GPU: what starts early and never waits has what was there before."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from lab_samples import needs_early_start

from warpsmith.lab.workers.calls import late_inputs

pytestmark = [pytest.mark.gpu, needs_early_start]

SIZE, TRIES = 1 << 20, 8
OLD, NEW = 1.0, 2.0

KERNELS = """
import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_wait

@triton.jit
def copy(x_ptr, y_ptr, WAIT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if WAIT:
        gdc_wait()
    tl.store(y_ptr + at, tl.load(x_ptr + at))
"""


@pytest.fixture
def copy(tmp_path):
    """`copy(x, y, early, wait)`: launches a kernel that copies x to y."""
    from warpsmith.languages.shared import python_file

    path = tmp_path / "kernels.py"
    path.write_text(KERNELS)
    kernel = python_file.execute_file(path).copy

    def launch(x, y, early, wait):
        kernel[(SIZE // 1024,)](x, y, WAIT=wait, BLOCK=1024, launch_pdl=early)

    x = torch.empty(SIZE, device="cuda")
    for early, wait in ((False, False), (True, False), (True, True)):  # a capture loads nothing
        launch(x, torch.empty_like(x), early, wait)
    torch.cuda.synchronize()
    return launch


def tried(copy, how, early, wait):
    """In how many of some tries a copy behind the late kernel has old values, and whether x arrived each time."""
    new, x = torch.full((SIZE,), NEW, device="cuda"), torch.empty(SIZE, device="cuda")
    stale = 0
    for _ in range(TRIES):
        x.fill_(OLD)
        y = torch.zeros_like(x)
        write = late_inputs.prepare_late_copy([(new, x)])
        torch.cuda.synchronize()
        if how == "graph":
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                write()
                copy(x, y, early, wait)
            graph.replay()
        else:
            with torch.cuda.stream(torch.cuda.Stream()) if how == "stream" else nullcontext():
                write()
                copy(x, y, early, wait)
        torch.cuda.synchronize()
        assert bool((x == NEW).all())
        assert bool(((y == OLD) | (y == NEW)).all())
        stale += bool((y == OLD).any())
    return stale


HOWS = pytest.mark.parametrize("how", ["default stream", "stream", "graph"])


@HOWS
def test_what_never_waits_has_old_values(copy, how):
    stale = tried(copy, how, early=True, wait=False)
    assert stale > TRIES // 2, f"{stale} of {TRIES}"


@HOWS
@pytest.mark.parametrize(("early", "wait"), [(True, True), (False, False)], ids=["waits", "plain"])
def test_what_waits_or_is_launched_plainly_never_has(copy, how, early, wait):
    assert tried(copy, how, early, wait) == 0


def test_what_is_written_before_the_wait_is_written_over(copy):
    """As a given output is that the kernel ahead still uses."""
    x, y = torch.full((SIZE,), OLD, device="cuda"), torch.empty(SIZE, device="cuda")
    poison = torch.full_like(y, torch.nan)
    write = late_inputs.prepare_late_copy([(poison, y)])
    torch.cuda.synchronize()
    write()
    copy(x, y, True, False)
    torch.cuda.synchronize()
    assert bool(y.isnan().all())


def test_every_byte_arrives_however_many_there_are():
    pairs = []
    for size in (0, 1, 3, 513, 1 << 16):
        source = torch.randint(0, 255, (size + 1,), dtype=torch.uint8, device="cuda")[1:]
        pairs.append((source, torch.zeros(size, dtype=torch.uint8, device="cuda")))
    late_inputs.prepare_late_copy(pairs)()
    torch.cuda.synchronize()
    assert all(torch.equal(source, target) for source, target in pairs)
