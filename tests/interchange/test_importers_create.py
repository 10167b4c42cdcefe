"""`warpsmith new` without a source, and its commands."""

import ast

import pytest
import torch
import typer
from typer.testing import CliRunner

from warpsmith.cli.campaign import new
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload
from warpsmith.errors import MissingInput, Misuse
from warpsmith.interchange.create import create_definition
from warpsmith.interchange.draft import python_literal
from warpsmith.lab.grading.correctness import compute_truth, grade_reference
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.project import find_project


@pytest.fixture
def project(tmp_path):
    (tmp_path / "warpsmith.toml").write_text("")
    return find_project(tmp_path)


def test_the_example_works_as_it_is(project):
    path, _ = create_definition(project, "my_softmax")
    file = definition_file.load_definition(path)
    assert file.definition.name == "my_softmax"
    for workload in file.definition.select("representative", "odd"):
        small = workload.model_copy(update={"axes": {"rows": 3, "cols": min(workload.axes["cols"], 130)}})
        for how in (None, "large", "shifted"):
            drawn = Inputs(file, small, 0, "cpu").draw(how)
            assert grade_reference(file, small, drawn, compute_truth(file, small, drawn)).status == "PASSED"


def test_the_example_tells_a_wrong_kernel(project):
    path, _ = create_definition(project, "op")
    file = definition_file.load_definition(path)
    x = torch.randn(4, 64)
    y = file.reference(x, 0.125)
    assert torch.allclose(y, torch.softmax(x * 0.125, -1))
    assert file.extra is not None
    assert file.extra(x, 0.125).shape == y.shape


def test_nothing_is_overwritten(project):
    path, _ = create_definition(project, "op")
    path.write_text("mine")
    with pytest.raises(Misuse, match="exists"):
        create_definition(project, "op")
    assert path.read_text() == "mine"


@pytest.mark.parametrize("op", ["Op", "1op", "a-b", "../up", "class", "", "a b"])
def test_names_are_folders_and_identifiers(project, op):
    with pytest.raises(Misuse, match="not a valid operator name"):
        create_definition(project, op)
    assert not project.kernels.exists()


@pytest.mark.parametrize(("name", "content"), [("a.txt", b"x"), ("a.py", b"\xff\xfe"), ("a.json", b"\xff")])
def test_other_files_are_refused(project, tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(Misuse, match=name):
        create_definition(project, "op", tmp_path / name)
    assert not project.kernels.exists()


def test_missing_files_are_named(project, tmp_path):
    with pytest.raises(MissingInput, match=r"none\.json"):
        create_definition(project, "op", tmp_path / "none.json")
    with pytest.raises(MissingInput, match="is not a file"):
        create_definition(project, "op", tmp_path)


def test_commands_give_data_and_tell_people(project, monkeypatch):
    monkeypatch.chdir(project.root)
    app = typer.Typer()
    new.register(app)
    made = CliRunner().invoke(app, ["new", "op"])
    assert made.stdout == "kernels/op/definition.py\n"
    assert "warpsmith start op" in made.stderr
    given = CliRunner().invoke(app, ["export", "op", "--to", "out"])
    assert given.exit_code == 0
    assert given.stdout.splitlines()[0] == "out/definitions/softmax/op_float32.json"
    assert (project.root / "out/workloads/softmax/op_bfloat16.jsonl").is_file()


def test_literals_are_what_they_came_from():
    definition = Definition(
        name="op",
        description='quotes " and\nlines \\ é',
        axes={"n": "the axis", "one": 1},
        inputs={"x": TensorSpec(shape=("n",)), "s": ScalarSpec(type="bool", value=True)},
        outputs={"y": TensorSpec(shape=())},
        tolerance={"y": Tolerance(reduction="n", slack=3.0)},
        flops="n",
        workloads=(Workload(name="w", axes={"n": 2}, scalars={"s": False}),),
    )
    text = python_literal(definition, {"flops": "why\nso"})
    assert "    # why\n    # so\n    flops=" in text
    ast.parse(text)
    assert eval(text) == definition
