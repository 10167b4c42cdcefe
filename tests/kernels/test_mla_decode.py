"""Absorbed MLA decode: its bounds pass weights in 16 bits and refuse less; the kernels are right and compile."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from compiled import compile_reports
from kernel_copies import copy_with

from warpsmith.lab import peer_libraries
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file, peers
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.cuda import compile as cuda_compile
from warpsmith.languages.shared.python_file import execute_file
from warpsmith.languages.triton import compile as triton_compile

FOLDER = Path(__file__).parents[2] / "kernels" / "mla_decode"
FILE = definition_file.load_definition(FOLDER / "definition.py")
RAGGED = next(one for one in FILE.definition.workloads if one.name == "2x2x5x100-fp16-ragged")
SHORT = RAGGED.model_copy(update={"dtype": "bfloat16"})
VERSION = FOLDER / "triton" / "v1.py"
GROUPS = FOLDER / "drafts" / "cuda" / "01_groups.py"


def by_parts(
    query, cache, lengths, scale, *, parts=3, weights=None, missing=0, causal=True, values=0, halves=False
):
    """Parts of each sequence joined by their lse; weights in a type by choice, and faults."""
    y, lse = torch.zeros(*query.shape[:-1], 512, dtype=query.dtype), torch.zeros(query.shape[:-1])
    tokens = query.shape[1]
    for b in range(len(query)):
        for s in range(tokens):
            seen = max(1, int(lengths[b]) - (tokens - 1 - s) * causal - missing)
            rows, logs = [], []
            for part in cache[b, :seen].float().chunk(parts):
                score = query[b, s].float() @ part.t() * scale
                top = score.amax(-1, keepdim=True)
                weight = torch.exp(score - top)
                total = weight.sum(-1, keepdim=True)
                rounded = weight.to(weights).float() if weights else weight
                rows.append(rounded @ part[:, values : values + 512] / total)
                logs.append((top + total.log())[:, 0])
            logs, rows = torch.stack(logs), torch.stack(rows)
            lse[b, s] = torch.logsumexp(logs, 0)
            share = torch.exp(logs - lse[b, s])
            y[b, s] = ((1 / len(rows) if halves else share[..., None]) * rows).sum(0)
    return y, lse


def graded(workload, distribution=None, **settings):
    inputs = Inputs(FILE, workload, 5, "cpu").draw(distribution)
    inputs["lengths"][0] = workload.axes["context"] - 1
    truth = correctness.compute_truth(FILE, workload, inputs, correlated=distribution is not None)
    outputs = FILE.outputs(by_parts(*FILE.arguments(workload, inputs), **settings))
    return correctness.grade_outputs(truth, outputs).status


@pytest.mark.parametrize("workload", [RAGGED, SHORT], ids=lambda one: one.dtype)
@pytest.mark.parametrize("distribution", [None, "large", "shifted", "one_hot", "constant", "near_tie"])
def test_weights_in_the_inputs_type_hold_the_bounds(workload, distribution):
    for parts in (1, 3):
        assert graded(workload, distribution, parts=parts, weights=getattr(torch, workload.dtype)) == "PASSED"


@pytest.mark.parametrize(
    "fault",
    [
        {"missing": 1},
        {"causal": False},
        {"values": 64},
        {"halves": True},
        {"weights": torch.float8_e4m3fn},
    ],
    ids=str,
)
def test_what_is_wrong_fails(fault):
    assert graded(SHORT, **fault) == "INCORRECT_NUMERICAL"


def test_floors():
    """At 4.3 TB/s and 790 TFLOP/s, in us: the greater of the two."""
    work = {one.name: FILE.definition.work(one) for one in FILE.definition.select("representative")}
    floors = {name: max(one.bytes / 4.3e12, one.flops / 790e12) * 1e6 for name, one in work.items()}
    assert {name: round(floor, 1) for name, floor in floors.items()} == {
        "32x1x16x4096-bf16": 35.4,
        "32x16x16x4096-bf16": 92.4,
        "32x1x128x4096-bf16": 46.2,
        "32x16x128x4096-bf16": 739.4,
    }


def test_lengths_are_full_or_ragged():
    for least in (64, 7):
        workload = RAGGED.model_copy(update={"axes": {**RAGGED.axes, "batch": 200, "context": 64, "least": least}})
        lengths = Inputs(FILE, workload, 3, "cpu").draw()["lengths"]
        assert (int(lengths.min()), int(lengths.max())) == (least, 64)


def test_flashmla_gets_pages_of_64_tokens(monkeypatch):
    def decode(query, pages, width, lengths, table, scale, causal, *rest):
        assert (width, causal, rest) == (512, True, (None, None, None))
        y, lse = FILE.reference(query, pages[table.long()].flatten(1, 3), lengths, scale)
        return y, lse.transpose(1, 2), None, None

    stand_in = type("", (), {"dense_decode_fwd": staticmethod(decode)})
    monkeypatch.setattr(peer_libraries, "vllm", lambda _: stand_in)
    workload = SHORT.model_copy(update={"axes": {**SHORT.axes, "context": 128, "least": 90}})
    arguments = FILE.arguments(workload, Inputs(FILE, workload, 5, "cpu").draw())
    run = peers.get_peer(FILE, "flashmla").run
    torch.testing.assert_close(run(*arguments), FILE.reference(*arguments))
    with pytest.raises(NotImplementedError, match="whole pages"):
        run(arguments[0], arguments[1][:, :100], *arguments[2:])


def test_the_version_is_right_in_the_interpreter(interpret):
    answer = interpret(VERSION)
    assert "error" not in answer, answer["error"]
    assert {grade[2] for grade in answer["graded"]} == {"PASSED"}


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("9x2x3x4-fp16-ragged-nonfinite", {}),
        ("9x2x3x4-fp16-ragged-nonfinite", {"NARROW": 1}),
        ("1x1x16x150-fp16-ragged-nonfinite", {}),
        ("1x1x16x150-fp16-ragged-nonfinite", {"LEAST": 32}),
    ],
    ids=str,
)
def test_an_infinite_score_makes_an_infinite_lse(name, constants, interpret, tmp_path):
    copy = copy_with(tmp_path, VERSION, **constants)
    definition = copy.parents[1] / "definition.py"
    kept = f"(definition.workloads[0], definition.find_workload({name!r}))"
    text = f'definition = definition.model_copy(update={{"workloads": {kept}}})'
    definition.write_text(f"{definition.read_text()}\n\n{text}\n")
    graded = interpret(copy)["graded"]
    assert {grade[1]: grade[2] for grade in graded}["nonfinite"] == "PASSED", graded


def loop_of(sass: str) -> str:
    """From the first to the last product."""
    return sass[sass.index("HGMMA") : sass.rindex("HGMMA")]


def test_the_version_shares_a_tile_and_does_not_spill_in_its_loop(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    asked = ["32x1x16x4096-bf16", "32x16x16x4096-bf16"]
    compiled = compile_reports(triton_compile.main, VERSION, FILE.definition, asked, tmp_path)
    reports = {each.kernel: each for each in compiled}
    assert reports.keys() == {"narrow_kernel", "wide_kernel", "join_kernel"}
    for name in ("narrow_kernel", "wide_kernel"):
        notes = "; ".join(reports[name].notes)
        assert int(re.search(r"HGMMA x(\d+)", notes)[1]) >= 40, notes
        assert "UTMALDG x0" not in notes
        assert "will not launch" not in notes
        [sass] = [one.read_text() for one in tmp_path.glob(f"{name}*.sass")]
        assert not re.search(r"\b(LDL|STL)\b", loop_of(sass))
    # Two tiles of 64 x 576 and the queries: keys and values have no copies of their own.
    assert reports["wide_kernel"].shared_bytes < 3 * 64 * 576 * 2 + 1024


def test_one_wave_takes_all_parts():
    shares = execute_file(GROUPS).shares
    sizes = [one.axes for one in FILE.definition.select("representative")]
    found = [shares(one["batch"], one["tokens"] * one["heads"], one["context"]) for one in sizes]
    assert found == [(1, 4), (4, 1), (2, 2), (32, 1)]


@pytest.mark.parametrize("pairs", [0, 1])
def test_groups_multiply_without_waiting_for_each_product(pairs, tmp_path, monkeypatch):
    asked = ["32x16x16x4096-bf16", "2x2x5x100-fp16-ragged"]
    source = copy_with(tmp_path, GROUPS, PAIRS=pairs)
    reports = compile_reports(cuda_compile.main, source, FILE.definition, asked, tmp_path)
    assert {report.spill_bytes for report in reports} == {0}
    assert sum("cluster 2" in note for report in reports for note in report.notes) == pairs
    assert not any("will not launch" in note for report in reports for note in report.notes)
    listings = [one.read_text() for one in tmp_path.glob("decode*.sass")]
    assert len(listings) == 2
    for sass in listings:
        assert sass.count("HGMMA.64x256x16") == 4
        assert sass.count("HGMMA.64x64x16") == 36
        assert sass.count("WARPGROUP.DEPBAR") < 8, "the compiler waits after each product"
        assert sass.count("USETMAXREG") == 2
