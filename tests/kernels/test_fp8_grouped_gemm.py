"""Products of experts: empty ones, padding and skew are drawn right, the bound refuses the wrong expert, DeepGEMM
gets its layout, and the draft is right and compiles."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from compiled import compile_reports

from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file, peers
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.cuda import compile as cuda_compile
from warpsmith.languages.shared.python_file import execute_file
from warpsmith.languages.triton import compile as triton_compile

FOLDER = Path(__file__).parents[2] / "kernels" / "fp8_grouped_gemm"
FILE = definition_file.load_definition(FOLDER / "definition.py")
DRAFT = FOLDER / "drafts" / "triton" / "01_experts.py"
WARPS = FOLDER / "drafts" / "cuda" / "01_warps.py"
ODD = {one.name: one for one in FILE.definition.select("odd")}
PLAIN = ODD["6-of-3-in-3x250x512-bf16-zipf"]
SPARSE = ODD["4-of-4-in-300x40x384-bf16-zipf"]
MULTIPROCESSORS = 132


def promoted(a, a_scales, b, b_scales, offsets, *, expert=0, shift=0, row=0, blocks=None, last=0):
    """Blocks of 128 of k added in float32, a block of rows at a time; with one fault by choice."""
    y = torch.zeros(len(a), b.shape[1])
    for first in range(0, len(a), 128):
        rows = slice(first, first + 128)
        e = (int((offsets[1:] <= first).sum()) + expert) % len(b)
        for g in range(blocks or len(a_scales)):
            columns = slice(128 * g, 128 * g + 128)
            own = (g + shift) % len(a_scales)
            of_b = b_scales[e, ((torch.arange(b.shape[1]) + row) // 128).clamp(max=b_scales.shape[1] - 1), own]
            part = a[rows, columns].float() @ b[e][:, columns].float().t()
            y[rows] += part * a_scales[own, rows, None] * of_b
    return y.bfloat16()


def drawn(workload):
    return Inputs(FILE, workload, 5, "cpu").draw()


@pytest.mark.parametrize("workload", [PLAIN, SPARSE], ids=lambda one: one.name)
@pytest.mark.parametrize(
    "wrong",
    [{}, {"expert": 1}, {"shift": 1}, {"row": 128}, {"blocks": 2}],
    ids=lambda wrong: next(iter(wrong), "right"),
)
def test_what_is_wrong_fails(workload, wrong):
    if wrong == {"row": 128} and workload is SPARSE:
        return  # it has one block of scales
    inputs = drawn(workload)
    truth = correctness.compute_truth(FILE, workload, inputs)
    outputs = FILE.outputs(promoted(*FILE.arguments(workload, inputs), **wrong))
    status = correctness.grade_outputs(truth, outputs).status
    assert status == ("INCORRECT_NUMERICAL" if wrong else "PASSED")


@pytest.mark.parametrize("workload", FILE.definition.select("odd"), ids=lambda one: one.name)
def test_as_many_experts_have_tokens_as_the_workload_says(workload):
    inputs, axes = drawn(workload), workload.axes
    counts = inputs["offsets"].diff()
    assert int((counts > 0).sum()) == axes["used"]
    assert int(counts.sum()) == 128 * axes["blocks"]
    assert bool((inputs["offsets"] % 128 == 0).all())
    a = inputs["a"].float()
    for first, last in zip(inputs["offsets"][:-1].tolist(), inputs["offsets"][1:].tolist(), strict=True):
        if first < last:
            given = a[first:last].ne(0).any(1)
            assert bool(given[: int(given.sum())].all()), "padding is at the end"
            assert last - first - int(given.sum()) < 128, "only the last block has padding"


def test_counts_fall_by_the_law():
    module = FILE.reference.__globals__
    counts = (
        module["_offsets"](640, 256, 256, "zipf", torch.Generator().manual_seed(3)).diff().div(128).sort().values
    )
    assert int(counts[-1]) > 60
    assert int(counts[128]) <= 2
    even = module["_offsets"](256, 8, 8, "equal", torch.Generator()).diff()
    assert set(even.tolist()) == {4096}


def m_grouped_fp8_gemm_nt_contiguous(a, b, y, experts, *, disable_ue8m0_cast):
    """What DeepGEMM's function of that name does, as strict about layouts."""
    assert disable_ue8m0_cast
    assert a[1].stride() == (1, len(a[0]))
    assert experts.dtype == torch.int32
    offsets = torch.searchsorted(experts.long(), torch.arange(len(b[0]) + 1)).int()
    y.copy_(FILE.reference(a[0], a[1].t(), b[0], b[1], offsets))


def test_deep_gemm_gets_the_expert_of_each_row(monkeypatch):
    library = SimpleNamespace(m_grouped_fp8_gemm_nt_contiguous=m_grouped_fp8_gemm_nt_contiguous, __spec__=object())
    monkeypatch.setitem(sys.modules, "deep_gemm", library)
    arguments = list(drawn(SPARSE).values())
    assert torch.equal(peers.get_peer(FILE, "deepgemm")(*arguments), FILE.reference(*arguments))


