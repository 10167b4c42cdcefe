"""FlashInfer-Trace data sets come in and go out; what goes out keeps to the schema, restated here."""

import ast
import json
from pathlib import Path

import pytest
import torch

from warpsmith.errors import BadDefinition, MissingInput, Misuse
from warpsmith.interchange.create import create_definition
from warpsmith.interchange.flashinfer_export import export_operator
from warpsmith.lab.grading.correctness import compute_truth, grade_reference
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.languages.shared import cxx_compiler
from warpsmith.project import find_project

needs_compiler = pytest.mark.skipif(cxx_compiler.find_cxx_compiler() is None, reason="no C++ compiler")

REFERENCE = """import torch

@torch.no_grad()
def run(hidden_states, weight, eps):
    x = hidden_states.to(torch.float32)
    # The mean of squares, a row at a time.
    inv_rms = torch.rsqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)
    return ((x * inv_rms) * weight.to(torch.float32)).to(hidden_states.dtype)"""

RMSNORM = {
    "name": "rmsnorm_h128",
    "description": "Root mean square normalization.",
    "op_type": "rmsnorm",
    "tags": ["status:verified", "model:llama-3.1-8b"],
    "axes": {
        "batch_size": {"type": "var", "description": "tokens"},
        "hidden_size": {"type": "const", "value": 128},
    },
    "constraints": ["batch_size > 0"],
    "inputs": {
        "hidden_states": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"},
        "weight": {"shape": ["hidden_size"], "dtype": "bfloat16"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"output": {"shape": ["batch_size", "hidden_size"], "dtype": "bfloat16"}},
    "reference": REFERENCE,
}

OURS = '''
import torch
from math import sqrt

from warpsmith.core.definition import Definition, TensorSpec, Workload

HALF = 2

definition = Definition(
    name="pairs", description="Sums of neighbours.", op_type="other",
    axes={"rows": "rows", "cols": "even columns"},
    inputs={"x": TensorSpec(shape=("rows", "cols")), "w": TensorSpec(shape=(3,), dtype="float32")},
    outputs={"y": TensorSpec(shape=("rows", "cols // 2"))},
    flops="rows * cols",
    constraints=("cols is even, always", "cols % 2 == 0"),
    workloads=(
        Workload(name="a", axes={"rows": 2, "cols": 4}),
        Workload(name="b", axes={"rows": 2, "cols": 6}, dtype="float16"),
    ),
)

def pair(x):
    return x.unflatten(1, (-1, HALF))

def reference(x, w):
    """Neighbours added."""
    return pair(x).sum(2) * sqrt(4) / 2

def magnitude(x, w):
    return reference(x.abs(), w)

peers = {"definition": lambda x, w: definition}
'''


CPP = """#include <warpsmith.hpp>

extern "C" void run(const Tensor& x, const Tensor& w, Tensor& y) {
  const int64_t rows = y.size(0), cols = y.size(1);
#pragma omp parallel for
  for (int64_t row = 0; row < rows; ++row) {
    const float* in = x.data<float>() + 2 * row * cols;
    for (int64_t col = 0; col < cols; ++col) y.data<float>()[row * cols + col] = in[2 * col] + in[2 * col + 1];
  }
}
"""


def workload(batch, uuid, **inputs):
    sources = {
        "hidden_states": {"type": "random"},
        "weight": {"type": "random"},
        "eps": {"type": "scalar", "value": 1e-5},
    }
    point = {"uuid": uuid, "axes": {"batch_size": batch}, "inputs": sources | inputs}
    return {"definition": "rmsnorm_h128", "solution": None, "workload": point, "evaluation": None}


def dataset(root: Path, definition=RMSNORM, workloads=()) -> Path:
    """A data set in its layout; the definition's path."""
    path = root / "definitions" / "rmsnorm" / "rmsnorm_h128.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(definition))
    if workloads:
        lines = root / "workloads" / "rmsnorm" / "rmsnorm_h128.jsonl"
        lines.parent.mkdir(parents=True)
        lines.write_text("".join(f"{json.dumps(line)}\n" for line in workloads))
    return path


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "warpsmith.toml").write_text("")
    return find_project(root)


