"""Inputs that have to fit each other: offsets and page tables; and the folders of SOL-ExecBench."""

import json
from pathlib import Path

import pytest
import torch

from warpsmith.errors import BadDefinition
from warpsmith.interchange import trace_inputs
from warpsmith.interchange.create import create_definition
from warpsmith.interchange.trace_schema import TraceDefinition
from warpsmith.lab.grading.correctness import compute_truth, grade_reference
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.project import find_project

PAGED = """import torch

def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    assert kv_indptr.shape[0] == q.shape[0] + 1
    assert kv_indices.shape[0] == kv_indptr[-1].item()
    out = torch.zeros_like(q)
    for b in range(q.shape[0]):
        pages = kv_indices[int(kv_indptr[b]) : int(kv_indptr[b + 1])].long()
        if len(pages):
            weights = torch.softmax(k_cache[pages, 0].float() @ q[b].float() * sm_scale, 0)
            out[b] = (weights @ v_cache[pages, 0].float()).to(q.dtype)
    return {"out": out}
"""

CACHE = {"shape": ["num_pages", "page_size", "head_dim"], "dtype": "bfloat16"}

ATTENTION = {
    "name": "paged_decode",
    "axes": {
        "batch_size": {"type": "var"},
        "num_pages": {"type": "var"},
        "page_size": {"type": "const", "value": 1},
        "head_dim": {"type": "const", "value": 64},
        "len_indptr": {"type": "var"},
        "num_kv_indices": {"type": "var"},
    },
    "constraints": ["len_indptr == batch_size + 1", "num_kv_indices == kv_indptr[-1].item()"],
    "inputs": {
        "q": {"shape": ["batch_size", "head_dim"], "dtype": "bfloat16"},
        "k_cache": CACHE,
        "v_cache": CACHE,
        "kv_indptr": {"shape": ["len_indptr"], "dtype": "int32"},
        "last_page_len": {"shape": ["batch_size"], "dtype": "int32"},
        "kv_indices": {"shape": ["num_kv_indices"], "dtype": "int32"},
        "sm_scale": {"shape": [], "dtype": "float32"},
    },
    "outputs": {"out": {"shape": ["batch_size", "head_dim"], "dtype": "bfloat16"}},
    "reference": PAGED,
}

