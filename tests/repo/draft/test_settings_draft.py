"""`warpsmith repo init`: where the draft goes, what it leaves alone, and how it is taken back."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest
import repo_kit
from typer.testing import CliRunner, Result

from warpsmith import project as projects
from warpsmith.cli.main import load_app
from warpsmith.errors import MissingInput, Misuse, WarpsmithError
from warpsmith.repo import settings

TRITON = "import triton\n\n\n@triton.jit\ndef kernel(x):\n    pass\n"
TREE = {
    "src/pkg/__init__.py": "",
    "src/pkg/ops/softmax.py": TRITON,
    "src/pkg/ops/plain.py": "def jit(x):\n    return x\n",
    "tests/test_softmax.py": "def test_softmax():\n    assert True\n",
    "tests/test_other.py": "def test_other():\n    assert True\n",
}
PYPROJECT = "# hand  formatted\n[project]\nname   =  'pkg'\r\nversion = '1'\n[tool.ruff]\nline-length=99"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    top = tmp_path.resolve() / "repo"
    for name, text in TREE.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    repo_kit.git(top, "init", "-q")
    monkeypatch.chdir(top)
    return top


def run(*arguments: str, code: int = 0) -> Result:
    done = CliRunner().invoke(load_app(), list(arguments))
    if isinstance(done.exception, WarpsmithError):
        raise done.exception
    assert done.exit_code == code, done.output
    return done


def test_the_draft_is_added_at_the_end_and_taken_back(root: Path):
    (root / "pyproject.toml").write_bytes(PYPROJECT.encode())
    printed = run("repo", "init")
    written = (root / "pyproject.toml").read_bytes().decode()
    assert written.startswith(PYPROJECT)
    table = tomllib.loads(written)["tool"]["warpsmith"]["project"]
    assert table["kernel"] == "src/pkg/ops/softmax.py"
    assert table["test"].startswith("PYTHONPATH=src python -m pytest")
    assert table["test"].endswith("tests/test_softmax.py")
    assert "line 4: a Triton kernel" in printed.stdout
    assert settings.load_settings(projects.find_project(root)).kernel == ("src/pkg/ops/softmax.py",)
    assert (root / "warpsmith_bench.py").is_file()
    run("restore", "pyproject.toml", "warpsmith_bench.py")
    assert (root / "pyproject.toml").read_bytes() == PYPROJECT.encode()
    assert not (root / "warpsmith_bench.py").exists()


def test_without_pyproject_it_is_warpsmith_toml(root: Path):
    run("repo", "init")
    assert not (root / "pyproject.toml").exists()
    assert "kernel" in tomllib.loads((root / "warpsmith.toml").read_text())["project"]


def test_a_dry_run_writes_nothing(root: Path):
    before = sorted(root.rglob("*"))
    assert 'kernel = "src/pkg/ops/softmax.py"' in run("repo", "init", "--dry-run").stdout
    assert sorted(root.rglob("*")) == before


def test_settings_that_exist_are_left(root: Path):
    text = f"[project]\n{repo_kit.CONTRACT}"
    (root / "warpsmith.toml").write_text(text)
    with pytest.raises(Misuse, match="has project settings already"):
        run("repo", "init")
    assert (root / "warpsmith.toml").read_text() == text


def test_a_file_that_takes_no_table_is_left(root: Path):
    text = "tool.warpsmith = {}\n"
    (root / "pyproject.toml").write_text(text)
    with pytest.raises(Misuse, match="cannot be added to the end"):
        run("repo", "init")
    assert (root / "pyproject.toml").read_text() == text
    assert not (root / "warpsmith_bench.py").exists()
    assert "kernel" in run("repo", "init", "--dry-run").stdout


def test_a_script_of_the_user_s_is_left(root: Path):
    (root / "warpsmith_bench.py").write_text("mine\n")
    assert "python warpsmith_bench.py" in run("repo", "init", "--dry-run").stdout
    (root / "test_speed.py").write_text("def test_speed(benchmark):\n    benchmark(print)\n")
    with pytest.raises(Misuse, match="exists already; move it away"):
        run("repo", "init")
    assert (root / "warpsmith_bench.py").read_text() == "mine\n"


def test_the_kernel_may_be_named(root: Path):
    assert (
        'kernel = "src/pkg/ops/plain.py"'
        in run("repo", "init", "--dry-run", "--kernel", "src/pkg/ops/plain.py").stdout
    )
    with pytest.raises(Misuse, match=r"none\.py is no file"):
        run("repo", "init", "--kernel", "none.py")
    (root / "src/pkg/ops/softmax.py").unlink()
    with pytest.raises(MissingInput, match="repo init --kernel FILE"):
        run("repo", "init")


def test_other_candidates_are_named(root: Path):
    (root / "src/pkg/ops/norm.py").write_text(TRITON)
    printed = run("repo", "init", "--dry-run").stdout
    assert "UNCERTAIN: other candidates are src/pkg/ops/norm.py" in printed


def test_the_missing_settings_name_the_command(root: Path):
    with pytest.raises(MissingInput, match="`warpsmith repo init` drafts it"):
        run("repo", "check")


def test_the_skeleton_measures_nothing_until_it_is_completed(root: Path):
    run("repo", "init")
    script = root / "warpsmith_bench.py"
    refused = subprocess.run(("python3", script), capture_output=True, text=True, cwd=root)
    assert refused.returncode == 1
    assert "measures nothing yet" in refused.stderr
    assert refused.stdout == ""
    text = script.read_text().replace("= []\n", '= [{"n": 1}, {"n": 2}]\n', 1)
    script.write_text(
        text.replace("\n    sys.exit(f", "\n    return lambda: None\n    sys.exit(f").replace("0.2", "0.001")
    )
    environment = {"BENCH_ROWS": '[{"n": "2"}]', "PATH": "/usr/bin:/bin"}
    table = subprocess.run(("python3", script), capture_output=True, text=True, cwd=root, env=environment)
    assert table.stdout.splitlines()[0] == "n,ms"
    assert [line.partition(",")[0] for line in table.stdout.splitlines()[1:]] == ["2"]
