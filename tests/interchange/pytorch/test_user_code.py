"""What the importer takes from a user's file, and how it refuses the rest."""

from pathlib import Path

import pytest
import torch

from warpsmith.errors import Misuse
from warpsmith.interchange.create import create_definition, split_source
from warpsmith.interchange.pytorch.definition_text import definition_draft
from warpsmith.interchange.pytorch.example_flags import FlagTensor, FlagValue, parse_example_flag
from warpsmith.interchange.pytorch.inspection import inspect_operator
from warpsmith.interchange.pytorch.reductions import UnusableOperator
from warpsmith.lab.operator import definition_file
from warpsmith.lab.operator.inputs import Inputs
from warpsmith.project import find_project

HEAD = "import torch\nfrom torch import nn\n"

SCALE = HEAD + "def scale(x, factor):\n    return x * factor\n"

PAIR = (
    HEAD
    + """
class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x, *, shift=None, mode="add"):
        y = x * self.weight
        return y if shift is None else y + shift

def double(x):
    return 2 * x

def get_inputs():
    return [torch.randn(6, 4)]
"""
)


def inspect(tmp_path: Path, text: str, name: str = "", *flags: str):
    path = tmp_path / "mine.py"
    path.write_text(text)
    return inspect_operator("op", path, name, [parse_example_flag(flag) for flag in flags])


def load(tmp_path: Path, text: str, name: str = "", *flags: str):
    inspected = inspect(tmp_path, text, name, *flags)
    path = tmp_path / "op" / "definition.py"
    definition_draft(inspected, tmp_path / "mine.py").write(path)
    return definition_file.load_definition(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=8,1024:float32", FlagTensor(name="x", shape=(8, 1024), dtype="float32")),
        ("x = 8, 4 : bfloat16", FlagTensor(name="x", shape=(8, 4), dtype="bfloat16")),
        ("s=:float32", FlagTensor(name="s", shape=(), dtype="float32")),
        ("ids=64:int64<50", FlagTensor(name="ids", shape=(64,), dtype="int64", distribution="integers:0:50")),
        ("o=9:int32~offsets:64", FlagTensor(name="o", shape=(9,), dtype="int32", distribution="offsets:64")),
        ("eps=1e-5", FlagValue(name="eps", source="1e-05")),
        ("causal=true", FlagValue(name="causal", source="True")),
        ("shape=(4, 2)", FlagValue(name="shape", source="(4, 2)")),
        ("mode='sum'", FlagValue(name="mode", source="'sum'")),
    ],
)
def test_flags_say_tensors_and_values(text, expected):
    assert parse_example_flag(text) == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("x", "no name and value"),
        ("x=", "no name and value"),
        ("1x=3", "no name and value"),
        ("x=8,4:float31", "unknown dtype `float31`"),
        ("x=8,4:float32<3", "bounds integers"),
        ("x=8,4,float32", "neither a tensor nor a Python value"),
    ],
)
def test_flags_without_a_meaning_are_refused(text, says):
    with pytest.raises(Misuse, match=says) as caught:
        parse_example_flag(text)
    assert "x=8,1024:float32" in str(caught.value) or "known" in str(caught.value) or "bounds" in str(caught.value)


def test_a_function_without_example_inputs_names_the_flags(tmp_path):
    with pytest.raises(UnusableOperator, match="has no example inputs") as caught:
        inspect(tmp_path, HEAD + "def norm(x, weight, ids, eps, k: int = 3):\n    return x\n")
    message = str(caught.value)
    for flag in ("x=8,1024:float32", "weight=1024:float32", "ids=1024:int64<1000", "eps=1e-5"):
        assert f'--input "{flag}"' in message
        parse_example_flag(flag)
    assert '"k=' not in message
    with pytest.raises(UnusableOperator, match=r'has no example of factor; .*--input "factor=8,1024:float32"'):
        inspect(tmp_path, SCALE, "", "x=4,4:float32")


def test_flags_give_sizes_types_ranges_and_numbers(tmp_path):
    text = HEAD + "def rows(table, ids, factor):\n    return table[ids] * factor\n"
    file = load(tmp_path, text, "", "table=50,8:float32", "ids=6:int64<50", "factor=0.5")
    definition = file.definition
    assert definition.tensor_inputs["ids"].distribution == "integers:0:50"
    assert definition.scalar_inputs["factor"].value == 0.5
    values = Inputs(file, definition.workloads[0], 0, "cpu").draw()
    assert torch.equal(file.reference(**values, factor=0.5), values["table"][values["ids"]] * 0.5)


