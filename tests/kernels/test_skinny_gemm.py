"""The bounds of skinny products pass float32 sums in any order and refuse less; kernels share out all rows and
compile for tensor cores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from compiled import compile_reports

from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.cuda import compile as cuda_compile
from warpsmith.languages.shared.python_file import execute_file
from warpsmith.languages.triton import compile as triton_compile

FOLDER = Path(__file__).parents[2] / "kernels" / "skinny_gemm"
FILE = definition_file.load_definition(FOLDER / "definition.py")
VERSION = FOLDER / "cuda" / "v1.py"
KERNELS = [VERSION, *sorted(FOLDER.glob("drafts/*/*.py"))]
LONG = next(one for one in FILE.definition.workloads if one.name == "13x24x7168-bf16")
RAGGED = next(one for one in FILE.definition.workloads if one.name == "33x200x513-bf16")
MULTIPROCESSORS = 132


def parts(x, w, count=7):
    """Partial products of k in float32."""
    return [(a.float() @ b.float().t()) for a, b in zip(x.chunk(count, 1), w.chunk(count, 1), strict=True)]


def split(x, w):
    return torch.stack(parts(x, w)).sum(0).to(x.dtype)


def one_after_the_other(x, w):
    total = torch.zeros(x.shape[0], w.shape[0])
    for part in parts(x, w, 64):
        total = total + part
    return total.to(x.dtype)


def adds_parts_in_16_bits(x, w):
    return torch.stack([part.to(x.dtype) for part in parts(x, w)]).sum(0)


def forgets_a_part(x, w):
    return torch.stack(parts(x, w)[:-1]).sum(0).to(x.dtype)


def forgets_a_column(x, w):
    return split(x[:, :-1], w[:, :-1])


def takes_the_next_row(x, w):
    return split(x, w.roll(-1, 0))


def multiplies_in_8_bits(x, w):
    return split(x, w.to(torch.float8_e4m3fn).to(w.dtype))


def graded(run, workload, distribution=None):
    inputs = Inputs(FILE, workload, 5, "cpu").draw(distribution)
    truth = correctness.compute_truth(FILE, workload, inputs, correlated=distribution is not None)
    outputs = FILE.outputs(run(*FILE.arguments(workload, inputs)))
    return correctness.grade_outputs(truth, outputs).status


@pytest.mark.parametrize("honest", [split, one_after_the_other])
@pytest.mark.parametrize("workload", [LONG, RAGGED], ids=lambda one: one.name)
def test_float32_sums_pass_in_any_order(honest, workload):
    for distribution in (None, "shifted", "sparse", "near_tie"):
        assert graded(honest, workload, distribution) == "PASSED", distribution


@pytest.mark.parametrize(
    "wrong",
    [
        adds_parts_in_16_bits,
        forgets_a_part,
        forgets_a_column,
        takes_the_next_row,
        multiplies_in_8_bits,
    ],
)
def test_what_is_wrong_fails(wrong):
    assert graded(wrong, LONG) == "INCORRECT_NUMERICAL"


def test_floors():
    """At 4.3 TB/s: the weights are nearly all of it."""
    work = {one.name: FILE.definition.work(one) for one in FILE.definition.select("representative")}
    assert {name: round(one.bytes / 4.3e12 * 1e6, 1) for name, one in work.items()} == {
        "1x14336x4096-bf16": 27.3,
        "16x18432x7168-bf16": 61.6,
        "16x2112x7168-bf16": 7.1,
        "32x28672x8192-bf16": 109.8,
    }


def test_the_library_is_a_peer():
    x, w = torch.randn(3, 40), torch.randn(5, 40)
    torch.testing.assert_close(FILE.peers["cublas"](x, w), FILE.reference(x, w))


def shares(path: Path, m: int, n: int, k: int) -> tuple[int, int]:
    """Rows of a block and parts of k that a kernel chooses."""
    module = execute_file(path)
    tokens = min(64, max(16, 1 << (m - 1).bit_length()))
    length = -(-k // module.STEP) if path.parent.name == "cuda" else k
    return module.share(n, length, tokens, -(-m // 64), MULTIPROCESSORS)


@pytest.mark.parametrize(
    "path", [path for path in KERNELS if "def share(" in path.read_text()], ids=lambda p: p.stem
)
def test_one_wave_takes_all_rows(path):
    for workload in FILE.definition.workloads:
        m, n, k = (workload.axes[axis] for axis in "mnk")
        rows, count = shares(path, m, n, k)
        assert rows % 16 == 0
        assert rows <= 256
        if workload.timed:
            blocks = -(-n // rows) * count
            assert 0.95 * MULTIPROCESSORS <= blocks <= MULTIPROCESSORS, workload.name


CLUSTERS = (132, 66, 31, 15)
"""Clusters of one, two, four and eight blocks that an H200 holds at a time, if 15 of eight fit."""


TIMED = [one for one in FILE.definition.workloads if one.timed]


@pytest.mark.parametrize("workload", TIMED, ids=lambda one: one.name)
def test_one_wave_of_clusters_takes_all_rows(workload):
    module = execute_file(FOLDER / "cuda" / "v5.py")
    m, n, k = (workload.axes[axis] for axis in "mnk")
    tokens = next(size for size in (8, 16, 32, 64) if m <= size)
    steps = -(-k // module.STEP)
    rows, count = module.split_work(n, steps, tokens, 1, CLUSTERS)
    clusters = CLUSTERS[module.SPLITS.index(count)]
    assert rows % 16 == 0
    assert rows <= 256
    assert 0.85 * clusters < -(-n // rows) <= clusters


def test_rows_beyond_one_wave_fill_several():
    rows, count = shares(VERSION, 16, 152064, 4096)
    assert count == 1
    waves = -(-152064 // rows) / MULTIPROCESSORS
    assert 0.95 < waves / -(-waves // 1) <= 1


@pytest.mark.parametrize("path", [path for path in KERNELS if path.parent.name == "triton"], ids=lambda p: p.stem)
def test_drafts_are_right_where_the_interpreter_can_tell(path, interpret):
    answer = interpret(path)
    assert "error" not in answer, answer["error"]
    assert [grade for grade in answer["graded"] if grade[2] != "PASSED"] == []
    assert answer["graded"]


NVIDIAS = [path for path in KERNELS if path.parent.name in ("cuda", "triton")]


@pytest.mark.parametrize("path", NVIDIAS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_kernels_multiply_on_tensor_cores_without_spilling(path, tmp_path, monkeypatch):
    main = {"cuda": cuda_compile.main, "triton": triton_compile.main}[path.parent.name]
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    asked = ["16x18432x7168-bf16", "16x2112x7168-bf16"]
    reports = compile_reports(main, path, FILE.definition, asked, tmp_path)
    for report in reports:
        notes = "; ".join(report.notes)
        assert report.spill_bytes == 0, report.kernel
        assert int(re.search(r"HGMMA x(\d+)", notes)[1]) >= 4, f"{report.kernel}: {notes}"
        assert "will not launch" not in notes
        if path.parent.name == "cuda":
            assert "UTMALDG x0" not in notes
        assert report.shared_bytes > 80 * 1024, "the ring is shallow"
