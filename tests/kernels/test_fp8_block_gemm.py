"""Block-scaled fp8 products: the bound passes what Hopper's tensor cores round and refuses sums that are never
promoted; peers get the same numbers; the kernels are right and compile."""

from __future__ import annotations

import itertools
import math
import re
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

FOLDER = Path(__file__).parents[2] / "kernels" / "fp8_block_gemm"
FILE = definition_file.load_definition(FOLDER / "definition.py")
KERNELS = [FOLDER / "triton" / "v1.py", FOLDER / "drafts" / "triton" / "02_few.py"]
MULTIPROCESSORS = 132


def at(m, n, k):
    return FILE.definition.workloads[0].model_copy(update={"axes": {"m": m, "n": n, "groups": k // 128}})


SHORT = at(8, 16, 128)
PLAIN = at(5, 131, 512)
LONG = at(3, 16, 16384)


def truncated(values, exponents):
    """Numbers without what lies below 13 bits under an exponent."""
    unit = torch.exp2(exponents - 13)
    return (values / unit).trunc() * unit


def tensor_core(a, b):
    """What wgmma gives: 32 products at once, aligned with the sum so far and truncated to 14 bits."""
    total = torch.zeros(len(a), len(b), dtype=torch.float64)
    for left, right in zip(a.double().split(32, 1), b.double().split(32, 1), strict=True):
        terms = torch.cat((left[:, None] * right, total[..., None]), -1)
        top = terms.abs().amax(-1, keepdim=True).clamp(min=1e-30).log2().floor()
        total = truncated(terms, top).sum(-1)
        total = truncated(total, total.abs().clamp(min=1e-30).log2().floor())
    return total.float()


def promoted(a, a_scales, b, b_scales, *, product=tensor_core, blocks=None, shift=0, row=0, scaled=True):
    """Blocks of 128 of k added in float32; faults by choice."""
    m, n = len(a), len(b)
    y = torch.zeros(m, n)
    for g in range(len(a_scales) if blocks is None else blocks):
        part = product(a[:, 128 * g : 128 * g + 128], b[:, 128 * g : 128 * g + 128])
        own = (g + shift) % len(a_scales)
        of_b = b_scales[((torch.arange(n) + row) // 128).clamp(max=len(b_scales) - 1), g]
        y += part * a_scales[own, :m, None] * of_b if scaled else part * a_scales.mean() * b_scales.mean()
    return y.bfloat16()


def exact(a, b):
    return a.float() @ b.float().t()


def never_promoted(a, a_scales, b, b_scales):
    left = a.float() * a_scales.t()[: len(a)].repeat_interleave(128, 1)
    right = b.float() * b_scales.repeat_interleave(128, 0)[: len(b)].repeat_interleave(128, 1)
    return tensor_core(left, right).bfloat16()


def drawn(workload, distribution=None):
    return Inputs(FILE, workload, 5, "cpu").draw(distribution)


def graded(run, workload, distribution=None, **settings):
    inputs = drawn(workload, distribution)
    truth = correctness.compute_truth(FILE, workload, inputs, correlated=distribution is not None)
    outputs = FILE.outputs(run(*FILE.arguments(workload, inputs), **settings))
    return correctness.grade_outputs(truth, outputs)


@pytest.mark.parametrize(
    "distribution",
    [None, "shifted", "constant", "sorted", "heavy_end", "near_tie", "sparse", "runs", "repeated", "periodic"],
)
@pytest.mark.parametrize("workload", [SHORT, PLAIN, LONG], ids=["short", "plain", "long"])
def test_sums_that_are_promoted_pass(workload, distribution):
    for product in (tensor_core, exact):
        grade = graded(promoted, workload, distribution, product=product)
        assert grade.status == "PASSED", grade.detail
        assert grade.worst < 0.6, "real tensor cores need room"


@pytest.mark.parametrize("distribution", ["shifted", "constant", "near_tie"])
def test_sums_that_are_never_promoted_fail(distribution):
    assert graded(never_promoted, LONG, distribution).status == "INCORRECT_NUMERICAL"


@pytest.mark.parametrize(
    "wrong", [{"blocks": 3}, {"shift": 1}, {"row": 1}, {"scaled": False}], ids=lambda wrong: next(iter(wrong))
)
def test_what_is_wrong_fails(wrong):
    assert graded(promoted, PLAIN, product=exact).status == "PASSED"
    assert graded(promoted, PLAIN, product=exact, **wrong).status == "INCORRECT_NUMERICAL"


def test_values_use_the_range_of_e4m3():
    values = drawn(at(64, 64, 1024))["a"].float()
    assert values.isfinite().all()
    assert 200 < values.abs().max() <= 448


def test_no_result_depends_on_the_padding_of_scales():
    inputs = drawn(PLAIN)
    expected = FILE.reference(*inputs.values())
    inputs["a_scales"][:, 5:] = torch.nan
    assert torch.equal(FILE.reference(*inputs.values()), expected)


def test_floors():
    """At 4.3 TB/s and 1580 TFLOP/s, in us."""
    works = {one.name: FILE.definition.work(one) for one in FILE.definition.select("representative")}
    floors = {name: round(max(one.bytes / 4.3e6, one.flops / 1580e6), 1) for name, one in works.items()}
    assert floors == {
        "64x2112x7168-bf16": 3.7,
        "64x24576x1536-bf16": 9.5,
        "64x7168x16384-bf16": 27.8,
        "128x4096x7168-bf16": 7.3,
        "4096x2112x7168-bf16": 78.5,
        "4096x24576x1536-bf16": 195.7,
        "4096x7168x16384-bf16": 608.9,
    }


# Peers: stand-ins that are as strict about layouts as the libraries.


def product_of(a, a_scales, b, b_scales):
    """The result from (m, k), (m, groups), (n, k) and (blocks, groups)."""
    return FILE.reference(a, a_scales.t().contiguous(), b, b_scales)


def scaled_mm(a, b, a_scales, b_scales, *, out_dtype):
    m, blocks, groups = len(a), -(-b.shape[1] // 128), a.shape[1] // 128
    assert a_scales.shape == (m, groups)
    assert a_scales.stride() == (1, m)
    assert b_scales.shape == (groups, blocks)
    assert b_scales.stride() == (1, -(-groups // 4) * 4)
    return product_of(a, a_scales, b.t(), b_scales.t()).to(out_dtype)


def fp8_gemm_nt(a, b, y, *, disable_ue8m0_cast):
    m, _ = a[1].shape
    assert a[1].stride() == (1, -(-m // 4) * 4), "DeepGEMM would copy it"
    assert b[1].is_contiguous()
    assert disable_ue8m0_cast
    y.copy_(product_of(a[0], a[1], b[0], b[1]))


def cutlass_scaled_mm(y, a, b, a_scales, b_scales, bias):
    assert bias is None
    assert a_scales.stride(0) == 1
    assert b_scales.stride(0) == 1
    y.copy_(product_of(a, a_scales, b.t(), b_scales.t()))


@pytest.mark.parametrize("name", list(FILE.peers))
def test_peers_get_what_the_reference_gets(name, monkeypatch):
    monkeypatch.setattr(torch, "_scaled_mm", scaled_mm)
    monkeypatch.setitem(sys.modules, "deep_gemm", SimpleNamespace(fp8_gemm_nt=fp8_gemm_nt, __spec__=object()))
    module = FILE.reference.__globals__
    monkeypatch.setattr(
        module["peer_libraries"], "vllm", lambda _: SimpleNamespace(cutlass_scaled_mm=cutlass_scaled_mm)
    )
    inputs = drawn(at(8, 256, 384))
    peer = peers.get_peer(FILE, name)
    arguments = list(inputs.values())
    if peer.prepare is not None:
        arguments = peers.PreparedWeights(peer, tuple(inputs)).arguments_of_run(0, arguments)
    assert torch.equal(peer(*arguments), FILE.reference(*inputs.values()))


@pytest.mark.parametrize(("name", "workload"), [("cublaslt", at(3, 256, 128)), ("vllm-cutlass", at(4, 192, 128))])
def test_shapes_that_a_peer_does_not_take_are_left_out(name, workload):
    with pytest.raises(NotImplementedError, match="race it at such a workload"):
        peers.get_peer(FILE, name)(*drawn(workload).values())


def test_deep_gemm_comes_from_vllms_wheel(tmp_path, monkeypatch):
    copy = tmp_path / "vllm" / "third_party" / "deep_gemm"
    copy.mkdir(parents=True)
    (copy / "__init__.py").write_text("def fp8_gemm_nt(a, b, y, disable_ue8m0_cast): y.fill_(7)\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    fresh = definition_file.load_definition(FOLDER / "definition.py")
    try:
        assert (peers.get_peer(fresh, "deepgemm")(*drawn(PLAIN).values()) == 7).all()
    finally:
        sys.modules.pop("deep_gemm", None)


def test_a_missing_peer_says_how_to_install_it():
    fresh = definition_file.load_definition(FOLDER / "definition.py")
    with pytest.raises(ImportError, match="pip install vllm"):
        peers.get_peer(fresh, "deepgemm")(*drawn(PLAIN).values())


# Kernels --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_kernels_are_right_where_the_interpreter_can_tell(path, interpret):
    answer = interpret(path)
    assert "error" not in answer, answer["error"]
    assert [grade for grade in answer["graded"] if grade[2] != "PASSED"] == []
    assert len(answer["graded"]) >= 3


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_waves_of_tiles_are_full(path):
    tile_of = execute_file(path).tile_of
    for workload in FILE.definition.select("representative"):
        m, n = workload.axes["m"], workload.axes["n"]
        if m == 4096:
            high, wide = tile_of(m, n, MULTIPROCESSORS)
            waves = -(-m // high) * -(-n // wide) / MULTIPROCESSORS
            assert waves / -(-waves // 1) > 0.88, workload.name


@pytest.mark.parametrize(
    ("path", "asked"),
    [(KERNELS[0], ["4096x2112x7168-bf16"]), (KERNELS[1], ["64x2112x7168-bf16", "128x4096x7168-bf16"])],
    ids=[path.stem for path in KERNELS],
)
def test_kernels_multiply_fp8_on_tensor_cores_without_spilling(path, asked, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    reports = compile_reports(triton_compile.main, path, FILE.definition, asked, tmp_path)
    assert len(reports) == len(asked)
    for report in reports:
        notes = "; ".join(report.notes)
        assert report.spill_bytes == 0, report.kernel
        assert int(re.search(r"QGMMA x(\d+)", notes)[1]) >= 4, f"{report.kernel}: {notes}"
        assert "UTMALDG x0" not in notes
        assert "will not launch" not in notes
        assert report.shared_bytes > 90 * 1024, "too little is under way"


CUDA = FOLDER / "cuda" / "v1.py"
SHARED_TOKENS = FOLDER / "drafts" / "cuda" / "02_shared_tokens.py"
CLUSTERS = (132, 66, 30, 15)
"""Clusters of one, two, four and eight blocks that an H200 holds at a time."""


@pytest.mark.parametrize("path", [CUDA, SHARED_TOKENS], ids=lambda path: path.stem)
@pytest.mark.parametrize("workload", [w for w in FILE.definition.workloads if w.axes["m"] <= 128], ids=str)
def test_few_tokens_leave_no_row_of_weights_out(workload, path):
    module = execute_file(path)
    m, n, steps = (workload.axes[axis] for axis in ("m", "n", "groups"))
    tokens = next(size for size in (8, 16, 32, 64, 128) if m <= size)
    rows, *shares = module.split_work(n, steps, tokens, 1, CLUSTERS)
    assert (rows % 16, rows <= module.most_rows(tokens)) == (0, True)
    assert math.prod(shares) in module.SPLITS
    if workload.timed:
        assert -(-n // rows) * shares[0] > 0.7 * MULTIPROCESSORS


def test_slices_of_shared_tokens_are_whole_rows_of_swizzled_tiles():
    module = execute_file(SHARED_TOKENS)
    for tokens, n, steps in itertools.product((8, 16, 32, 64, 128), (2112, 7168, 24576), (8, 56, 128)):
        *_, shares = module.split_work(n, steps, tokens, 1, CLUSTERS)
        assert tokens // shares % 8 == 0


@pytest.mark.parametrize("path", [CUDA, SHARED_TOKENS], ids=lambda path: path.stem)
def test_cuda_promotes_on_tensor_cores_without_spilling(path, tmp_path):
    asked = [f"{m}x{n}x7168-bf16" for m, n in ((16, 4096), (64, 2112), (128, 4096), (4096, 2112))]
    reports = compile_reports(cuda_compile.main, path, FILE.definition, asked, tmp_path)
    assert len(reports) == len(asked)
    for report in reports:
        notes = "; ".join(report.notes)
        assert report.spill_bytes == 0, report.kernel
        assert int(re.search(r"QGMMA x(\d+)", notes)[1]) >= 4, f"{report.kernel}: {notes}"
        assert "UTMALDG x0" not in notes
        assert "will not launch" not in notes
        assert report.shared_bytes > 60 * 1024, "too little is under way"