def test_flags_replace_the_examples_of_the_file(tmp_path):
    definition = inspect(tmp_path, PAIR, "double", "x=3,5,7:float32").definition
    assert definition.tensor_inputs["x"].shape == ("batch", "rows", "cols")
    with pytest.raises(UnusableOperator, match=r"double has no parameter `z`; it has x"):
        inspect(tmp_path, PAIR, "double", "z=3:float32")


def test_a_class_needs_its_constructor_arguments(tmp_path):
    with pytest.raises(UnusableOperator, match=r"constructor of Layer needs width; .*get_init_inputs.*:model"):
        inspect(tmp_path, PAIR, "Layer")
    ready = PAIR + "\ndef get_init_inputs():\n    return [4]\n"
    assert inspect(tmp_path, ready, "Layer").definition.tensor_inputs["weight"].shape == (4,)


def test_an_instance_with_keywords_and_plain_values_is_called_as_in_the_example(tmp_path):
    examples = (
        'layer = Layer(4)\nexample_inputs = {"x": torch.randn(6, 4), "shift": torch.randn(4), "mode": "add"}\n'
    )
    file = load(tmp_path, PAIR.replace("def get_inputs", "def _unused") + examples, "layer")
    assert list(file.definition.inputs) == ["x", "shift", "weight"]
    x, shift, weight = torch.randn(3, 4), torch.randn(4), torch.randn(4)
    assert torch.equal(file.reference(x, shift, weight), x * weight + shift)


def test_the_object_is_named_or_the_only_one(tmp_path):
    assert inspect(tmp_path, PAIR, "double").object_name == "double"
    two = HEAD + "def a(x):\n    return x\n\ndef b(x):\n    return x\n"
    with pytest.raises(UnusableOperator, match=r"several operators: a, b; name one, as in `--from .*mine.py:b`"):
        inspect(tmp_path, two)
    with pytest.raises(UnusableOperator, match="has no `c`"):
        inspect(tmp_path, two, "c")
    with pytest.raises(UnusableOperator, match="has no operator"):
        inspect(tmp_path, "x = 1\n")
    with pytest.raises(UnusableOperator, match="`x` is of the type int"):
        inspect(tmp_path, "x = 1\n", "x")


def test_files_with_code_beside_them_are_refused(tmp_path):
    (tmp_path / "layers.py").write_text("def f(x):\n    return x\n")
    for line in ("import layers", "from layers import f", "from .layers import f"):
        with pytest.raises(UnusableOperator, match=r"imports `\.?layers` from its own folder"):
            inspect(tmp_path, f"{line}\ndef g(x):\n    return x\n", "g", "x=4:float32")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return x + torch.randn_like(x)", "draws random numbers"),
        ("return nn.functional.dropout(x)", "`eval\\(\\)` mode"),
        ("return x.add_(1)", "writes to its input `x`"),
    ],
)
def test_functions_without_one_answer_are_refused(tmp_path, body, says):
    with pytest.raises(UnusableOperator, match=says):
        inspect(tmp_path, f"{HEAD}def f(x):\n    {body}\n", "", "x=4,5:float32")


def test_half_precision_is_widened_only_where_rounding_between_operations_misses_the_bound(tmp_path):
    one = load(tmp_path, f"{HEAD}def f(x):\n    return torch.softmax(x, -1)\n", "", "x=64,64:bfloat16")
    assert ".float()" not in one.path.read_text()
    text = f"{HEAD}def f(x, y):\n    return x * y + x - y * x\n"
    inspected = inspect(tmp_path, text, "", "x=64,64:bfloat16", "y=64,64:bfloat16")
    assert inspected.upcast == ("x", "y")
    assert any("computes in float32" in line for line in inspected.assumptions)
    many = load(tmp_path, text, "", "x=64,64:bfloat16", "y=64,64:bfloat16")
    assert many.reference(torch.ones(2, 2).bfloat16(), torch.ones(2, 2).bfloat16()).dtype == torch.bfloat16


