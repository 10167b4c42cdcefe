"""Sources that are refused unrun."""

from __future__ import annotations

import pytest

from warpsmith.lab.gate.lint import list_refusals


@pytest.mark.parametrize(
    "statement",
    [
        "from warpsmith import lab",
        "  from warpsmith.lab.gate import judge",
        "from warpsmith . lab import gate",
        "from kernels \\\n    import softmax",
        "from definition import *",
        "import definition",
        "import warpsmith.lab as lab",
        "import kernels as k, os",
        "import definition;",
    ],
)
def test_a_statement_that_imports_the_lab_is_refused(statement):
    (refusal,) = list_refusals(f"import torch\n{statement}\n")
    assert refusal.startswith("line 2: ")
    assert refusal.endswith("reaches for the lab or the definition")


@pytest.mark.parametrize(
    "prose",
    [
        "/* Tiles differ\n   from kernels of the other kind. */",
        "from definitions import x",
        "   import kernels are slower than those of tensor cores",
        "// import warpsmith",
        "x = 'from warpsmith'",
    ],
)
def test_a_line_of_prose_is_none(prose):
    assert list_refusals(f"int one;\n{prose}\n") == []


@pytest.mark.parametrize("code", ["dlsym(RTLD_NEXT, name);", "open('definition.py')", "PyRun_SimpleString(text);"])
def test_other_code_and_files_of_the_grader_are_refused(code):
    assert len(list_refusals(code)) == 1
