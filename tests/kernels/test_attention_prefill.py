"""Attention over whole prompts: its bounds pass weights in 16 bits and an approximate tangent, and refuse less;
the draft is right with and without a maximum, and compiles."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from compiled import compile_reports
from kernel_copies import copy_with

from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file, peers
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.triton import compile as triton_compile

FOLDER = Path(__file__).parents[2] / "kernels" / "attention_prefill"
FILE = definition_file.load_definition(FOLDER / "definition.py")
RAGGED = next(one for one in FILE.definition.workloads if one.name == "3x20x2x2-fp16-ragged-cap8")
BRAIN = RAGGED.model_copy(update={"dtype": "bfloat16", "scalars": {"cap": 30.0}})
DRAFT = FOLDER / "drafts" / "triton" / "01_capped.py"


def by_tiles(
    query,
    keys,
    values,
    lengths,
    sinks,
    cap,
    *,
    weights=None,
    caps=True,
    shift=0,
    sink=True,
    group=None,
    halves=0.0,
):
    """Tiles of 16 keys whose exponentials are added as they are; with one fault by choice."""
    _, tokens, heads, dim = query.shape
    group = group or heads // keys.shape[2]
    seen = torch.arange(tokens)[:, None] + shift >= torch.arange(tokens)
    heads_of = torch.arange(heads) // group % keys.shape[2]
    k, v = (each.float()[:, :, heads_of].transpose(1, 2) for each in (keys, values))
    x = query.float().transpose(1, 2) @ k.mT * dim**-0.5
    tangent = torch.tanh(x / cap)
    score = tangent * (1 + halves) * cap if caps else x
    top = score.masked_fill(~seen, -torch.inf).amax(-1, keepdim=True)
    weight = torch.exp(score - top).masked_fill(~seen, 0)
    total = weight.sum(-1, keepdim=True) + sink * torch.exp(sinks[:, None, None] - top)
    lift = 2.0**14 if weights is torch.float16 else 1.0  # smaller weights vanish
    rounded = (weight * lift).to(weights).float() / lift if weights else weight
    y = sum(w @ part for w, part in zip(rounded.split(16, -1), v.split(16, -2), strict=True)) / total
    there = torch.arange(tokens) < lengths[:, None]
    return y.transpose(1, 2).masked_fill(~there[..., None, None], 0).to(query.dtype)


def graded(workload, distribution=None, **settings):
    inputs = Inputs(FILE, workload, 5, "cpu").draw(distribution)
    inputs["lengths"][0] = workload.axes["tokens"]
    truth = correctness.compute_truth(FILE, workload, inputs, correlated=distribution is not None)
    outputs = FILE.outputs(by_tiles(*FILE.arguments(workload, inputs), **settings))
    return correctness.grade_outputs(truth, outputs).status


@pytest.mark.parametrize("workload", [RAGGED, BRAIN], ids=lambda one: one.dtype)
@pytest.mark.parametrize("distribution", [None, "large", "shifted", "one_hot", "constant", "near_tie"])
def test_weights_of_16_bits_and_an_approximate_tangent_hold_the_bounds(workload, distribution):
    kind = getattr(torch, workload.dtype)
    assert graded(workload, distribution, weights=kind, halves=2.0**-11) == "PASSED"
    assert graded(workload, distribution, weights=kind, halves=-(2.0**-11)) == "PASSED"


@pytest.mark.parametrize(
    "fault",
    [
        {"caps": False},
        {"shift": 1},
        {"sink": False},
        {"group": 1},
        {"weights": torch.float8_e4m3fn},
        {"halves": 2.0**-4},
    ],
    ids=str,
)
def test_what_is_wrong_fails(fault):
    drawn = "large" if "caps" in fault or "halves" in fault else None
    assert graded(BRAIN, drawn, **fault) == "INCORRECT_NUMERICAL"


def test_the_reference_is_sdpa_without_cap_and_sink():
    inputs = Inputs(FILE, BRAIN, 3, "cpu").draw()
    inputs["lengths"][:] = BRAIN.axes["tokens"]
    q, k, v = (inputs[name].float() for name in ("query", "keys", "values"))
    y = FILE.reference(q, k, v, inputs["lengths"], torch.full_like(inputs["sinks"], -torch.inf), 1e6)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(each.transpose(1, 2) for each in (q, k, v)), is_causal=True, enable_gqa=True
    )
    torch.testing.assert_close(y, expected.transpose(1, 2), atol=2e-3, rtol=1e-3)


def test_chunks_change_nothing(monkeypatch):
    arguments = FILE.arguments(RAGGED, Inputs(FILE, RAGGED, 3, "cpu").draw())
    expected = FILE.reference(*arguments)
    monkeypatch.setitem(FILE.reference.__globals__, "CHUNK", 1000)
    torch.testing.assert_close(FILE.reference(*arguments), expected)
    assert FILE.extra(*arguments).shape == expected.shape


def test_floors():
    """At 790 TFLOP/s, in us."""
    work = {one.name: FILE.definition.work(one) for one in FILE.definition.select("representative")}
    assert {name: round(max(one.flops / 790e6, one.bytes / 4.3e6)) for name, one in work.items()} == {
        "1x2048x8x4-bf16-cap30": 43,
        "4x4096x8x4-bf16-cap30": 696,
        "1x16384x8x4-bf16-cap30": 2784,
        "4x8192x8x4-bf16-ragged-cap30": 989,
        "4x4096x8x8-bf16-cap50": 1392,
    }


@pytest.mark.filterwarnings("ignore:flex_attention called without")
def test_flex_attention_computes_the_same(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    workload = RAGGED.model_copy(update={"dtype": "float32", "axes": {**RAGGED.axes, "tokens": 128}})
    arguments = FILE.arguments(workload, Inputs(FILE, workload, 5, "cpu").draw())
    y = peers.get_peer(FILE, "flex").run(*arguments)
    assert y.is_contiguous()
    torch.testing.assert_close(y, FILE.reference(*arguments), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("constants", "dtype"),
    [
        ({}, "float16"),
        ({"ROWS": 32, "KEYS": 32}, "float16"),
        ({"ROWS": 64, "KEYS": 16}, "float32"),
        ({"ROWS": 16, "KEYS": 64}, "float32"),
    ],
    ids=str,
)
def test_the_draft_is_right_in_the_interpreter(constants, dtype, interpret, tmp_path):
    copy = copy_with(tmp_path, DRAFT, **constants)
    definition = copy.parents[2] / "definition.py"
    each = f'one.model_copy(update={{"dtype": {dtype!r}, "name": str(i)}})'
    kept = f"tuple({each} for i, one in enumerate(definition.workloads))"
    text = f'definition = definition.model_copy(update={{"workloads": {kept}}})'
    definition.write_text(f"{definition.read_text()}\n\n{text}\n")
    answer = interpret(copy)
    assert "error" not in answer, answer["error"]
    assert [grade for grade in answer["graded"] if grade[2] != "PASSED"] == []
    assert len(answer["graded"]) >= 5


@pytest.mark.parametrize("constants", [{}, {"ROWS": 64, "WARPS": 4, "STAGES": 2}], ids=str)
def test_the_draft_compiles_without_spills_and_runs_special_functions_under_products(
    constants, tmp_path, monkeypatch
):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    asked = ["1x2048x8x4-bf16-cap30", "4x4096x8x8-bf16-cap50"]
    source = copy_with(tmp_path, DRAFT, **constants)
    reports = compile_reports(triton_compile.main, source, FILE.definition, asked, tmp_path)
    assert len(reports) == 2
    for report in reports:
        notes = "; ".join(report.notes)
        assert report.spill_bytes == 0
        assert "UTMALDG x0" not in notes
        assert "will not launch" not in notes
    free, usual = sorted(
        (path.read_text() for path in tmp_path.glob("prefill_kernel*.sass")), key=lambda text: text.count("FMNMX")
    )
    assert free.count("FMNMX") < 10, "a maximum is left"
    for sass in (free, usual):
        between = sass.split("WARPGROUP.DEPBAR")
        under = max(part.count("MUFU.TANH") for part in between if part.count("HGMMA") >= 8)
        assert under >= 24, "special functions wait for products"