def adopt(project, source, op="rmsnorm_h128", workloads=None):
    path, draft = create_definition(project, op, source, workloads)
    return definition_file.load_definition(path), draft


def test_definition_and_workloads_come_in(tmp_path, project):
    points = [workload(n, f"u{n}", eps={"type": "scalar", "value": n / 8}) for n in (8, 1, 64, 2, 32, 16)]
    file, draft = adopt(project, dataset(tmp_path / "set", workloads=points))
    definition = file.definition
    assert draft.notes == ()
    assert definition.axes == {"batch_size": "tokens", "hidden_size": 128}
    assert definition.op_type == "rmsnorm"
    assert definition.tags == ("status:verified", "model:llama-3.1-8b")
    assert definition.constraints == ("batch_size > 0",)
    assert definition.tolerance.reduction == "hidden_size"
    assert [w.name for w in definition.workloads] == ["u8", "u1", "u64", "u2", "u32", "u16"]
    assert [w.name for w in definition.select("representative")] == ["u8", "u1", "u64", "u16"]
    assert [definition.scalars(w)["eps"] for w in definition.workloads] == [1.0, 0.125, 8.0, 0.25, 4.0, 2.0]
    assert (file.path.parent / "flashinfer_reference.py").read_text() == REFERENCE
    x, w = torch.randn(4, 128).bfloat16(), torch.randn(128).bfloat16()
    assert torch.allclose(
        file.reference(x, w, 1e-5).float(), torch.rms_norm(x.float(), (128,), w.float(), 1e-5), atol=0.05
    )


def test_products_that_cancel_hold_their_own_bound(tmp_path, project):
    square = {"shape": ["M", "M"], "dtype": "float32"}
    gemm = RMSNORM | {"op_type": "gemm", "axes": {"M": {"type": "var"}, "K": {"type": "const", "value": 300}}}
    gemm |= {
        "constraints": [],
        "inputs": {"A": {"shape": ["M", "K"], "dtype": "float32"}},
        "outputs": {"C": square},
    }
    file, _ = adopt(project, dataset(tmp_path / "set", gemm | {"reference": "def run(A):\n    return A @ A.T"}))
    workload = file.definition.workloads[-1]
    assert file.definition.work(workload).flops == 2 * 37 * 37 * 300
    values = Inputs(file, workload, 0, "cpu").draw()
    assert grade_reference(file, workload, values, compute_truth(file, workload, values)).status == "PASSED"


def test_workloads_with_files_are_drawn_instead(tmp_path, project):
    stored = {"type": "safetensors", "path": "x.safetensors", "tensor_key": "x"}
    lines = tmp_path / "lines.jsonl"
    lines.write_text("\n".join(json.dumps(workload(2, u, **k)) for u, k in (("a", {"weight": stored}), ("b", {}))))
    file, draft = adopt(project, dataset(tmp_path / "set"), workloads=lines)
    assert [w.name for w in file.definition.workloads] == ["a", "b"]
    (note,) = draft.notes
    assert note.startswith("Drawn at random")
    assert "safetensors files: weight;" in note


def test_sizes_are_chosen_where_there_are_no_workloads(tmp_path, project):
    axes = RMSNORM["axes"] | {"len_indptr": {"type": "var"}}
    definition = RMSNORM | {"axes": axes, "constraints": ["len_indptr == batch_size + 1"]}
    definition["name"] = 'quoted """ \\'
    file, draft = adopt(project, dataset(tmp_path / "set", definition))
    assert [w.axes["batch_size"] for w in file.definition.workloads] == [16, 1024, 37]
    assert all(w.axes["len_indptr"] == w.axes["batch_size"] + 1 for w in file.definition.workloads)
    assert [w.set for w in file.definition.workloads] == ["representative", "representative", "odd"]
    assert "No workloads" in draft.notes[0]
    assert "Default sizes of the import" in file.path.read_text()
    assert file.definition.scalar_inputs["eps"].value == 1e-6


def test_chosen_sizes_hold_constraints(tmp_path, project):
    definition = RMSNORM | {"constraints": ["batch_size % 8 == 0"]}
    file, _ = adopt(project, dataset(tmp_path / "set", definition))
    assert [w.axes["batch_size"] for w in file.definition.workloads] == [16, 1024]


