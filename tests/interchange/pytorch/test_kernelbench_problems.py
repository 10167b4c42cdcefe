"""KernelBench problems, written in their form, become definitions that compute what the Model computes."""

from pathlib import Path

import pytest
import torch

from warpsmith.errors import BadDefinition, Misuse, TimedOut
from warpsmith.interchange.create import create_definition
from warpsmith.interchange.pytorch import importer
from warpsmith.interchange.pytorch.definition_text import definition_draft
from warpsmith.interchange.pytorch.inspection import inspect_operator
from warpsmith.interchange.pytorch.reductions import UnusableOperator
from warpsmith.lab.grading.correctness import compute_truth, grade_reference
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.project import find_project

HEAD = "import torch\nimport torch.nn as nn\n"

MATMUL = (
    HEAD
    + '''
class Model(nn.Module):
    """
    Simple model that performs a single square matrix multiplication (C = A * B)
    """
    def __init__(self):
        super(Model, self).__init__()

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return torch.matmul(A, B)

N = 48

def get_inputs():
    A = torch.rand(N, N)
    B = torch.rand(N, N)
    return [A, B]

def get_init_inputs():
    return []  # No special initialization inputs needed'''
)

LAYERNORM = (
    HEAD
    + '''
class Model(nn.Module):
    """
    Simple model that performs Layer Normalization.
    """
    def __init__(self, normalized_shape: tuple):
        super(Model, self).__init__()
        self.ln = nn.LayerNorm(normalized_shape=normalized_shape)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.ln(x)

features = 6
dim = 8

def get_inputs():
    x = torch.rand(4, features, dim)
    return [x]

def get_init_inputs():
    return [(features, dim)]
'''
)

SOFTMAX = (
    HEAD
    + '''
class Model(nn.Module):
    """Softmax over features."""
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.softmax(x, dim=self.dim)

def get_inputs():
    return [torch.rand(%s)]

def get_init_inputs():
    return [1]
'''
)

# 4 TiB of inputs: no machine that runs tests draws them.
HUGE = SOFTMAX % "2**20, 2**20"


def body(forward, inputs="[torch.rand(4, 6)]", init="pass", head=""):
    """A problem with a Model of these few lines."""
    return (
        f"{HEAD}{head}\nclass Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        {init}\n    def forward(self, x, s=2):\n        {forward}\n"
        f"def get_inputs():\n    return {inputs}\ndef get_init_inputs():\n    return []\n"
    )


