"""Softmax in cuTile: its arithmetic by a stand-in for cuTile, and what the compiler makes of its longest rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from tile_stand_in import stand_in

from warpsmith.core.definition import Workload
from warpsmith.errors import MachineLacks
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.cutile.language import LANGUAGE
from warpsmith.languages.shared.python_file import execute_file

pytestmark = pytest.mark.usefixtures("forked_compilers")

ROOT = Path(__file__).parents[2]
VERSION = ROOT / "kernels/softmax/cutile/v1.py"
DRAFT = ROOT / "kernels/softmax/drafts/cutile/01_clusters.py"
EXAMPLE = ROOT / "skills/design-cutile-kernel/references/example.md"
FILE = definition_file.load_definition(ROOT / "kernels/softmax/definition.py")
INFINITY, NAN = float("inf"), float("nan")


def named(name: str) -> Workload:
    return next(workload for workload in FILE.definition.workloads if workload.name == name)


def shorter(name: str, rows: int) -> Workload:
    """A declared workload with fewer rows."""
    return named(name).model_copy(update={"axes": {**named(name).axes, "rows": rows}})


WORKLOADS = [shorter(one.name, min(one.axes["rows"], 7)) for one in FILE.definition.select("odd")]
WORKLOADS += [shorter("16x131072-bf16", 2), shorter("16x131072-fp32", 2)]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Many small operations, on a machine that may be busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(params=[VERSION, DRAFT], ids=lambda path: path.stem)
def run(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    stand_in(monkeypatch)
    return execute_file(request.param).run


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_it_is_right(workload: Workload, run) -> None:
    drawn = Inputs(FILE, workload, 7, "cpu")
    for distribution in (None, "one_hot") if drawn.adversarial_distributions else (None,):
        inputs = drawn.draw(distribution)
        truth = correctness.compute_truth(FILE, workload, inputs, correlated=distribution is not None)
        grade = correctness.grade_outputs(truth, FILE.outputs(run(inputs["x"])))
        assert grade.status == "PASSED", f"{distribution}: {grade.detail}"


@pytest.mark.parametrize("cols", [5, 20000])
@pytest.mark.parametrize("at", ["first", "last"])
def test_infinities_and_nan_are_where_the_reference_has_them(cols: int, at: str, run) -> None:
    x = torch.randn(5, cols)
    place = 0 if at == "first" else -1
    x[0, place], x[1, place], x[2, place] = NAN, INFINITY, -INFINITY
    x[3] = -INFINITY
    x[4] = NAN
    torch.testing.assert_close(run(x), torch.softmax(x, -1), equal_nan=True, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("rows", "cols"), [(2050, 1024), (2050, 992), (2, 32768), (2, 32000), (1, 65536), (1, 70000)]
)
def test_rows_of_a_warp_and_of_a_cluster(rows: int, cols: int, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(monkeypatch)
    x = torch.randn(rows, cols)
    x[0, : cols // 2] = -INFINITY
    y = execute_file(DRAFT).run(x)
    torch.testing.assert_close(y, torch.softmax(x, -1), rtol=1e-5, atol=1e-9)


def test_strided_rows_and_empty_batches(run) -> None:
    x = torch.randn(3000, 4).t()
    y = run(x)
    assert y.is_contiguous()
    torch.testing.assert_close(y, torch.softmax(x, -1))
    assert run(torch.empty(0, 8)).shape == (0, 8)


def test_the_skills_example_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = re.search(r"```python\n(.*?)```", EXAMPLE.read_text(), re.DOTALL)
    assert example
    (tmp_path / "v1.py").write_text(example[1])
    stand_in(monkeypatch)
    ours = execute_file(tmp_path / "v1.py").run
    for shape in ((3, 1000), (2, 8192), (2, 20000)):
        x = torch.randn(shape)
        torch.testing.assert_close(ours(x, -0.5), torch.softmax(x * -0.5, -1), rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "kernel", "hints"),
    [
        ("8192x8192-bf16", "row_kernel", "occupancy 5"),
        ("512x131072-bf16", "row_kernel", "occupancy 3, num_ctas 8"),
        ("512x131072-fp32", "row_kernel", "occupancy 2, num_ctas 8"),
        ("65536x1024-bf16", "short_kernel", "occupancy auto"),
    ],
)
def test_the_draft_holds_rows_in_registers(name: str, kernel: str, hints: str, tmp_path: Path) -> None:
    try:
        (found,) = LANGUAGE.assembly(DRAFT, FILE.definition, [named(name)], "sm_90a", tmp_path)
    except MachineLacks as lacking:
        pytest.skip(str(lacking))
    assert (found.kernel, found.unaligned, found.resources.spill_bytes) == (kernel, (), 0)
    assert "LDG.E.128" in found.resources.notes[0]
    assert hints in found.resources.notes[1]
    blocks = 65536 // (found.resources.registers * int(found.resources.notes[1].split()[0]))
    assert blocks >= int(hints.split()[1].strip(",").replace("auto", "8"))


def test_long_rows_stay_in_registers(tmp_path: Path) -> None:
    try:
        (found,) = LANGUAGE.assembly(VERSION, FILE.definition, [named("512x131072-fp32")], "sm_90a", tmp_path)
    except MachineLacks as lacking:
        pytest.skip(str(lacking))
    assert (found.kernel, found.unaligned, found.resources.spill_bytes) == ("chunked_kernel", (), 0)
    assert "LDG.E.128" in found.resources.notes[0]
    assert "LDL x0" in found.resources.notes[0]
