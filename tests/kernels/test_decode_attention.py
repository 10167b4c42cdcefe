"""Attention of one new token: its bounds pass what is honest and refuse what is not; the version is right, and
compiles."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from compiled import compile_reports

from warpsmith.core.evaluation import Status
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.triton import compile as triton_compile

pytestmark = pytest.mark.usefixtures("forked_compilers")

KERNELS = Path(__file__).parents[2] / "kernels" / "decode_attention"
FILE = definition_file.load_definition(KERNELS / "definition.py")
GROUPED = next(one for one in FILE.definition.workloads if one.name == "2x3x2x129x40-fp32")
VERSION = KERNELS / "triton" / "v1.py"


def by_parts(query, keys, values, lengths, parts=3, *, missing=0, shift=0):
    """Parts of the cache joined by log-sum-exp; `missing` tokens left out, heads of the cache moved by `shift`."""
    batch, kv, _, dim = keys.shape
    y = torch.empty_like(query)
    group = query.shape[1] // kv
    for b in range(batch):
        length = max(1, int(lengths[b]) - missing)
        for h in range(query.shape[1]):
            head = (h // group + shift) % kv
            score = keys[b, head, :length] @ query[b, h] * dim**-0.5
            tops, sums, rows = [], [], []
            for part in torch.arange(length).chunk(parts):
                top = score[part].max()
                weight = torch.exp(score[part] - top)
                tops.append(top)
                sums.append(weight.sum())
                rows.append(weight @ values[b, head, part])
            share = torch.exp(torch.stack(tops) - max(tops))
            y[b, h] = (torch.stack(rows) * share[:, None]).sum(0) / (torch.stack(sums) * share).sum()
    return y


def grade(distribution=None, **settings):
    values = Inputs(FILE, GROUPED, 5, "cpu").draw(distribution)
    truth = correctness.compute_truth(FILE, GROUPED, values, correlated=distribution is not None)
    return correctness.grade_outputs(truth, {"y": by_parts(**values, **settings)}).status


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("distribution", [None, "wide", "large", "denormal", "far"])
def test_honest_parts_hold_the_bounds(distribution, parts):
    assert grade(distribution, parts=parts) is Status.PASSED


@pytest.mark.parametrize("settings", [{"missing": 1}, {"shift": 1}])
def test_a_missing_token_and_a_wrong_head_do_not(settings):
    assert grade(**settings) is Status.INCORRECT_NUMERICAL


def test_lengths_reach_from_one_token_to_the_whole_cache():
    workload = next(one for one in FILE.definition.workloads if one.name == "256x8x1x512x64-bf16")
    small = workload.model_copy(update={"axes": {**workload.axes, "kv": 1, "dim": 1}})
    lengths = Inputs(FILE, small, 3, "cpu").draw()["lengths"]
    assert 1 <= lengths.min() < 20
    assert 492 < lengths.max() <= 512


def test_the_version_is_right_in_the_interpreter(interpret):
    result = interpret(VERSION)
    assert "error" not in result, result["error"]
    assert {verdict[2] for verdict in result["graded"]} == {"PASSED"}


def test_the_version_compiles_without_spilling(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    workloads = ["8x16x1x1024x64-bf16", "32x8x8x4096x128-bf16"]
    kernels = compile_reports(triton_compile.main, VERSION, FILE.definition, workloads, tmp_path)
    assert {kernel.kernel for kernel in kernels} >= {"single_kernel", "grouped_kernel", "join_kernel"}
    assert {kernel.spill_bytes for kernel in kernels} == {0}