def test_floors():
    """At 4.3 TB/s and 1580 TFLOP/s, in us."""
    works = {one.name: FILE.definition.work(one) for one in FILE.definition.select("representative")}
    assert {name: round(max(one.bytes / 4.3e6, one.flops / 1580e6)) for name, one in works.items()} == {
        "75-of-75-in-256x512x7168-bf16-zipf": 83,
        "192-of-180-in-256x512x7168-bf16-zipf": 202,
        "310-of-240-in-256x512x7168-bf16-zipf": 283,
        "640-of-256-in-256x512x7168-bf16-zipf": 381,
        "640-of-256-in-256x7168x256-bf16-zipf": 387,
        "256-of-4-in-4x4096x7168-bf16-equal": 1218,
        "256-of-8-in-8x7168x2048-bf16-equal": 609,
        "32-of-20-in-32x768x2048-bf16-zipf": 11,
    }


def test_the_draft_is_right_in_the_interpreter(interpret):
    answer = interpret(DRAFT)
    assert "error" not in answer, answer["error"]
    assert [grade[0] for grade in answer["graded"] if grade[2] != "PASSED"] == []
    assert len(answer["graded"]) == 5


def test_a_tile_is_as_wide_as_waves_are_full():
    width_of = execute_file(DRAFT).width_of
    sizes = ((256, 4096), (75, 512), (640, 512))
    assert [width_of(blocks, n, MULTIPROCESSORS) for blocks, n in sizes] == [192, 192, 128]


def test_the_draft_compiles_for_tensor_cores_without_spills(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    asked = ["640-of-256-in-256x512x7168-bf16-zipf", "256-of-4-in-4x4096x7168-bf16-equal"]
    reports = compile_reports(triton_compile.main, DRAFT, FILE.definition, asked, tmp_path)
    assert len(reports) == 2
    for report in reports:
        notes = "; ".join(report.notes)
        assert report.spill_bytes == 0, report.kernel
        assert int(re.search(r"QGMMA x(\d+)", notes)[1]) >= 8, notes
        assert "UTMALDG x0" not in notes
        assert "will not launch" not in notes
        assert report.shared_bytes > 90 * 1024, "too little is under way"
    assert min(report.registers for report in reports) <= 128, "one block a multiprocessor"


HOST = """
#include <algorithm>
#define __device__
#define __forceinline__ inline
#define __ldg(at) (*(at))
using std::min;
{functions}
extern "C" void place(int work, int blocks, int pairs, int band, int wide, int rank, int* answer) {{
  const Tile tile = tile_at(work, blocks, pairs, band, wide, rank);
  answer[0] = tile.row, answer[1] = tile.column;
}}
extern "C" int expert(const int* offsets, int experts, int row) {{ return expert_of(offsets, experts, row); }}
"""


@pytest.fixture(scope="module")
def device_functions(tmp_path_factory):
    """The draft's own functions that place tiles, compiled for this machine."""
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    source = execute_file(WARPS).SOURCE
    parts = [re.search(rf"(?ms)^{re.escape(first)}.*?^}}\n", source)[0] for first in (
        "__device__ __forceinline__ int expert_of", "struct Tile { int row, column; };"
    )]  # fmt: skip
    folder = tmp_path_factory.mktemp("host")
    (folder / "host.cpp").write_text(HOST.format(functions="".join(parts)))
    subprocess.run(
        ["g++", "-shared", "-fPIC", "-o", str(folder / "host.so"), str(folder / "host.cpp")], check=True
    )
    return ctypes.CDLL(str(folder / "host.so"))


@pytest.mark.parametrize("wide", [128, 192])
@pytest.mark.parametrize(("blocks", "n"), [(1, 1), (75, 512), (33, 7168)])
def test_pairs_of_blocks_take_each_tile_once(device_functions, blocks, n, wide):
    module = execute_file(WARPS)
    pairs, tiles = module.pairs_of(n, wide), []
    for work in range(blocks * pairs):
        for rank in (0, 1):
            answer = (ctypes.c_int * 2)()
            device_functions.place(work, blocks, pairs, module.GROUP, wide, rank, answer)
            tiles.append(tuple(answer))
        assert tiles[-1][0] == tiles[-2][0], "a pair shares its rows"
    rows, columns = (range(0, 128 * blocks, 128), range(0, 2 * wide * pairs, wide))
    assert sorted(tiles) == sorted((row, column) for row in rows for column in columns)
    assert columns[-1] + wide >= n


def test_a_row_belongs_to_the_expert_that_ends_behind_it(device_functions):
    offsets = torch.tensor([0, 0, 128, 384, 384, 384, 512], dtype=torch.int32)
    experts = [device_functions.expert(ctypes.c_void_p(offsets.data_ptr()), 6, row) for row in range(0, 512, 128)]
    assert experts == [1, 2, 2, 5]


def test_the_warps_compile_for_tensor_cores_without_spills(tmp_path):
    asked = ["640-of-256-in-256x512x7168-bf16-zipf", "256-of-4-in-4x4096x7168-bf16-equal"]
    reports = compile_reports(cuda_compile.main, WARPS, FILE.definition, asked, tmp_path)
    assert len(reports) == 2
    for report in reports:
        notes = "; ".join(report.notes)
        assert report.spill_bytes == 0, report.kernel
        assert int(re.search(r"QGMMA x(\d+)", notes)[1]) >= 4, notes
        assert "UTMALDG x0" not in notes
        assert "will not launch" not in notes
        assert report.shared_bytes > 190 * 1024, "the ring is shallow"