def test_what_came_in_goes_out_and_comes_in_the_same(tmp_path, project):
    points = [workload(n, f"u{n}", eps={"type": "scalar", "value": 1e-5 * n}) for n in (3, 1, 2)]
    file, _ = adopt(project, dataset(tmp_path / "set", workloads=points))
    written = export_operator(project, "rmsnorm_h128", tmp_path / "out")
    assert written[0] == tmp_path / "out/definitions/rmsnorm/rmsnorm_h128.json"
    again = find_project(tmp_path / "out")
    second, _ = adopt(again, written[0])
    assert second.definition == file.definition
    assert (second.path.parent / "flashinfer_reference.py").read_text() == REFERENCE
    out = json.loads(written[0].read_text())
    assert {key: out[key] for key in RMSNORM if key != "inputs"} == {
        k: v for k, v in RMSNORM.items() if k != "inputs"
    }
    assert {k: (v["shape"], v["dtype"]) for k, v in out["inputs"].items()} == {
        k: (v["shape"], v["dtype"]) for k, v in RMSNORM["inputs"].items()
    }


def own(project, text=OURS, versions=True):
    folder = project.kernels / "pairs"
    folder.mkdir(parents=True)
    (folder / "definition.py").write_text(text)
    if versions:
        for name in ("triton/v1.py", "triton/v12.py", "triton/notes.txt", "cuda/v1.py", "cpp/v1.cpp"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(CPP if name.endswith("cpp") else "def run(x, w): ...\n")


def test_own_definition_goes_out_by_dtype_with_its_versions(tmp_path, project):
    own(project)
    written = {
        p.relative_to(tmp_path / "out").as_posix(): p for p in export_operator(project, "pairs", tmp_path / "out")
    }
    for dtype in ("float32", "float16"):
        check_definition(read(written[f"definitions/other/pairs_{dtype}.json"]))
        check_workloads(
            written[f"workloads/other/pairs_{dtype}.jsonl"], read(written[f"definitions/other/pairs_{dtype}.json"])
        )
    solutions = [read(path) for name, path in written.items() if name.startswith("solutions/warpsmith/other/")]
    assert len(solutions) == 8
    for solution in solutions:
        check_solution(solution)
    styles = {s["name"]: (s["spec"]["language"], s["spec"]["destination_passing_style"]) for s in solutions}
    assert styles["pairs_float32_triton_v12"] == ("triton", False)
    assert styles["pairs_float32_cuda_v1"] == ("python", False)  # its kernels are strings
    assert styles["pairs_float32_cpp_v1"] == ("cpp", True)
    assert len(styles) == 8
    definition = read(written["definitions/other/pairs_float16.json"])
    assert definition["outputs"]["y"] == {"shape": ["rows", "derived_1"], "dtype": "float16"}
    assert definition["axes"]["size_3"]["value"] == 3
    assert "derived_1 == cols // 2" in definition["constraints"]
    assert "cols % 2 == 0" in definition["constraints"]
    assert definition["description"] == "Sums of neighbours. cols is even, always"


@needs_compiler
def test_what_cannot_run_without_warpsmith_is_left_out_with_the_reason(tmp_path, project):
    own(project)
    folder = project.kernels / "pairs"
    (folder / "cpp" / "v2.cpp").write_text(CPP.replace("rows = ", "rows = omp_get_max_threads() * 0 + "))
    (folder / "cpp" / "v3.cpp").write_text(CPP.replace("int64_t row = 0", "int64_t row = nought"))
    (folder / "fortran").mkdir()
    (folder / "fortran" / "v1.py").write_text("def run(x, w): ...\n")
    told = []
    written = export_operator(project, "pairs", tmp_path / "out", told.append)
    assert [path.name for path in written if "float32_cpp" in path.name] == ["pairs_float32_cpp_v1.json"]
    said = "\n".join(line for line in told if "float32" in line)
    assert "cpp/v2 is left out of pairs_float32: it calls OpenMP" in said
    assert "cpp/v3 is left out of pairs_float32: it does not compile" in said
    assert "nought" in said
    assert "fortran/v1 is left out of pairs_float32: fortran is no language" in said
    assert "pairs_float32, cpp/v1: the consumer's build has -std=c++17 -O2" in said


@needs_compiler
def test_an_exported_cpp_solution_runs_as_flashinfer_bench_builds_it(tmp_path, project):
    tvm_ffi = pytest.importorskip("tvm_ffi")
    own(project)
    path = next(
        p for p in export_operator(project, "pairs", tmp_path / "out") if p.stem.endswith("float32_cpp_v1")
    )
    solution, folder = read(path), tmp_path / "built"
    folder.mkdir()
    for source in solution["sources"]:
        (folder / source["path"]).write_text(source["content"])
    library = tvm_ffi.cpp.build(
        name="solution", cpp_files=[str(file) for file in folder.glob("*.cpp")], cuda_files=[],
        extra_include_paths=[str(folder)], extra_ldflags=[], build_directory=str(folder),
    )  # fmt: skip
    run = tvm_ffi.load_module(library)[solution["spec"]["entry_point"].split("::")[1]]
    x, w, y = torch.randn(3, 8), torch.randn(3), torch.empty(3, 4)
    run(x, w, y)
    torch.testing.assert_close(y, x[:, ::2] + x[:, 1::2])
    with pytest.raises(TypeError, match="no tensors of this data type"):
        run(x.to(torch.complex64), w, y)
    with pytest.raises(RuntimeError, match="a tensor of 2 axes"):
        run(x[0], w, y)


def test_exported_reference_stands_alone(tmp_path, project):
    own(project, versions=False)
    source = read(export_operator(project, "pairs", tmp_path / "out")[0])["reference"]
    assert "warpsmith" not in source
    assert "magnitude" not in source
    names = {}
    exec(source, names)
    x = torch.arange(8.0).reshape(2, 4)
    assert torch.equal(names["run"](x, None), torch.tensor([[1.0, 5.0], [9.0, 13.0]]))


@pytest.mark.parametrize(
    "loader",
    [
        "from warpsmith import load_sibling\npart = load_sibling(__file__, 'part.py')\n",
        "from warpsmith import TensorSpec, load_sibling\npart = load_sibling(__file__, 'part.py')\n",
        "from warpsmith.lab.importers.beside import beside\npart = beside(__file__, 'part.py')\n",
    ],
)
def test_files_beside_are_put_into_the_exported_reference(tmp_path, project, loader):
    own(project, versions=False)
    folder = project.kernels / "pairs"
    (folder / "part.py").write_text('def add(x):\n    """It\'s "that"."""\n    return x + 1\n')
    text = OURS[: OURS.index("def pair")] + loader + "def reference(x, w):\n    return part.add(x)\n"
    (folder / "definition.py").write_text(text)
    source = read(export_operator(project, "pairs", tmp_path / "out")[0])["reference"]
    assert "import warpsmith" not in source
    assert "from warpsmith" not in source
    names = {}
    exec(source, names)
    assert names["run"](torch.zeros(1), None).item() == 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("pair(x).sum(2)", "pair(x).sum(2) * len(definition.axes)", "needs `.*` of Warpsmith"),
        ("def pair(x):", "def run(x):\n    return x\n\ndef pair(x):\n    run(x)", "another `run`"),
        ('shape=(3,), dtype="float32"', 'shape=(3,), dtype="float64"', "no dtype `float64`"),
    ],
)
def test_what_others_cannot_run_is_not_exported(tmp_path, project, old, new, says):
    own(project, OURS.replace(old, new))
    with pytest.raises(BadDefinition, match=says):
        export_operator(project, "pairs", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_export_needs_a_definition(tmp_path, project):
    with pytest.raises(MissingInput, match="warpsmith new nothing"):
        export_operator(project, "nothing", tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"reference": None}, "reference: "),
        ({"reference": "def go(): ..."}, "no top-level function `run`"),
        ({"reference": "def run(x): ..."}, r"fewer arguments than the 3 inputs, and \['x'\] are none"),
        ({"custom_inputs_entrypoint": "make"}, "no top-level function `make`"),
        ({"reference": "def run(:"}, "not Python"),
        ({"axes": {"batch_size": {"type": "var"}}}, "undefined axes"),
        ({"axes": {"hidden_size": {"type": "const"}, "batch_size": {"type": "var"}}}, "needs a value"),
        ({"outputs": {"y": {"shape": ["batch_size"], "dtype": "float4_e2m1"}}}, "unknown dtype `float4_e2m1`"),
        ({"outputs": {"y": {"shape": None, "dtype": "float32"}}}, "are Python numbers"),
    ],
)
def test_broken_definitions_are_refused(tmp_path, project, change, says):
    data = {key: value for key, value in (RMSNORM | change).items() if value is not None}
    with pytest.raises(BadDefinition, match=says) as caught:
        adopt(project, dataset(tmp_path / "set", data))
    assert "\n" not in str(caught.value)
    assert not project.kernels.exists()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "lines.jsonl:2 is not a FlashInfer-Trace workload"),
        (json.dumps(workload(2, "b", eps={"type": "scalar"})), "needs a value"),
        (json.dumps(workload(2, "a")), "two workloads share a name"),
        (
            json.dumps(workload(2, "b") | {"workload": {"uuid": "b", "axes": {}, "inputs": {}}}),
            "does not specify the inputs",
        ),
    ],
)
def test_broken_workloads_are_refused(tmp_path, project, line, says):
    lines = tmp_path / "lines.jsonl"
    lines.write_text(f"{json.dumps(workload(1, 'a'))}\n{line}\n")
    with pytest.raises(BadDefinition, match=says):
        adopt(project, dataset(tmp_path / "set"), workloads=lines)
    assert not project.kernels.exists()


