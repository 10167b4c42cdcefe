"""Gradients of attention: those of autograd; the draft is right where the interpreter can tell, and compiles."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from compiled import compile_reports
from kernel_copies import copy_with

from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.cuda import compile as cuda_compile
from warpsmith.languages.shared.python_file import execute_file
from warpsmith.languages.triton import compile as triton_compile

FOLDER = Path(__file__).parents[2] / "kernels" / "attention_backward"
FILE = definition_file.load_definition(FOLDER / "definition.py")
IN_ORDER = FOLDER / "drafts" / "cuda" / "01_in_order.py"
DRAFT = FOLDER / "drafts" / "triton" / "01_two_kernels.py"
ODD = {workload.name: workload for workload in FILE.definition.select("odd")}


def drawn(name, seed=0, **changes):
    workload = ODD[name].model_copy(update=changes)
    return workload, Inputs(FILE, workload, seed, "cpu").draw()


def test_it_is_what_autograd_computes():
    _, tensors = drawn("2x61x1x3-bf16-ragged", distribution="normal")
    wide = {name: each.double() if each.is_floating_point() else each for name, each in tensors.items()}
    gradients = FILE.outputs(FILE.reference(*wide.values()))
    leaves = [wide[name].requires_grad_() for name in ("query", "keys", "values")]
    for b, length in enumerate(tensors["lengths"].tolist()):
        query, keys, values = (each[b, :length].transpose(0, 1) for each in leaves)
        y = torch.nn.functional.scaled_dot_product_attention(query, keys, values, is_causal=True, enable_gqa=True)
        torch.testing.assert_close(y.transpose(0, 1), wide["y"][b, :length], rtol=1e-2, atol=1e-2)
        y.backward(wide["dy"][b, :length].transpose(0, 1))
    for name, leaf in zip(gradients, leaves, strict=True):
        # y is rounded to bfloat16 in the forward pass, and is taken as it is
        torch.testing.assert_close(gradients[name], leaf.grad, rtol=1e-2, atol=1e-2)


def test_what_lies_behind_a_sequence_counts_for_nothing():
    _, tensors = drawn("3x110x2x2-bf16-ragged", 1)
    behind = torch.arange(110) >= tensors["lengths"][:, None]
    assert behind.any()
    expected = FILE.reference(*tensors.values())
    for name in ("query", "keys", "values", "y", "dy"):
        tensors[name] = tensors[name].clone().masked_fill_(behind[..., None, None], 7.0)
    tensors["lse"] = tensors["lse"].masked_fill(behind[:, None], -50.0)
    for before, after in zip(expected, FILE.reference(*tensors.values()), strict=True):
        assert torch.equal(before, after)
        assert not before[behind].any()


def test_weights_and_changes_may_be_rounded_and_no_more():
    workload, tensors = drawn("1x515x1x4-bf16", distribution="normal")
    truth = correctness.compute_truth(FILE, workload, tensors)

    def status(round_to):
        return correctness.grade_outputs(truth, FILE.outputs(rounded_gradients(tensors, round_to))).status

    assert status(lambda each: each.bfloat16().float()) == "PASSED"
    assert status(lambda each: each.to(torch.float8_e4m3fn).float()) == "INCORRECT_NUMERICAL"


def rounded_gradients(tensors, round_to):
    query, dy, y, keys, values = (
        tensors[name][0].float().transpose(0, 1) for name in ("query", "dy", "y", "keys", "values")
    )
    scores = query @ keys.transpose(1, 2) * 128**-0.5 - tensors["lse"][0][..., None]
    weights = torch.exp(scores).tril()
    change = weights * (dy @ values.transpose(1, 2) - (dy * y).sum(-1, keepdim=True))
    weights, change = round_to(weights), round_to(change)
    dquery = change @ keys * 128**-0.5
    dkeys = (change.transpose(1, 2) @ query).sum(0, keepdim=True) * 128**-0.5
    dvalues = (weights.transpose(1, 2) @ dy).sum(0, keepdim=True)
    return tuple(each.transpose(0, 1)[None].bfloat16() for each in (dquery, dkeys, dvalues))


SMALL = """
workloads = tuple(at(*sizes, "odd", "float16", **more) for sizes, more in [SIZES])
definition = definition.model_copy(update={"workloads": workloads})
"""


@pytest.mark.parametrize(
    ("constants", "sizes"),
    [
        ({}, "((1, 100, 1, 1), {}), ((1, 77, 1, 1), {'spare': 16})"),
        ({"LONG": 32, "SHORT": 16}, "((1, 1, 1, 1), {}), ((3, 20, 1, 2), {'spare': 15}), ((1, 50, 1, 2), {})"),
        ({"LONG": 16, "SHORT": 16}, "((2, 33, 1, 1), {'spare': 8}), ((1, 40, 1, 3), {})"),
    ],
    ids=["large tiles", "small tiles", "equal tiles"],
)
def test_the_draft_is_right_in_the_interpreter(constants, sizes, interpret, tmp_path):
    path = copy_with(tmp_path, DRAFT, **constants)
    definition = path.parents[2] / "definition.py"
    definition.write_text(definition.read_text() + SMALL.replace("SIZES", sizes))
    answer = interpret(path)
    assert "error" not in answer, answer["error"]
    assert [grade for grade in answer["graded"] if grade[2] != "PASSED"] == []
    assert len(answer["graded"]) >= 2


def test_the_draft_does_not_spill(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    reports = compile_reports(triton_compile.main, DRAFT, FILE.definition, ["4x4096x8x4-bf16"], tmp_path)
    assert {report.kernel for report in reports} == {"delta_kernel", "shared_kernel", "query_kernel"}
    assert [report.kernel for report in reports if report.spill_bytes] == []


def test_cuda_neither_serializes_nor_spills(tmp_path):
    asked = ["4x4096x8x4-bf16", "1x2048x8x4-fp16"]
    reports = compile_reports(cuda_compile.main, IN_ORDER, FILE.definition, asked, tmp_path)
    products = [report for report in reports if "gradients" in report.kernel]
    assert len(products) == 2
    for report in products:
        notes = "; ".join(report.notes)
        assert int(re.search(r"HGMMA x(\d+)", notes)[1]) == 32
        assert report.spill_bytes == 0
        assert "UTMALDG x0" not in notes


@pytest.mark.parametrize("group", [1, 4])
@pytest.mark.parametrize(("heads", "tokens"), [(1, 4096), (3, 2100), (5, 1000), (12, 129), (40, 300), (2, 100)])
@pytest.mark.parametrize("blocks_at_once", [1, 3, 8, 17, 132])
def test_every_block_gets_its_turn(heads, tokens, group, blocks_at_once):
    turns = execute_file(IN_ORDER).turns_of(tokens, heads, blocks_at_once)
    assert steps_taken(heads, tokens, group, blocks_at_once, turns)


def test_blocks_hardly_wait():
    module = execute_file(IN_ORDER)
    for heads, tokens, group in ((32, 4096, 4), (128, 2048, 1), (128, 1024, 4)):
        taken = steps_taken(heads, tokens, group, 132, module.turns_of(tokens, heads, 132))
        tiles, steps = tokens // 128, tokens // 64
        needed = heads * group * sum(steps - 2 * tile for tile in range(tiles)) / 132
        assert needed / taken > 0.85


def steps_taken(heads, tokens, group, blocks_at_once, turns):
    """Model of the kernel's turns: steps of equal length until all blocks have ended; 0 if some wait forever."""
    tiles, steps = -(-tokens // 128), -(-tokens // 64)
    paired = turns * 128 < tokens
    waiting = [
        [
            (head, tile, step, member)
            for tile in dict.fromkeys((turn, tiles - 1 - turn) if paired else (turn,))
            for step in range(steps - 1, 2 * tile - 1, -1)
            for member in range(group)
        ]
        for head in range(heads)
        for turn in range(turns)
    ][::-1]
    added, running, taken = {}, [], 0
    while waiting or running:
        while waiting and len(running) < blocks_at_once:
            running.append(iter(waiting.pop()))
            running[-1] = [next(running[-1]), running[-1]]
        ready = [block for block in running if added.get((block[0][0], *block[0][2:]), 0) == block[0][1]]
        if not ready:
            return 0
        for block in ready:
            (head, tile, *place), rest = block
            added[head, *place] = tile + 1
            block[0] = next(rest, None)
        running = [block for block in running if block[0]]
        taken += 1
    return taken
