"""Decode over pages: the bound passes weights in 16 bits and refuses less; FlashAttention gets the same call; the
kernels are right where that shows without a GPU, and compile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from compiled import compile_reports

from warpsmith.lab import peer_libraries
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file, peers
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.cuda import compile as cuda_compile
from warpsmith.languages.shared.python_file import execute_file
from warpsmith.languages.triton import compile as triton_compile

FOLDER = Path(__file__).parents[2] / "kernels" / "paged_decode"
FILE = definition_file.load_definition(FOLDER / "definition.py")
SHARED = FILE.definition.find_workload("2x16x2x8x128-7x32-bf16-ragged")
SMALL = FILE.definition.find_workload("2x3x2x5x128-9x16-bf16-ragged")
KERNEL = FOLDER / "drafts" / "triton" / "01_pages.py"
CUDA = FOLDER / "cuda" / "v1.py"
TURNS = FOLDER / "drafts" / "cuda" / "02_turns.py"


FORWARD = (
    "q", "k", "v", "k_new", "v_new", "q_v", "out", "cu_seqlens_q", "cu_seqlens_k", "cu_seqlens_k_new",
    "seqused_q", "seqused_k", "max_seqlen_q", "max_seqlen_k", "page_table", "kv_batch_idx", "leftpad_k",
    "rotary_cos", "rotary_sin", "seqlens_rotary", "q_descale", "k_descale", "v_descale", "softmax_scale",
    "is_causal", "window_size_left", "window_size_right", "softcap", "is_rotary_interleaved",
    "scheduler_metadata", "num_splits", "pack_gqa", "sm_margin", "s_aux", "cp_world_size", "cp_rank",
    "cp_tot_seqused_k",
)  # fmt: skip
"""Arguments of FlashAttention 3, in the order of vLLM's library."""


