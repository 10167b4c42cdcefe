"""Dumps of traced processes, laid out as flashinfer-bench writes them, become definitions with weights."""

import json
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

from warpsmith.cli.campaign import new
from warpsmith.errors import BadDefinition, MissingInput, Misuse
from warpsmith.interchange import capture, capture_dump
from warpsmith.interchange.create import create_definition
from warpsmith.lab.grading.correctness import compute_truth, grade_reference
from warpsmith.lab.operator import captured, definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.project import find_project

pytest.importorskip("safetensors")

SCALE = {
    "name": "scale_rows_h8",
    "op_type": "scale",
    "tags": ["status:verified"],
    "axes": {"rows": {"type": "var"}, "cols": {"type": "const", "value": 8}},
    "inputs": {
        "x": {"shape": ["rows", "cols"], "dtype": "float32"},
        "order": {"shape": ["rows"], "dtype": "int64"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {"y": {"shape": ["rows", "cols"], "dtype": "float32"}},
    "reference": "def run(x, order, eps):\n    return (x * 2 + eps)[order]\n",
}


class Dump:
    """A dump that grows call by call."""

    def __init__(self, root: Path):
        self.root = root

    def define(self, **changes):
        definition = SCALE | changes
        path = self.root / "definitions" / "scale" / f"{definition['name']}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(definition))

    def call(self, axes, name="scale_rows_h8", **tensors):
        from safetensors.torch import save_file

        lines = self.root / "workloads" / "scale" / f"{name}.jsonl"
        lines.parent.mkdir(parents=True, exist_ok=True)
        number = len(lines.read_text().splitlines()) if lines.exists() else 0
        relative = f"blob/workloads/scale/{name}/{name}_call{number}.safetensors"
        if tensors:
            blob = self.root / relative
            blob.parent.mkdir(parents=True, exist_ok=True)
            save_file(tensors, blob)
        stored = {n: {"type": "safetensors", "path": relative, "tensor_key": n} for n in tensors}
        inputs = {n: {"type": "random"} for n in SCALE["inputs"]} | stored
        line = {
            "definition": name,
            "workload": {"axes": axes, "inputs": inputs, "uuid": f"call{number}"},
            "solution": None,
            "evaluation": None,
        }
        with lines.open("a") as file:
            file.write(json.dumps(line) + "\n")
        return self.root / relative

    def rows(self, rows, name="scale_rows_h8", **changes):
        tensors = {"x": 3 * torch.randn(rows, 8), "order": torch.randperm(rows)}
        return self.call({"rows": rows}, name, **(tensors | changes))


@pytest.fixture
def project(tmp_path):
    (tmp_path / "warpsmith.toml").write_text("")
    return find_project(tmp_path)


@pytest.fixture
def dump(tmp_path):
    made = Dump(tmp_path / "dump")
    made.define()
    return made


def test_a_dump_becomes_a_definition_with_weights_and_tensors(project, dump):
    for rows in (5, 300, 5, 5, 2):
        dump.rows(rows)
    path, draft = create_definition(project, "scale", capture=dump.root, examples=["eps=1e-3"])
    file = definition_file.load_definition(path)
    weights = {workload.name: workload.weight for workload in file.definition.workloads}
    assert weights == {"rows5": 3, "rows300": 1, "rows2": 1}
    assert file.definition.workloads[0].set == "representative"
    assert file.definition.tensor_inputs["order"].distribution == "distinct:rows"
    assert file.definition.tags == ("status:verified", "serving:scale_rows_h8")
    assert file.definition.scalar_inputs["eps"].value == 1e-3
    stored = captured.load_calls(path.with_name(captured.FILE), file.definition.workloads[0].distribution[9:])
    assert len(stored.calls) == 5
    for workload in file.definition.workloads:
        drawn = Inputs(file, workload, 1, "cpu").draw()
        assert grade_reference(file, workload, drawn, compute_truth(file, workload, drawn)).status == "PASSED"
    notes = "\n".join(draft.notes)
    assert "5 calls of scale_rows_h8" in notes
    assert "rows5 3" in notes
    assert "guess" not in notes
    assert "a permutation" in notes


def test_equal_tensors_are_stored_once(project, dump):
    x, order = torch.randn(4, 8), torch.randperm(4)
    for _ in range(3):
        dump.call({"rows": 4}, x=x, order=order)
    path, _ = create_definition(project, "scale", capture=dump.root)
    digits = definition_file.load_definition(path).definition.workloads[0].distribution[9:]
    assert sorted(captured.load_calls(path.with_name(captured.FILE), digits).tensors) == ["order/0", "x/0"]


def test_captured_numbers_are_numbers_of_the_workloads(project, dump):
    dump.rows(4, eps=torch.tensor(0.5))
    path, _ = create_definition(project, "scale", capture=dump.root)
    assert definition_file.load_definition(path).definition.scalar_inputs["eps"].value == 0.5


def test_what_does_not_fit_is_described_and_not_stored(project, dump, monkeypatch):
    dump.rows(40)
    monkeypatch.setattr(capture, "_STORED_BYTES", 100)
    path, draft = create_definition(project, "scale", capture=dump.root)
    assert not path.with_name(captured.FILE).exists()
    spec = definition_file.load_definition(path).definition.tensor_inputs["x"]
    assert spec.distribution.startswith("normal:0:")
    assert any("none are stored" in note for note in draft.notes)


def test_of_a_huge_tensor_only_the_first_rows_are_read(project, dump, monkeypatch):
    dump.rows(400)
    monkeypatch.setattr(capture_dump, "_READ_ELEMENTS", 80)
    monkeypatch.setattr(capture, "_STORED_BYTES", 1 << 20)
    path, _ = create_definition(project, "scale", capture=dump.root)
    assert not path.with_name(captured.FILE).exists()


def test_calls_of_rare_shapes_count_at_the_nearest_one(project, dump, monkeypatch):
    monkeypatch.setattr(capture_dump, "_MOST_SHAPES", 4)
    for rows in (100, 100, 9, 9, 8, 101, 30, 31, 32):
        dump.call({"rows": rows})
    path, draft = create_definition(project, "scale", capture=dump.root)
    workloads = definition_file.load_definition(path).definition.workloads
    assert sum(workload.weight or 0 for workload in workloads) == 9
    assert len([workload for workload in workloads if workload.weight]) == 4
    assert any("No values were captured of x, order" in note for note in draft.notes)


def test_weights_of_one_are_doubted(project, dump):
    dump.rows(4)
    dump.rows(5)
    _, draft = create_definition(project, "scale", capture=dump.root)
    assert any("keep_all" in note for note in draft.notes)


def test_one_of_two_operators_is_chosen(project, dump):
    dump.define(name="other_h8")
    dump.rows(4)
    dump.rows(5, "other_h8")
    with pytest.raises(Misuse, match=r"other_h8 \(1 calls\), scale_rows_h8 \(1 calls\); choose one"):
        create_definition(project, "scale", capture=dump.root)
    assert not project.kernels.exists()
    path, _ = create_definition(project, "scale", capture=dump.root, object_name="other_h8")
    assert "serving:other_h8" in path.read_text()
    assert "serving:scale_rows_h8" in create_definition(project, "scale_rows_h8", capture=dump.root)[0].read_text()


def truncated(dump):
    path = dump.rows(4)
    path.write_bytes(path.read_bytes()[:-5])


def unknown_dtype(dump):
    path = dump.rows(4)
    path.write_bytes(path.read_bytes().replace(b'"F32"', b'"Q32"'))


def wider_than_said(dump):
    path = dump.rows(4)
    path.write_bytes(path.read_bytes().replace(b"[4,8]", b"[9,8]"))


def outside(dump):
    dump.rows(4)
    lines = dump.root / "workloads" / "scale" / "scale_rows_h8.jsonl"
    lines.write_text(lines.read_text().replace("blob/workloads", "../../etc"))


def cut_line(dump):
    dump.rows(4)
    lines = dump.root / "workloads" / "scale" / "scale_rows_h8.jsonl"
    lines.write_text(lines.read_text()[:-30])


@pytest.mark.parametrize(
    ("spoil", "error", "says"),
    [
        (lambda dump: dump.rows(4).unlink(), MissingInput, "copy the whole dump"),
        (truncated, BadDefinition, "cannot be read"),
        (unknown_dtype, BadDefinition, "cannot be read"),
        (wider_than_said, BadDefinition, "cannot be read"),
        (outside, BadDefinition, "leads out of the dump"),
        (cut_line, BadDefinition, r"jsonl:1 is not a FlashInfer-Trace workload"),
        (lambda dump: None, MissingInput, "has no traced calls"),
        (lambda dump: dump.rows(4, "unknown_h8"), MissingInput, "no definition of it"),
        (lambda dump: dump.rows(4, x=torch.randn(4, 8).half()), BadDefinition, "`x` is float16"),
        (lambda dump: dump.rows(4, x=torch.randn(5, 8)), BadDefinition, r"shape \[5, 8\]"),
        (lambda dump: dump.call({"rows": 4, "more": 1}), BadDefinition, "has the axes"),
    ],
)
def test_bad_dumps_are_refused_with_nothing_written(project, dump, spoil, error, says):
    spoil(dump)
    with pytest.raises(error, match=says):
        create_definition(project, "scale", capture=dump.root)
    assert not project.kernels.exists()


@pytest.mark.parametrize("text", ["eps", "x=1", "eps=abc", "more=3"])
def test_only_numbers_have_values(project, dump, text):
    dump.rows(4)
    with pytest.raises(Misuse, match="its numbers: eps"):
        create_definition(project, "scale", capture=dump.root, examples=[text])


def test_the_command_says_what_it_read(project, dump, monkeypatch):
    dump.rows(4)
    app = typer.Typer()
    new.register(app)
    monkeypatch.chdir(project.root)
    result = CliRunner().invoke(app, ["new", "scale", "--from-capture", "dump:scale_rows_h8"])
    assert (result.exit_code, result.stdout) == (0, "kernels/scale/definition.py\n")
    assert "eps = 1e-06 is a guess" in result.stderr
    failed = CliRunner().invoke(app, ["new", "two", "--from-capture", "nowhere"])
    assert isinstance(failed.exception, MissingInput)
    mixed = CliRunner().invoke(app, ["new", "two", "--from-capture", "dump", "--from", "x.py"])
    assert isinstance(mixed.exception, Misuse)
