"""Operators without a folder: the reference and its inputs come from any two files."""

from pathlib import Path

import pytest

from warpsmith.errors import BadDefinition, MissingInput
from warpsmith.interchange.reference_import import import_reference

pytestmark = pytest.mark.usefixtures("forked_scripts")

OPERATOR = "import torch\ndef Scale2(x):\n    return 2 * x\n"
INPUTS = "import torch\ndef some():\n    return {'x': torch.rand(40, 70)}\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "operator.py").write_text(OPERATOR)
    (tmp_path / "inputs.py").write_text(INPUTS)
    return tmp_path


def test_inputs_come_from_another_file(files: Path):
    file, draft = import_reference(files / "d", f"{files}/operator.py:Scale2", f"{files}/inputs.py:some")
    assert file.definition.name == "scale2"
    assert [w.axes for w in file.definition.select("representative")] == [{"rows": 40, "cols": 70}]
    assert "input x: uniform" in " ".join(draft.notes)
    assert file.path.is_relative_to(files / "d")


def test_single_inputs_replace_those_of_the_file(files: Path):
    file, _ = import_reference(files / "d", f"{files}/operator.py", f"{files}/inputs.py:some", ["x=8,16:float64"])
    assert file.definition.name == "operator"
    assert file.definition.workloads[0].dtype == "float64"
    assert file.definition.workloads[0].axes == {"rows": 8, "cols": 16}


def test_slips_say_what_is_missing(files: Path):
    with pytest.raises(BadDefinition, match=r"inputs\.py has no `other`"):
        import_reference(files / "d", f"{files}/operator.py", f"{files}/inputs.py:other")
    with pytest.raises(MissingInput, match=r"nothing\.py does not exist"):
        import_reference(files / "d", f"{files}/operator.py", f"{files}/nothing.py")
    with pytest.raises(BadDefinition, match="has no example inputs"):
        import_reference(files / "d", f"{files}/operator.py")
    assert not (files / "d").exists()
