"""What is mended in Triton's interpreter."""

from __future__ import annotations

import numpy
import pytest


@pytest.mark.parametrize("times", [1, 2])
def test_float8_is_rounded_as_on_a_gpu(times, monkeypatch):
    tl = pytest.importorskip("triton.language")
    from triton.runtime import interpreter

    from warpsmith.languages import triton_interpret

    monkeypatch.setattr(interpreter, "_convert_float", interpreter._convert_float)
    for _ in range(times):
        triton_interpret.mend()
    values = numpy.array([31.9, 31.4, -0.9999, 1.0625, 1.1875, 1e6, 0.0], dtype=numpy.float32)
    found = interpreter._convert_float(values, tl.float32, tl.float8e4nv, None)
    # 8 + 7 = exponent bits of 32, -1; a tie goes to the even neighbour; beyond the largest, 448
    assert found.tolist() == [0x60, 0x60, 0xB8, 0x38, 0x3A, 0x7E, 0x00]
