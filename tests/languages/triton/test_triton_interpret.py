"""Fixes to Triton's interpreter."""

from __future__ import annotations

import inspect

import numpy
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode


def keep_theirs(monkeypatch: pytest.MonkeyPatch):
    """What is mended here is Triton's own again after the test."""
    from triton.runtime import interpreter

    for name in ("_convert_float", "_patch_builtin"):
        monkeypatch.setattr(interpreter, name, getattr(interpreter, name))
    for name in ("get_device_properties", "get_device_capability", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, getattr(torch.cuda, name))


@pytest.mark.parametrize("times", [1, 2])
def test_float8_is_rounded_as_on_a_gpu(times, monkeypatch):
    tl = pytest.importorskip("triton.language")
    from triton.runtime import interpreter

    from warpsmith.languages.triton import interpreter_fixes

    keep_theirs(monkeypatch)
    for _ in range(times):
        interpreter_fixes.patch_interpreter()
    values = numpy.array([31.9, 31.4, -0.9999, 1.0625, 1.1875, 1e6, 0.0], dtype=numpy.float32)
    found = interpreter._convert_float(values, tl.float32, tl.float8e4nv, None)
    # 8 + 7 = exponent bits of 32, -1; a tie goes to the even neighbour; beyond the largest, 448
    assert found.tolist() == [0x60, 0x60, 0xB8, 0x38, 0x3A, 0x7E, 0x00]


def test_float16_becomes_float8_like_float32_and_rounding_to_zero_is_not_ignored(monkeypatch):
    tl = pytest.importorskip("triton.language")
    from triton.runtime import interpreter

    from warpsmith.languages.triton import interpreter_fixes

    keep_theirs(monkeypatch)
    interpreter_fixes.patch_interpreter()
    modes = interpreter._ir.ROUNDING_MODE
    half = numpy.array([31.9, 500.0, -0.99], dtype=numpy.float16)
    for mode in (None, modes.RTNE):
        e4m3 = interpreter._convert_float(half, tl.float16, tl.float8e4nv, mode)
        assert torch.from_numpy(e4m3).view(torch.float8_e4m3fn).float().tolist() == [32, 448, -1]
        e5m2 = interpreter._convert_float(half, tl.float16, tl.float8e5, mode)
        assert torch.from_numpy(e5m2).view(torch.float8_e5m2).float().tolist() == [32, 512, -1]
    for values, kind in ((half, tl.float16), (half.astype(numpy.float32), tl.float32)):
        cut = interpreter._convert_float(values, kind, tl.float8e5, modes.RTZ).astype(numpy.uint8)
        assert torch.from_numpy(cut).view(torch.float8_e5m2).float().tolist() == [28, 448, -0.875]
        with pytest.raises(ValueError, match="only to nearest"):
            interpreter._convert_float(values, kind, tl.float8e4nv, modes.RTZ)


def test_builtins_are_looked_up_once_and_put_back(monkeypatch):
    """Nested calls, as of `tl.sum` in a kernel, find what the outer one patched."""
    tl = pytest.importorskip("triton.language")
    from triton.runtime import interpreter

    from warpsmith.languages.triton import interpreter_fixes

    keep_theirs(monkeypatch)
    interpreter_fixes.patch_interpreter()
    looked, theirs = [], inspect.getmembers
    monkeypatch.setattr(inspect, "getmembers", lambda found: looked.append(found) or theirs(found))
    load = tl.load
    for _ in range(2):
        outer, inner = interpreter._LangPatchScope(), interpreter._LangPatchScope()
        interpreter._patch_builtin(tl, None, outer)
        patched = tl.load
        interpreter._patch_builtin(tl, None, inner)
        assert tl.load is patched is not load
        inner.restore()
        assert tl.load is patched
        outer.restore()
        assert tl.load is load
    assert looked in ([], [tl])  # another test of this process may have looked


def test_conversions_run_no_operation_that_the_gate_takes_for_a_librarys(monkeypatch):
    """The gate counts elements that PyTorch computes in a version's call; a copy or a view computes none."""
    tl = pytest.importorskip("triton.language")
    from triton.runtime import interpreter

    from warpsmith.languages.triton import interpreter_fixes

    keep_theirs(monkeypatch)
    interpreter_fixes.patch_interpreter()
    operations = []

    class Listen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            operations.append(func.__name__.split(".")[0])
            return func(*args, **(kwargs or {}))

    with Listen():
        interpreter._convert_float(numpy.ones(4, dtype=numpy.float32), tl.float32, tl.float8e4nv, None)
    assert set(operations) <= {"_to_copy", "view", "lift_fresh", "detach"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="a device answers itself")
def test_host_code_finds_a_small_device(monkeypatch):
    pytest.importorskip("triton")
    from warpsmith.languages.triton import interpreter_fixes

    keep_theirs(monkeypatch)
    interpreter_fixes.patch_interpreter()
    assert torch.cuda.get_device_properties("cuda").multi_processor_count == 3
    assert torch.cuda.get_device_capability() == (9, 0)
    assert torch.cuda.current_stream().cuda_stream == 0
    assert not torch.cuda.is_available()
