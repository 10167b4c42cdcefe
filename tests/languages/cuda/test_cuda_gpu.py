"""CUDA C++ on a device: the skill's example is right, can be captured, is held back and reports its kernels."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from test_cuda import needs_nvrtc

from warpsmith.languages.base import Build
from warpsmith.languages.cuda.language import LANGUAGE

EXAMPLE = Path(__file__).parents[3] / "skills/design-cuda-kernel/references/example.md"
pytestmark = [
    pytest.mark.gpu,
    needs_nvrtc,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.fixture
def softmax(write):
    """The skill's example, loaded as in a worker."""
    (source,) = re.findall(r"```python\n(.*?)```", EXAMPLE.read_text(), re.DOTALL)
    path = write(source, "v1.py")
    return LANGUAGE.load(Build(path, path, ()), None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("shape", [(64, 4096), (3, 67), (1, 1), (0, 8), (128, 131072)])
def test_it_is_right(softmax, dtype, shape):
    x = torch.randn(shape, device="cuda", dtype=dtype)
    expected = torch.softmax(x.double() * 0.5, 1).to(dtype)
    torch.testing.assert_close(softmax(x, 0.5), expected)


def test_it_runs_on_the_current_stream_and_is_captured(softmax):
    x = torch.randn(64, 4096, device="cuda")
    softmax(x, 0.5)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = softmax(x, 0.5)
    x.copy_(torch.randn_like(x))
    graph.replay()
    torch.testing.assert_close(y, torch.softmax(x * 0.5, 1))


def test_held_back_launches_leave_the_output_alone(softmax):
    x = torch.randn(64, 4096, device="cuda")
    expected = softmax(x, 0.5)
    kept = torch.full_like(x, -1.0)  # what the allocator gives next is not the right result by chance
    del kept
    with LANGUAGE.suppress_launches():
        held = softmax(x, 0.5)
    assert not torch.equal(held, expected)
    torch.testing.assert_close(softmax(x, 0.5), expected)


def test_the_driver_reports_its_kernels(softmax):
    softmax(torch.randn(4, 64, device="cuda"), 1.0)
    softmax(torch.randn(4, 63, device="cuda"), 1.0)
    found = LANGUAGE.resources(softmax)
    assert found
    assert {report.kernel for report in found} == {"softmax"}
    assert all(report.registers and report.spill_bytes == 0 for report in found)


def test_an_error_names_the_line_of_the_file(write):
    source = 'from cuda.core import Program, ProgramOptions\nS = r"""\n__global__ void k() { wrong; }\n"""\n'
    path = write(
        f"{source}def run(x):\n    Program(S, 'c++', ProgramOptions(arch='sm_90a')).compile('cubin')\n", "v7.py"
    )
    run = LANGUAGE.load(Build(path, path, ()), None)
    with pytest.raises(Exception, match=r'v7.py\(3\): error: identifier "wrong" is undefined'):
        run(0)
