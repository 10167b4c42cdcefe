"""Code that tests depend on: what is hashed of a file, and which files count."""

from __future__ import annotations

from pathlib import Path

import code_inputs
import pytest
from code_inputs import PACKAGE, ROOT, TESTS

PLAIN = '''"""A module."""
# why
def f():
    """Return one."""
    return 1
'''
SCRIPT = '''def f():
    return """
# a line of a script
"""
'''


@pytest.fixture
def source(tmp_path: Path):
    """`source(text)`: the parsed file."""

    def parse(text: str, name: str = "test_x.py") -> code_inputs.Source:
        path = tmp_path / name
        path.write_text(text)
        code_inputs.read_source.cache_clear()
        return code_inputs.read_source(path)

    yield parse
    code_inputs.read_source.cache_clear()


def names(paths: frozenset[Path]) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in paths}


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (PLAIN, PLAIN.replace("why", "why not"), True),
        (PLAIN, PLAIN.replace("A module.", "Another\nmodule."), True),
        (PLAIN, PLAIN.replace("Return one.", "Return 1."), True),
        (PLAIN, PLAIN.replace("return 1", "return 2"), False),
        (PLAIN, PLAIN.replace("    return 1", "return 1"), False),
        (PLAIN.replace("1\n", "f.__doc__\n"), PLAIN.replace("1\n", "f.__doc__\n").replace("one", "it"), False),
        ('x = 1\n"""a"""; y = 2\n', 'x = 1\n"""a"""; y = 3\n', False),
        (SCRIPT, SCRIPT.replace("a line", "the line"), False),
        (SCRIPT, SCRIPT.replace("# a line of a script\n", ""), False),
        (SCRIPT, SCRIPT.replace('"""\n#', '""" \n#'), False),
    ],
)
def test_what_cannot_change_a_result_is_not_hashed(source, before: str, after: str, same: bool) -> None:
    assert before != after
    assert (source(before.encode().decode()).sha256 == source(after).sha256) is same


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import warpsmith.files", {"warpsmith/__init__.py", "warpsmith/files.py"}),
        ("def f():\n    from warpsmith import files", {"warpsmith/__init__.py", "warpsmith/files.py"}),
        ("from warpsmith.files import write_file", {"warpsmith/__init__.py", "warpsmith/files.py"}),
        ("if TYPE_CHECKING:\n    import warpsmith.files", set()),
        ("x = 'python -m warpsmith.files'", {"warpsmith/__init__.py", "warpsmith/files.py"}),
        ("x = '''\nfrom warpsmith import errors, files\n'''",
         {"warpsmith/__init__.py", "warpsmith/errors.py", "warpsmith/files.py"}),
        ("from lab_samples import SQUARE", {"tests/lab/lab_samples.py"}),
        ("x = 'opened_walls'", {"tests/lab/opened_walls.py"}),
        ("x = Path(__file__).with_name('interpreted.py')", {"tests/kernels/interpreted.py"}),
        ("import torch", set()),
    ],
)  # fmt: skip
def test_imports_count_wherever_they_stand(source, text: str, expected: set[str]) -> None:
    assert names(source(text).imports) == expected


def test_no_word_of_the_package_names_a_kit() -> None:
    host = code_inputs.PACKAGE / "lab" / "workers" / "worker_host.py"
    assert '"compiled"' in host.read_text()
    assert "tests/kernels/compiled.py" not in names(code_inputs.read_source(host).imports)


def test_a_public_name_leads_to_its_module(source) -> None:
    assert "warpsmith/use/operator.py" in names(source("from warpsmith import best").imports)
    assert "warpsmith/use/operator.py" not in names(source("from warpsmith import Definition").imports)


@pytest.mark.parametrize("text", ["x = f'warpsmith.lab.{name}'", "x = 'warpsmith.lab'"])
def test_a_package_in_a_string_is_all_of_it(source, text: str) -> None:
    assert {"warpsmith/lab/gate/judge.py", "warpsmith/lab/workers/zygote.py"} <= names(source(text).imports)


@pytest.mark.parametrize(
    "text",
    ['run([python, "-m", "warpsmith", "next"])', 'run("python -m warpsmith next")', "x = f'warpsmith.{name}'"],
)
def test_who_runs_the_command_depends_on_everything(source, text: str) -> None:
    assert source(text).runs_commands
    assert not source(text.replace("warpsmith", "warpsmith.lab.x")).runs_commands


def test_a_fixture_counts_for_tests_that_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_inputs, "TESTS", tmp_path)
    (tmp_path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture\ndef one(below):\n    pass\n"
        "@pytest.fixture\ndef below():\n    import warpsmith.files\n"
        "@pytest.fixture(autouse=True)\ndef two(third):\n    pass\n"
        "@pytest.fixture\ndef third():\n    import warpsmith.errors\n"
    )
    counts = []
    for name, parameter in (("test_a.py", "one"), ("test_b.py", "")):
        (tmp_path / name).write_text(f"def test_x({parameter}):\n    pass\n")
        files = code_inputs.code_inputs(tmp_path / name)
        assert PACKAGE / "errors.py" in files
        counts.append(PACKAGE / "files.py" in files)
    assert counts == [True, False]


def test_a_judgement_depends_on_its_processes_and_languages_and_on_no_command() -> None:
    code = code_inputs.code_inputs(TESTS / "lab" / "gate" / "test_judge.py")
    data = code_inputs.package_data(code)
    assert names(code) >= {
        "warpsmith/lab/gate/judge.py",
        "warpsmith/lab/workers/zygote.py",
        "warpsmith/lab/workers/worker.py",
        "warpsmith/languages/cpp/language.py",
        "tests/lab/workshop.py",
        "tests/conftest.py",
    }
    assert "warpsmith/languages/cpp/api/warpsmith.hpp" in names(data)
    assert not [name for name in names(code) if name.startswith(("warpsmith/cli", "warpsmith/campaign"))]


def test_a_program_starts_with_what_lies_beside_its_runner() -> None:
    code = names(code_inputs.code_inputs(TESTS / "program" / "process" / "test_program_runner.py"))
    assert {"warpsmith/program/process/serve.py", "warpsmith/program/process/inject/sitecustomize.py"} <= code
    assert "tests/program_host.py" in code  # by a fixture that its folder's conftest takes
