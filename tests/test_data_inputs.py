"""Files of the repository that tests read: which paths are told, and which are not."""

from __future__ import annotations

import ast

import data_inputs
import pytest
from code_inputs import ROOT, TESTS
from data_inputs import UnknownPath

HERE = TESTS / "lab" / "test_x.py"


def paths_of(text: str) -> set[str]:
    reader = data_inputs._PathReader(HERE)
    reader.visit(ast.parse(text))
    return {path.relative_to(ROOT).as_posix() for path in reader.paths}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = Path(__file__).parents[2] / 'docs' / 'redteam.md'\nprint(x)", {"docs/redteam.md"}),
        ("R = Path(__file__).parents[2]\nf(R / 'examples' / name / 'a.py')", {"examples"}),
        ("R = Path(__file__).parents[2]\nD = R / 'examples'\n[*D.glob('*')]", {"examples"}),
        (
            "R = Path(__file__).parents[2]\nD = R / 'examples'\nf(D / 'ranks', path.relative_to(R))",
            {"examples/ranks"},
        ),
        ("f(Path(__file__).with_name('data.json'))", {"tests/lab/data.json"}),
        ("from warpsmith.project import SHIPPED\nf(SHIPPED / 'docs' / 'redteam.md')", {"docs/redteam.md"}),
        ("SHIPPED = f()\ng(SHIPPED)", set()),
        ("f(tmp_path / 'kernels')", set()),
        ("find_project()", {"kernels", "devlog", "docs/knowledge"}),
        ("find_project(tmp_path)", set()),
        ("open('docs/redteam.md')", {"docs/redteam.md"}),
        ("from judged import DEVLOG\nf(DEVLOG / 'softmax')", {"devlog/softmax"}),
    ],
)
def test_paths_are_told(text: str, expected: set[str]) -> None:
    assert paths_of(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "run(cwd=Path(__file__).parents[2])",
        "R = Path(__file__).parents[2]\nf(R / name)",
        "R = Path(__file__).parents[2]\nf(f'{R}/docs')",
        "f(os.path.dirname(__file__))",
        "f(Path(judge.__file__).parents[1])",
        "f((Path(__file__).parents[2] / name).parent)",
        "f(Path.cwd())",
        "run(['warpsmith', 'next'])",
        "def test_x(fork_host):\n    pass",
    ],
)
def test_paths_that_cannot_be_told_are_refused(text: str) -> None:
    with pytest.raises(UnknownPath, match=r"lab/test_x.py"):
        paths_of(text)


def test_one_file_of_an_operator_stands_for_all_of_it() -> None:
    inputs = data_inputs.data_inputs(TESTS / "kernels" / "test_moe_route.py")
    assert ROOT / "kernels" / "moe_route" in inputs
    assert ROOT / "kernels" not in inputs
    assert not [path for path in inputs if path.name == "cumsum"]


def test_a_case_of_the_red_team_depends_on_its_operator_alone() -> None:
    file = "tests/lab/gate_tests/test_redteam.py"
    one = data_inputs.inputs_of_test(f"{file}::test_the_gate_holds[argmax/cpp/attack_daemon.cpp]")
    assert TESTS / "redteam" / "argmax" in one
    assert not {TESTS / "redteam", TESTS / "redteam" / "matmul"} & one
    assert TESTS / "redteam" in data_inputs.inputs_of_test(f"{file}::test_what_ships_is_broad_enough")


def test_what_reads_pages_of_hardware_depends_on_them() -> None:
    read = data_inputs.data_inputs(TESTS / "lab" / "gate" / "test_judge.py")
    pages = ROOT / "docs/knowledge/hardware"
    assert {pages / "h200.md", next(pages.glob("measured/cpu-*"))} <= read
    assert not read & {pages, pages / "measured", next(pages.glob("measured/h200-*"))}
    assert ROOT / "docs/knowledge" in data_inputs.data_inputs(
        TESTS / "program" / "analysis" / "test_prerequisites.py"
    )


def test_what_starts_commands_is_refused() -> None:
    with pytest.raises(UnknownPath):
        data_inputs.data_inputs(TESTS / "languages" / "test_new_language.py")


def test_what_a_definition_imports_is_code_too() -> None:
    code = data_inputs.data_imports(frozenset({ROOT / "kernels" / "fp8_block_gemm"}))
    assert ROOT / "warpsmith" / "lab" / "peer_libraries.py" in code
    assert ROOT / "warpsmith" / "lab" / "operator" / "peer_libraries.py" in code
