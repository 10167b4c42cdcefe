"""What deserves a look in HIP C++ source, and the file to start from."""

from __future__ import annotations

import pytest

from warpsmith.languages.hip.language import LANGUAGE

SOURCE = '''
import functools
import torch

SOURCE = r"""
#include <hip/hip_runtime.h>
extern "C" __global__ void twice(const float* x, float* y) {
  y[threadIdx.x] = 2 * x[threadIdx.x];  // twice
}
"""

@functools.cache
def compiled():
    return torch.cuda._compile_kernel(SOURCE, "twice")

def run(x):
    y = torch.empty_like(x)
    compiled()(grid=(1, 1, 1), block=(64, 1, 1), args=[x, y])
    return y
'''


def test_a_plain_version_has_no_findings():
    assert LANGUAGE.findings(SOURCE) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("    return x @ x\n", "`x @ x` calls a library's kernel"),
        ("    from hip import hiprtc\n", "`hip.hiprtc` reaches past PyTorch"),
        ("    import torch.cuda._utils\n", "`torch.cuda._utils` reaches into PyTorch"),
        ("    import aiter\n", "`aiter` calls a library's kernel"),
        ("    import triton.language as tl\n", "`triton.language` is another language"),
        (
            "    try: compiled()(grid=g, block=b, args=[])\n    except Exception: pass\n",
            "`try` wraps a kernel launch",
        ),
    ],
)
def test_what_deserves_a_look(line, said):
    where = f"line {len(SOURCE.splitlines()) + 1}: "
    assert any(finding.startswith(where + said) for finding in LANGUAGE.findings(SOURCE + line))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("long long now = wall_clock64();", "line 8: `wall_clock64` reads a clock"),
        ("void* more = malloc(4);", "line 8: `malloc` allocates on the device"),
    ],
)
def test_what_deserves_a_look_in_a_kernel(code, said):
    changed = SOURCE.replace("y[threadIdx.x] = 2", f"{code} y[threadIdx.x] = 2")
    assert LANGUAGE.findings(changed) == [said]


def test_a_file_of_a_repository_is_read_as_hip():
    assert any("wall_clock64" in each for each in LANGUAGE.findings("__global__ void f() { wall_clock64(); }"))
    assert LANGUAGE.findings("def run(x:\n") == []


def test_comments_and_layout_are_no_change():
    changed = SOURCE.replace("  // twice", "").replace("\n\n", "\n\n\n")
    assert changed != SOURCE
    assert LANGUAGE.normalise(changed) == LANGUAGE.normalise(SOURCE)
    assert LANGUAGE.normalise(SOURCE.replace("2 * x", "3 * x")) != LANGUAGE.normalise(SOURCE)


def test_template_says_what_to_write(write, rmsnorm, tmp_path):
    source = LANGUAGE.template(rmsnorm)
    LANGUAGE.build(write(source, "v1.py"), rmsnorm, tmp_path)
    assert "x: (rows, cols), the workload's type. Rows to normalise." in source
    assert "#include <hip/hip_runtime.h>" in source
    assert "launch it here and return y" in source
    assert LANGUAGE.findings(source) == []