def test_workloads_need_a_definition_of_theirs(tmp_path, project):
    with pytest.raises(Misuse, match="--workloads requires --from"):
        create_definition(project, "op", None, tmp_path / "lines.jsonl")


def read(path: Path):
    return json.loads(path.read_text())


# What the upstream pydantic models demand, in plain assertions.
UPSTREAM_DTYPES = {
    *("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "float4_e2m1"),
    *("int64", "int32", "int16", "int8", "bool"),
}


def check_definition(data):
    for key in ("name", "op_type", "reference"):
        assert isinstance(data[key], str)
        assert data[key]
    for axis in data["axes"].values():
        assert axis["type"] == "var" or (axis["type"] == "const" and axis["value"] >= 0)
    assert not set(data["inputs"]) & set(data["outputs"])
    for tensor in (*data["inputs"].values(), *data["outputs"].values()):
        assert tensor["dtype"] in UPSTREAM_DTYPES
        assert tensor["shape"] is None or set(tensor["shape"]) <= set(data["axes"])
    runs = [n for n in ast.parse(data["reference"]).body if isinstance(n, ast.FunctionDef) and n.name == "run"]
    assert len(runs) == 1
    for constraint in data["constraints"]:
        ast.parse(constraint, mode="eval")


def check_workloads(path, definition):
    variable = {name for name, axis in definition["axes"].items() if axis["type"] == "var"}
    for line in path.read_text().splitlines():
        data = json.loads(line)
        assert set(data) == {"definition", "workload"}
        assert data["definition"] == definition["name"]
        assert data["workload"]["uuid"]
        assert set(data["workload"]["axes"]) == variable
        assert set(data["workload"]["inputs"]) == set(definition["inputs"])
        for source in data["workload"]["inputs"].values():
            assert source == {"type": "random"} or source["type"] == "scalar"


def check_solution(data):
    assert set(data) == {"name", "definition", "author", "spec", "sources", "description"}
    spec = data["spec"]
    assert spec["language"] in {"python", "triton", "cpp", "cuda", "tilelang"}
    assert spec["target_hardware"]
    assert isinstance(spec["destination_passing_style"], bool)
    file, symbol = spec["entry_point"].split("::")
    assert symbol == "run"
    header = ["warpsmith.hpp", "binding.cpp"] if spec["language"] == "cpp" else []
    assert [source["path"] for source in data["sources"]] == [file, *header]
    assert all(source["content"] for source in data["sources"])