def test_a_mask_of_the_module_stays_in_it(tmp_path):
    text = (
        f"{HEAD}\nclass Causal(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('mask', torch.ones(8, 8).tril())\n"
        "        self.register_buffer('scale', torch.rand(8) + 1)\n\n"
        "    def forward(self, x):\n        x = x * self.scale\n"
        "        return x.masked_fill(self.mask == 0, 0.0)\n\n"
        "def get_inputs():\n    return [torch.randn(3, 8, 8)]\n"
    )
    file = load(tmp_path, text)
    assert list(file.definition.inputs) == ["x", "scale"]
    assert torch.equal(file.reference(torch.ones(2, 8, 8), torch.ones(8)), torch.ones(2, 8, 8).tril())


def test_values_of_large_examples_follow_from_what_drew_them(tmp_path):
    text = (
        f"{HEAD}def f(x, ids):\n    return x[ids]\n\n"
        "def get_inputs():\n    return [torch.rand(2**20, 512), torch.randint(0, 2**20, (64,))]\n"
    )
    definition = inspect(tmp_path, text).definition
    assert definition.workloads[0].distribution == "uniform"
    assert definition.tensor_inputs["ids"].distribution == "integers:0:rows"


def test_windows_with_a_stride_have_a_formula(tmp_path):
    text = f"{HEAD}layer = nn.Conv2d(3, 4, 11, stride=4, padding=2)\n"
    definition = inspect(tmp_path, text, "", "input=2,3,64,64:float32").definition
    assert definition.outputs["out"].shape == ("batch", 4, "(rows + 1) // 4 - 1", "(cols + 1) // 4 - 1")
    workload = definition.workloads[0]
    assert definition.work(workload).flops == 2 * 2 * 4 * 15 * 15 * 3 * 11 * 11


def test_the_error_hook_follows_the_inputs_where_the_size_of_a_result_does_not_tell(tmp_path):
    path = load(tmp_path, f"{HEAD}layer = nn.BatchNorm2d(4)\n", "", "input=2,4,8,8:float32").path
    assert "how far a relative change of the inputs moves it" in path.read_text()


def test_results_in_nested_tuples_are_flat(tmp_path):
    file = load(tmp_path, f"{HEAD}def f(x):\n    return x, (x + 1, None, x * 2)\n", "", "x=4,5:float32")
    assert list(file.definition.outputs) == ["out0", "out1", "out2"]
    x = torch.randn(4, 5)
    assert [torch.equal(a, b) for a, b in zip(file.reference(x), (x, x + 1, x * 2), strict=True)] == [True] * 3


def test_the_command_writes_in_its_own_process(tmp_path):
    (tmp_path / "warpsmith.toml").write_text("")
    source = tmp_path / "scale.py"
    source.write_text(SCALE)
    flags = ["x=4,6:float32", "factor=2.0"]
    path, draft = create_definition(find_project(tmp_path), "op", source, object_name="scale", examples=flags)
    assert definition_file.load_definition(path).definition.axes.keys() == {"rows", "cols"}
    assert draft.notes[0] == "axis rows: x.shape[0] = 4"


def test_sources_split_at_the_last_colon():
    assert split_source("a/b.py:f") == (Path("a/b.py"), "f")
    assert split_source("a/b.py") == (Path("a/b.py"), "")
    assert split_source("c:/b.py") == (Path("c:/b.py"), "")


def test_flags_need_a_python_file(tmp_path):
    (tmp_path / "warpsmith.toml").write_text("")
    with pytest.raises(Misuse, match="require --from with a Python file"):
        create_definition(find_project(tmp_path), "op", examples=["x=4:float32"])


def test_a_byte_order_mark_is_no_code(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SCALE + "def get_inputs():\n    return [torch.randn(6, 4), 2.0]\n", encoding="utf-8-sig")
    draft = definition_draft(inspect_operator("op", path, "", []), path)
    draft.write(tmp_path / "op" / "definition.py")
    assert definition_file.load_definition(tmp_path / "op" / "definition.py").definition.name == "op"


def test_a_result_in_float64_is_accumulated_in_float64(tmp_path):
    text = HEAD + "def both(x, y):\n    return x.sum(-1), y.sum(-1)\n"
    file = load(tmp_path, text, "", "x=8,64:float64", "y=8,64:float32")
    first, second = file.definition.outputs
    assert file.definition.tolerance_of(first).accumulate == "float64"
    assert file.definition.tolerance_of(second).accumulate == "float32"
