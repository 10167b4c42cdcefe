from __future__ import annotations

import sys

import pytest
from lab_samples import SQUARE

from warpsmith.errors import BadDefinition, MachineLacks, MissingInput
from warpsmith.lab.grading import correctness
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs


def test_it_holds_the_model_and_the_reference(workshop):
    file = workshop.load("square", SQUARE + "\npeers = {'again': reference}\n")
    assert file.definition.name == "square"
    assert file.peers == {"again": file.reference}
    assert file.magnitude is None


def test_a_missing_file_names_the_command(workshop):
    with pytest.raises(MissingInput, match="warpsmith new square"):
        definition_file.load_definition(workshop.project.definition_path("square"))


def test_what_does_not_import_is_told_with_its_line(workshop):
    path = workshop.define("square", "one = 1\n\ntwo = one / 0\n")
    with pytest.raises(BadDefinition) as caught:
        definition_file.load_definition(path)
    assert f"{path}:3 does not import: ZeroDivisionError" in str(caught.value)


def test_a_misspelt_operator_is_asked_for(workshop):
    workshop.define("square", SQUARE)
    with pytest.raises(MissingInput, match=r"did you mean `square`\? .*`warpsmith new sqare`"):
        definition_file.load_definition(workshop.project.definition_path("sqare"))
    with pytest.raises(MissingInput, match=r"does not exist; `warpsmith new softmax` creates it"):
        definition_file.load_definition(workshop.project.definition_path("softmax"))


def test_without_torch_the_user_installs_it_and_mends_nothing(workshop, monkeypatch):
    path = workshop.define("square", "import torch\n")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MachineLacks, match=rf"{path}:1 needs PyTorch, which is not installed: run `.*torch>="):
        definition_file.load_definition(path)


def test_another_missing_module_is_installed_or_taken_out(workshop):
    path = workshop.define("square", "import no_such_module.part\n")
    with pytest.raises(BadDefinition, match="install `no_such_module`, or fix the file"):
        definition_file.load_definition(path)


def test_a_syntax_error_is_told(workshop):
    path = workshop.define("square", "one = 1\ndef broken(:\n")
    with pytest.raises(BadDefinition) as caught:
        definition_file.load_definition(path)
    assert f"{path}:2 does not import: SyntaxError" in str(caught.value)


def test_an_invalid_model_is_told(workshop):
    path = workshop.define("square", SQUARE.replace('"representative"', "").replace("flops=", "flop="))
    with pytest.raises(BadDefinition, match="does not import: ValidationError"):
        definition_file.load_definition(path)


@pytest.mark.parametrize(("old", "new"), [("def reference", "def other"), ("definition =", "model =")])
def test_both_parts_are_needed(workshop, old, new):
    with pytest.raises(BadDefinition, match=r"must hold `definition = Definition\(...\)` and `def reference"):
        workshop.load("square", SQUARE.replace(old, new))


def test_the_folder_has_the_name(workshop):
    with pytest.raises(BadDefinition, match="named `square`, but its folder"):
        workshop.load("cube", SQUARE)


def test_the_hash_covers_the_python_files_beside_it(workshop):
    path = workshop.define("square", SQUARE)
    before = definition_file.definition_sha256(path)
    (path.parent / "notes.md").write_text("no code")
    assert definition_file.definition_sha256(path) == before
    (path.parent / "helper.py").write_text("one = 1\n")
    assert definition_file.definition_sha256(path) != before


def test_the_number_of_outputs_is_checked(workshop):
    file = workshop.load("square", SQUARE.replace("return x * x", "return x, x"))
    with pytest.raises(BadDefinition, match="returns 2 values"):
        _truth(file)


def test_a_reference_of_another_shape(workshop):
    file = workshop.load("square", SQUARE.replace("return x * x", "return x.sum()"))
    with pytest.raises(BadDefinition, match=r"gives `y` the shape \(\) at small, the definition says \(1000,\)"):
        _truth(file)


def test_a_reference_of_another_dtype(workshop):
    file = workshop.load("square", SQUARE.replace("return x * x", "return (x * x).bfloat16()"))
    workload = file.definition.workloads[0]
    drawn = Inputs(file, workload, 1, "cpu").draw()
    with pytest.raises(BadDefinition, match="returns `y` as bfloat16"):
        correctness.grade_reference(file, workload, drawn, _truth(file, drawn))


def test_a_reference_that_fails(workshop):
    file = workshop.load("square", SQUARE.replace("return x * x", "return x @ x[:3]"))
    with pytest.raises(BadDefinition, match=r"reference\(\) fails at small: RuntimeError"):
        _truth(file)


def test_a_reference_that_fails_in_its_own_precision(workshop):
    text = "if x.dtype == torch.float32: raise RuntimeError('no float32')\n    return x * x"
    file = workshop.load("square", SQUARE.replace("return x * x", text))
    workload = file.definition.workloads[0]
    drawn = Inputs(file, workload, 1, "cpu").draw()
    with pytest.raises(BadDefinition, match=r"reference\(\) fails at small: RuntimeError: no float32"):
        correctness.grade_reference(file, workload, drawn, _truth(file, drawn))


def test_a_reference_that_misses_its_own_bound(workshop):
    # A root of a difference cancels: without `magnitude` not even float32 itself is near enough.
    file = workshop.load("square", SQUARE.replace("return x * x", "return (x + 1e4) - 1e4"))
    workload = file.definition.workloads[0]
    drawn = Inputs(file, workload, 1, "cpu").draw()
    grade = correctness.grade_reference(file, workload, drawn, _truth(file, drawn))
    assert grade.status == "INCORRECT_NUMERICAL"
    text = "return (x + 1e4) - 1e4\ndef magnitude(x):\n    return x.abs() + 1e4"
    file = workshop.load("square", SQUARE.replace("return x * x", text))
    assert correctness.grade_reference(file, workload, drawn, _truth(file, drawn)).status == "PASSED"


def _truth(file, drawn=None):
    workload = file.definition.workloads[0]
    return correctness.compute_truth(file, workload, drawn or Inputs(file, workload, 1, "cpu").draw())