def write(folder: Path, text: str, name: str = "problem.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def adopt(tmp_path: Path, text: str, op: str = "op"):
    """The definition of a problem, inspected in this process."""
    source = write(tmp_path, text, "7_Problem.py")
    path = tmp_path / "kernels" / op / "definition.py"
    definition_draft(inspect_operator(op, source), source).write(path)
    return definition_file.load_definition(path)


def inspect(tmp_path: Path, text: str):
    return inspect_operator("op", write(tmp_path, text))


def drawn(file, seed: int = 0) -> dict[str, torch.Tensor]:
    return Inputs(file, file.definition.workloads[0], seed, "cpu").draw()


def test_a_model_without_words_has_none_of_its_base_class(tmp_path):
    said = MATMUL[(begin := MATMUL.index('"""', MATMUL.index("class Model"))) : MATMUL.index('"""', begin + 3) + 3]
    assert "single square" in said
    assert adopt(tmp_path, MATMUL.replace(said, "")).definition.description == "`Model` of 7_Problem.py."


def test_matmul_has_its_shapes_and_its_work(tmp_path):
    file = adopt(tmp_path, MATMUL)
    definition = file.definition
    assert {name: spec.shape for name, spec in definition.tensor_inputs.items()} == {
        "A": ("rows", "A_cols"),
        "B": ("A_cols", "B_cols"),
    }
    assert definition.workloads[0].axes == {"rows": 48, "A_cols": 48, "B_cols": 48}
    assert definition.workloads[0].distribution == "uniform"
    assert definition.work(definition.workloads[0]).flops == 2 * 48**3
    assert definition.tolerance.reduction == "A_cols"
    assert definition.description.startswith("Simple model that performs a single square")
    assert definition.tags == ("kernelbench:7_Problem",)
    values = drawn(file)
    assert torch.equal(file.reference(**values), values["A"] @ values["B"])
    assert (tmp_path / "kernels/op/pytorch_source.py").read_text() == MATMUL


def test_layernorm_gives_its_weights_to_the_kernel(tmp_path):
    file = adopt(tmp_path, LAYERNORM)
    assert list(file.definition.inputs) == ["x", "ln_weight", "ln_bias"]
    assert [spec.shape for spec in file.definition.tensor_inputs.values()] == [("batch", 6, 8), (6, 8), (6, 8)]
    assert file.definition.tensor_inputs["ln_weight"].role == "weight"
    assert file.definition.tolerance.reduction == "48"
    values = drawn(file)
    expected = torch.nn.functional.layer_norm(values["x"], (6, 8), values["ln_weight"], values["ln_bias"])
    assert torch.equal(file.reference(**values), expected)
    assert values["ln_weight"].std() > 0, "a kernel that leaves out constant weights would pass"


def test_shapes_of_terabytes_are_read_without_memory(tmp_path):
    file = adopt(tmp_path, HUGE)
    assert file.definition.workloads[0].axes == {"rows": 2**20, "cols": 2**20}
    assert file.definition.tolerance.reduction == "cols / 4096 + 4096"
    assert "estimated as one per element" in file.path.read_text()
    x = torch.rand(3, 5)
    assert torch.equal(file.reference(x), x.softmax(1))


def test_running_statistics_are_no_inputs_and_do_not_move(tmp_path):
    file = adopt(tmp_path, body("return self.bn(x)", init="self.bn = nn.BatchNorm1d(6)"))
    assert list(file.definition.inputs) == ["x", "bn_weight", "bn_bias"]
    assert '"bn.running_mean"' in file.path.read_text()
    values = drawn(file)
    assert torch.equal(file.reference(**values), file.reference(**values))
    workload = file.definition.workloads[0]
    assert grade_reference(file, workload, values, compute_truth(file, workload, values)).status == "PASSED"


def test_numbers_among_the_inputs_become_scalars(tmp_path):
    definition = inspect(tmp_path, body("return x * s", inputs="[torch.rand(3), 3.14]")).definition
    assert definition.scalar_inputs["s"].value == 3.14
    assert definition.scalar_inputs["s"].type == "float"


def test_code_that_asks_for_values_is_run_for_real(tmp_path):
    inspected = inspect(tmp_path, body("return x[: int(x.sum().clamp(2, 2).item())]"))
    assert inspected.definition.outputs["out"].shape == (2, 6)
    assert [w.name for w in inspected.definition.workloads] == ["as-given"]


def test_names_never_meet(tmp_path):
    init = "self.x = nn.Parameter(torch.zeros(6)); self.out = nn.Parameter(torch.zeros(6))"
    definition = inspect(tmp_path, body("return x + self.x + self.out", init=init)).definition
    names = [*definition.inputs, *definition.outputs, *definition.axes]
    assert len(set(names)) == len(names) == 5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (body("raise ValueError('wrong\\nshape')"), r"Model.forward fails with ValueError: wrong shape"),
        (body("return torch.dropout(x, 0.5, True)"), "draws random numbers"),
        (body("return {'y': x}"), "returns a dict"),
        (body("return x.to(torch.complex64)"), "complex64"),
        (
            body("return x", inputs="[torch.rand(2), object()]"),
            "`s` is of the type object, neither a tensor nor a plain value",
        ),
        (body("return x * s", inputs="[1.0, 2.0]"), "no tensor"),
        (body("return x", inputs="[torch.rand(2)] * 3"), "returns 3 values, but Model takes 2"),
        (body("return x", inputs="1 / 0"), r"get_inputs\(\) fails with ZeroDivisionError"),
        (body("return x", init="exit(3)"), "SystemExit"),
        (body("return x", head="import no_such_module"), "the file fails with ModuleNotFoundError"),
    ],
)
def test_unusable_problems_are_named(tmp_path, text, says):
    with pytest.raises(UnusableOperator, match=says):
        inspect(tmp_path, text)


def create(tmp_path: Path, text: str):
    (tmp_path / "warpsmith.toml").write_text("")
    return create_definition(find_project(tmp_path), "op", write(tmp_path, text, "7_Problem.py"))


def test_a_failing_problem_writes_nothing(tmp_path):
    with pytest.raises(BadDefinition, match=r"7_Problem.py: get_inputs\(\) fails with .*memory"):
        create(tmp_path, body("return x", inputs="[torch.empty(2**38), torch.rand(1).item()]"))
    assert not (tmp_path / "kernels").exists()


def test_what_is_not_python_is_refused_before_it_runs(tmp_path):
    with pytest.raises(Misuse, match="is not Python"):
        create(tmp_path, "def broken(:\n")
    assert not (tmp_path / "kernels").exists()


def test_a_hanging_problem_is_stopped(tmp_path):
    with pytest.raises(TimedOut, match="within 1 s"):
        importer.inspect_in_process("op", write(tmp_path, "while True: pass\n"), "", (), seconds=1)


def test_a_dying_problem_is_told(tmp_path):
    with pytest.raises(BadDefinition, match="ended with code 7"):
        importer.inspect_in_process("op", write(tmp_path, "import os\nos._exit(7)\n"), "", ())
