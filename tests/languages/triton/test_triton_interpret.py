"""Fixes to Triton's interpreter."""

from __future__ import annotations

import inspect

import numpy
import pytest


def keep_theirs(monkeypatch: pytest.MonkeyPatch):
    """What is mended here is Triton's own again after the test."""
    from triton.runtime import interpreter

    for name in ("_convert_float", "_patch_builtin"):
        monkeypatch.setattr(interpreter, name, getattr(interpreter, name))


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