SOL = {
    "name": "rotate",
    "axes": {
        "rows": {"type": "var"},
        "width": {"type": "const", "value": 8},
        "half": {"type": "expr", "expression": "width // 2"},
        "both": {"type": "expr", "expression": "half * rows"},
    },
    "custom_inputs_entrypoint": "make",
    "inputs": {
        "x": {"shape": ["rows", "width"], "dtype": "float32"},
        "where": {"shape": ["half"], "dtype": "int64"},
        "flat": {"shape": ["both"], "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["rows", "half"], "dtype": "float32"}},
    "reference": (
        "import torch\n\n"
        "def make(axes_and_scalars, device):\n"
        "    order = torch.randperm(axes_and_scalars['width'], device=device)\n"
        "    return {'where': order[: axes_and_scalars['half']]}\n\n"
        "def run(x, where, flat):\n    return x[:, where] + flat.view(x.shape[0], -1)\n"
    ),
}


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "warpsmith.toml").write_text("")
    return find_project(root)


def adopt(project, source: Path):
    path, draft = create_definition(project, "op", source)
    return definition_file.load_definition(path), draft


def test_paged_attention_gets_offsets_and_pages_that_fit(tmp_path, project):
    source = tmp_path / "paged.json"
    source.write_text(json.dumps(ATTENTION))
    file, draft = adopt(project, source)
    specs = file.definition.tensor_inputs
    assert specs["kv_indptr"].distribution == "offsets:num_kv_indices"
    assert specs["kv_indices"].distribution == "integers:0:num_pages"
    assert specs["last_page_len"].distribution == "integers:1:page_size + 1"
    assert "kv_indptr, last_page_len, kv_indices, sm_scale" in draft.notes[0]
    assert {w.set for w in file.definition.workloads} == {"representative", "odd"}
    assert 1 in [w.axes["batch_size"] for w in file.definition.select("odd")]
    for workload in file.definition.workloads:
        assert workload.axes["len_indptr"] == workload.axes["batch_size"] + 1
        values = Inputs(file, workload, 5, "cpu").draw()
        assert values["kv_indptr"][-1] == workload.axes["num_kv_indices"]
        assert values["last_page_len"].unique().tolist() == [1]
        grade = grade_reference(file, workload, values, compute_truth(file, workload, values))
        assert grade.status == "PASSED", grade.detail


def test_workloads_of_files_keep_their_sizes(tmp_path, project):
    stored = {"type": "safetensors", "path": "a.safetensors", "tensor_key": "kv_indptr"}
    inputs = {name: {"type": "random"} for name in ATTENTION["inputs"]}
    inputs |= {"kv_indptr": stored, "kv_indices": stored, "sm_scale": {"type": "scalar", "value": 0.1}}
    sizes = {"batch_size": 3, "num_pages": 40, "len_indptr": 4, "num_kv_indices": 17}
    point = {"uuid": "u", "axes": sizes, "inputs": inputs}
    source = tmp_path / "definitions" / "paged_decode.json"
    source.parent.mkdir()
    source.write_text(json.dumps(ATTENTION))
    lines = tmp_path / "workloads" / "paged_decode.jsonl"
    lines.parent.mkdir()
    lines.write_text(json.dumps({"definition": "paged_decode", "solution": "", "workload": point}) + "\n")
    file, _ = adopt(project, source)
    assert file.definition.workloads[0].axes == sizes
    values = Inputs(file, file.definition.workloads[0], 1, "cpu").draw()
    assert values["kv_indptr"][-1] == 17
    assert values["kv_indices"].max() < 40


@pytest.mark.parametrize(
    ("constraint", "totals"),
    [
        ("total == o[-1]", {"o": "total"}),
        ("total = o[-1]", {"o": "total"}),
        ("o[ -1 ].item() == total", {"o": "total"}),
        ("total == o[-1].item()", {"o": "total"}),
        ("total == o[0]", {}),
        ("total == other[-1]", {}),
    ],
)
def test_constraints_name_what_offsets_cut(constraint, totals):
    definition = TraceDefinition(
        name="x",
        axes={"total": {"type": "var"}, "n": {"type": "var"}},
        constraints=[constraint],
        inputs={"o": {"shape": ["n"], "dtype": "int32"}},
        outputs={"y": {"shape": ["n"], "dtype": "float32"}},
        reference="def run(o):\n    return o\n",
    )
    assert trace_inputs.totals_of_offsets(definition) == totals


def problem(folder: Path, definition=SOL) -> Path:
    """A SOL-ExecBench problem: a folder with bare workload lines."""
    custom = {"x": {"type": "random"}, "where": {"type": "custom"}, "flat": {"type": "random"}}
    lines = [{"uuid": f"u{rows}", "axes": {"rows": rows}, "inputs": custom} for rows in (4, 9)]
    folder.mkdir()
    (folder / "definition.json").write_text(json.dumps(definition))
    (folder / "workload.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def test_a_sol_problem_comes_in_as_a_folder(tmp_path, project):
    file, draft = adopt(project, problem(tmp_path / "rotate"))
    definition = file.definition
    assert definition.op_type == "other"
    assert definition.axes == {"rows": "rows", "width": 8}
    assert definition.tensor_inputs["flat"].shape == ("(width // 2) * rows",)
    assert [w.name for w in definition.workloads] == ["u4", "u9"]
    assert draft.notes == ("Inputs come from the definition's own `make`.",)
    first, second = (Inputs(file, definition.workloads[1], seed, "cpu").draw() for seed in (1, 2))
    again = Inputs(file, definition.workloads[1], 1, "cpu").draw()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["x"], second["x"])
    assert first["where"].unique().numel() == 4
    assert file.reference(**first).shape == (9, 4)


def test_an_axis_that_is_part_of_itself_is_refused(tmp_path, project):
    axes = SOL["axes"] | {"half": {"type": "expr", "expression": "both // 2"}}
    with pytest.raises(BadDefinition, match="its expression refers to itself"):
        adopt(project, problem(tmp_path / "rotate", SOL | {"axes": axes}))


def test_a_reference_that_cannot_run_is_told(tmp_path, project):
    reference = SOL["reference"].replace("return x[:, where]", "return missing[:, where]")
    _, draft = adopt(project, problem(tmp_path / "rotate", SOL | {"reference": reference}))
    assert any(note.startswith("Check: ") and "missing" in note for note in draft.notes)
