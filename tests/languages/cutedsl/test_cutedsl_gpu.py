"""The skill's CuTe DSL example on a GPU: right, captured by a graph, held back, and reported by the driver."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from warpsmith.languages.cutedsl import language as cutedsl

pytestmark = pytest.mark.gpu

EXAMPLE = Path(__file__).parents[3] / "skills/design-cutedsl-kernel/references/example.md"

HEAD = """
import sys
from pathlib import Path
import torch
from warpsmith.languages.base import Build
from warpsmith.languages.cutedsl.language import LANGUAGE
"""

RIGHT = """
def check(x, y):
    expected = torch.softmax(x.float() * 0.5, -1).to(x.dtype)
    torch.testing.assert_close(y, expected, rtol=2e-2 if x.dtype is torch.bfloat16 else 1e-5, atol=1e-7)

for dtype in (torch.float32, torch.bfloat16):
    for rows, cols in ((3, 1), (7, 129), (64, 1024), (5, 3000), (9, 32768)):
        x = torch.randn(rows, cols, device="cuda", dtype=dtype)
        check(x, run(x, 0.5))

x = torch.randn(64, 1024, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = run(x, 0.5)
x.normal_()
graph.replay()
check(x, y)

side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    z = run(x, 0.5)
side.synchronize()
check(x, z)
"""
"""Whatever loaded `run`: at several shapes, out of a graph, and on another stream."""

ON_A_GPU = f"""{HEAD}
path = Path(sys.argv[1])
run = LANGUAGE.load(Build(path, path, ()), None)
{RIGHT}
poison = torch.full_like(x, float("nan"))  # what torch.empty finds next
del poison
with LANGUAGE.suppress_launches():
    held = run(x, 0.5)
torch.cuda.synchronize()
assert not torch.allclose(held, y), "a launch was not held back"

try:
    run(torch.randn(64 * 1024 + 1, device="cuda")[1:].view(64, 1024), 0.5)
except ValueError as error:
    assert "alignment=16" in str(error), error
else:
    raise AssertionError("a misaligned tensor was taken")

reports = LANGUAGE.resources(run)
assert len(reports) == 10, reports
assert {{report.kernel for report in reports}} == {{"softmax_kernel"}}
assert all(report.registers and report.spill_bytes == 0 for report in reports), reports
"""

KEPT_ON_A_GPU = f"""{HEAD}
import cutlass.cute as cute
path, kept = Path(sys.argv[1]), Path(sys.argv[2])
compiler, compilations = type(cute.compile), []
compile_ = compiler._compile

def counted(self, *args, **named):
    compilations.append(args[0].__name__)
    return compile_(self, *args, **named)

compiler._compile = counted
run = LANGUAGE.load(Build(path, path, (), kept=kept), None)
{RIGHT}
for device in range(torch.cuda.device_count()):
    with torch.cuda.device(device):
        x = torch.randn(64, 1024, device="cuda")
        check(x, run(x, 0.5))

for wrong in (torch.randn(64 * 1024 + 1, device="cuda")[1:].view(64, 1024), torch.randn(64, 1024)):
    try:
        run(wrong, 0.5)
    except ValueError as error:
        assert "alignment=16" in str(error) or "device_type=cuda" in str(error), error
    else:
        raise AssertionError("a misaligned tensor was taken, or one of the CPU")
told = None
try:
    run(torch.randn(0, 1024, device="cuda"), 0.5)
except Exception as error:
    told = type(error).__name__
print(len(compilations), told)
"""


@pytest.fixture
def path(write):
    """The skill's example as a file; skips where nothing can run it."""
    if lacks := cutedsl.LANGUAGE.missing("gpu"):
        pytest.skip(lacks)
    block = re.search(r"```python\n(.*?)```", EXAMPLE.read_text(), re.DOTALL)
    return write(block[1], "v1.py")


def process(code, *arguments):
    """What a process prints that runs some code."""
    ended = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_example_runs(path):
    process(ON_A_GPU, path)


def test_what_an_earlier_process_compiled_runs(path, tmp_path):
    compiled, error = process(KEPT_ON_A_GPU, path, tmp_path / "kept").split()
    loaded, the_same = process(KEPT_ON_A_GPU, path, tmp_path / "kept").split()
    assert (compiled, loaded) == ("10", "0")
    assert the_same == error  # of a launch without blocks