def by_sequences(
    query, keys, values, table, lengths, scale, *, weights=None, missing=0, causal=True, in_order=False, head=0
):
    """Each query by itself; weights in a type by choice, and faults."""
    y, page, group = torch.zeros_like(query), keys.shape[1], query.shape[2] // keys.shape[2]
    tokens = query.shape[1]
    for b, s, h in torch.cartesian_prod(*(torch.arange(size) for size in query.shape[:3])).tolist():
        seen = max(1, int(lengths[b]) - (tokens - 1 - s) * causal - missing)
        own = torch.arange(table.shape[1]) if in_order else table[b].long()
        of_head = (h // group + head) % keys.shape[2]
        k, v = (each[own].flatten(0, 1)[:seen, of_head].float() for each in (keys, values))
        assert len(k) == min(seen, page * len(own))
        weight = torch.softmax(k @ query[b, s, h].float() * scale, 0)
        y[b, s, h] = (weight.to(weights).float() if weights else weight) @ v
    return y


def graded(workload, distribution=None, **settings):
    inputs = Inputs(FILE, workload, 5, "cpu").draw(distribution)
    truth = correctness.compute_truth(FILE, workload, inputs, correlated=distribution is not None)
    outputs = FILE.outputs(by_sequences(*FILE.arguments(workload, inputs), **settings))
    return correctness.grade_outputs(truth, outputs).status


@pytest.mark.parametrize("workload", [SHARED, SMALL], ids=lambda one: one.name)
@pytest.mark.parametrize("distribution", [None, "large", "shifted", "one_hot", "constant", "near_tie"])
def test_weights_in_the_inputs_type_hold_the_bound(workload, distribution):
    assert graded(workload, distribution, weights=torch.bfloat16) == "PASSED"


@pytest.mark.parametrize(
    "fault",
    [{"missing": 1}, {"causal": False}, {"in_order": True}, {"head": 1}, {"weights": torch.float8_e4m3fn}],
    ids=str,
)
def test_what_is_wrong_fails(fault):
    assert graded(SMALL, **fault) == "INCORRECT_NUMERICAL"


def test_what_lies_behind_a_sequence_does_not_count():
    inputs = Inputs(FILE, SMALL, 5, "cpu").draw()
    inputs["lengths"][:] = 40
    expected = FILE.reference(*FILE.arguments(SMALL, inputs))
    others = set(range(SMALL.axes["pages"])) - set(inputs["table"][:, :3].flatten().tolist())
    for name in ("keys", "values"):
        inputs[name][list(others)] = torch.nan
        inputs[name][inputs["table"][:, 2].long(), 8:] = torch.inf
    assert torch.equal(FILE.reference(*FILE.arguments(SMALL, inputs)), expected)


def test_floors():
    """At 4.3 TB/s and 790 TFLOP/s, in us: the greater of the two."""
    work = [FILE.definition.work(one) for one in FILE.definition.select("representative")]
    floors = [round(max(one.bytes / 4.3e12, one.flops / 790e12) * 1e6) for one in work]
    assert floors == [125, 126, 129, 266, 266]


def test_pages_of_a_sequence_differ_and_sequences_may_share_some():
    table = Inputs(FILE, SHARED, 3, "cpu").draw()["table"]
    assert all(len(row.unique()) == len(row) for row in table)
    assert int(table.max()) < SHARED.axes["pages"]
    assert len(table.unique()) < table.numel()


def test_flash_attention_gets_the_cache_as_it_is(monkeypatch):
    def forward(*arguments):
        given = dict(zip(FORWARD, arguments, strict=True))
        assert (given["is_causal"], given["num_splits"], given["cp_world_size"]) == (True, 0, 1)
        assert (given["max_seqlen_q"], given["max_seqlen_k"]) == (3, 144)
        order = ("q", "k", "v", "page_table", "seqused_k", "softmax_scale")
        return FILE.reference(*(given.pop(name) for name in order)), None

    stand_in = type("", (), {"fwd": staticmethod(forward)})
    monkeypatch.setattr(peer_libraries, "vllm", lambda _: stand_in)
    arguments = FILE.arguments(SMALL, Inputs(FILE, SMALL, 5, "cpu").draw())
    torch.testing.assert_close(peers.get_peer(FILE, "fa3").run(*arguments), FILE.reference(*arguments))


def test_the_kernel_is_right_in_the_interpreter(interpret):
    answer = interpret(KERNEL)
    assert "error" not in answer, answer["error"]
    assert [grade for grade in answer["graded"] if grade[2] != "PASSED"] == []


@pytest.mark.parametrize(
    ("sizes", "parts"), [((32, 8, 4096), 1), ((32, 8, 16384), 4), ((1, 8, 4096), 16), ((1, 1, 64), 1)], ids=str
)
def test_few_or_long_sequences_are_split(sizes, parts):
    assert execute_file(KERNEL).splits_of(*sizes) == parts


def test_the_kernel_does_not_spill(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    asked = [one.name for one in FILE.definition.select("representative")]
    reports = compile_reports(triton_compile.main, KERNEL, FILE.definition, asked, tmp_path)
    assert {report.kernel for report in reports} == {"attend_kernel", "join_kernel"}
    for report in reports:
        assert report.spill_bytes == 0, report.kernel
        if report.kernel == "attend_kernel":
            assert int(re.search(r"HGMMA x(\d+)", "; ".join(report.notes))[1]) >= 8


@pytest.mark.parametrize(
    ("heads", "cut"),
    [(8, (128, 8)), (1, (132, 1)), (64, (128, 64)), (67, (132, 1)), (132, (132, 132)), (200, (132, 1))],
    ids=str,
)
def test_blocks_have_a_line_for_each_head_where_few_are_idle(heads, cut):
    assert execute_file(CUDA).cut_lines(132, heads) == cut


def test_a_block_fits_into_shared_memory():
    barriers = 2 * 8 * 8
    for many in (False, True):
        assert execute_file(CUDA).shared_bytes(many) + barriers <= 227 * 1024


@pytest.mark.parametrize(
    ("path", "products", "spilled"),
    [(CUDA, {16}, 0), (TURNS, {16, 32}, 32)],  # the draft's by the warps that copy, once a head
    ids=["v1", "02_turns"],
)
def test_cuda_multiplies_on_tensor_cores_without_spilling_there(path, products, spilled, tmp_path):
    asked = [one.name for one in FILE.definition.select("representative")]
    reports = compile_reports(cuda_compile.main, path, FILE.definition, asked, tmp_path)
    assert {report.kernel for report in reports} == {"attend", "join_parts"}
    for report in reports:
        assert report.spill_bytes <= spilled, report.kernel
        assert "will not launch" not in "; ".join(report.notes)
    notes = ["; ".join(report.notes) for report in reports if report.kernel == "attend"]
    assert {int(re.search(r"HGMMA x(\d+)", each)[1]) for each in notes} == products
