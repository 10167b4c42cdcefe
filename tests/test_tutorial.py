"""The kernel of the tutorial is right, and vectorised but for the line that round 2 mends, as the page says."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch

from warpsmith import languages
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload
from warpsmith.profiling.assembly.inspect import inspect_assembly
from warpsmith.profiling.diagnosis.cpu_code import CodeFacts, read_code
from warpsmith.project import find_project

ROOT = Path(__file__).parents[1]
TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()
DTYPES = ("float32", "bfloat16")
PRAGMA = "#pragma omp simd\n"


def definition() -> Definition:
    return Definition(
        name="row_softmax",
        description="Softmax of each row of scale * x.",
        axes={"rows": "rows", "cols": "columns"},
        inputs={"x": TensorSpec(shape=("rows", "cols")), "scale": ScalarSpec(value=0.125)},
        outputs={"y": TensorSpec(shape=("rows", "cols"))},
        flops="6 * rows * cols",
        workloads=tuple(Workload(name=dtype, axes={"rows": 7, "cols": 129}, dtype=dtype) for dtype in DTYPES),
    )


@pytest.fixture(scope="module")
def first() -> str:
    (kernel,) = re.findall(r"^```cpp\n(.*?)^```", TUTORIAL, flags=re.MULTILINE | re.DOTALL)
    return str(kernel)


def facts(source: str, folder: Path) -> CodeFacts:
    path = folder / "v1.cpp"
    path.write_text(source)
    assembly = inspect_assembly(find_project(folder), path, "cpp", definition(), arch="x86-64-v3")
    return read_code(assembly, source, DTYPES)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("size", "scale"), [(1, 0.125), (1, -0.37), (2.0**36, 0.37)])
def test_the_kernel_is_right(first, tmp_path, dtype, version, size, scale):
    """With large inputs a product that one loop rounds and another one does not is off by more than e allows."""
    path = tmp_path / "v1.cpp"
    path.write_text(first if version == 1 else "".join(first.rpartition(PRAGMA)[::2]))
    language = languages.get("cpp")
    run = language.load(language.build(path, definition(), tmp_path / "build"), definition())
    x = (size * torch.randn(7, 129, generator=torch.Generator().manual_seed(0))).to(getattr(torch, dtype))
    wanted = torch.softmax(x.double() * scale, dim=-1)
    close = {"float32": 1e-6, "bfloat16": 4e-3}[dtype]
    torch.testing.assert_close(run(x, scale).double(), wanted, rtol=close, atol=1e-30)


@pytest.mark.skipif(not shutil.which("objdump"), reason="objdump reads the assembly")
def test_one_line_is_left_to_the_second_round(first, tmp_path):
    code = facts(first, tmp_path)
    (line,) = code.missed
    assert first.splitlines()[line - 1].strip().startswith("for (int64_t i = 0; i < cols; ++i) b[i] = T(")
    assert (code.calls, code.serial_lines, code.parallel_regions) == ({}, (), 1)


@pytest.mark.skipif(not shutil.which("objdump"), reason="objdump reads the assembly")
def test_the_second_round_leaves_nothing_to_name(first, tmp_path):
    without = "".join(first.rpartition(PRAGMA)[::2])
    assert without.count("#pragma omp simd") == 2
    code = facts(without, tmp_path)
    assert (code.missed, code.calls, code.serial_lines, code.scan_lines) == ({}, {}, (), ())


def test_the_check_comes_before_the_first_judged_round():
    for page in (TUTORIAL, (ROOT / "README.md").read_text()):
        commands = re.findall(r"^warpsmith judge .*", page, flags=re.MULTILINE)
        assert "--check" in commands[0]
        assert "--check" not in commands[1]
