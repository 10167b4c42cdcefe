"""The pages that newcomers and coding agents read first: each claim that a command can check is checked."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from tools.naming import LEAST_WORDS
from warpsmith import languages
from warpsmith.cli.main import load_app
from warpsmith.core.evaluation import GATE_VERSION, Verdict

ROOT = Path(__file__).parents[1]
README, CONTRIBUTING, MAP = ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / ".claude" / "CLAUDE.md"
PAGES = (README, CONTRIBUTING, MAP)
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = (
    "warpsmith",
    "tests",
    "docs",
    "skills",
    "agents",
    "tools",
    "kernels",
    "devlog",
    "benchmarks",
    "examples",
    "evals",
)


def tracked(path: str) -> bool:
    """Whether git tracks the path; outside a checkout whether it exists."""
    listing = subprocess.run(["git", "ls-files", "--", path], cwd=ROOT, capture_output=True, text=True)
    return bool(listing.stdout) if listing.returncode == 0 else (ROOT / path).exists()


def code_spans(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", text)


def command_lines(page: Path) -> list[list[str]]:
    """Every `warpsmith ...` in code, as words, comments and continuations left out."""
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()] + code_spans(page)
    return [line.split()[1:] for line in lines if re.match(r"warpsmith( |$)", line)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_exists(page):
    paths = [span for span in code_spans(page) if re.match(rf"({'|'.join(FOLDERS)})/[\w./-]*$", span)]
    missing = [path for path in paths if not (ROOT / path).exists()]
    assert not missing
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()) if "://" not in link]
    assert links
    assert not [link for link in links if not tracked(str((page.parent / link).resolve().relative_to(ROOT)))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_exists(page):
    for words in command_lines(page):
        command = get_command(load_app())
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert not (words and hasattr(command, "commands") and words[0].isalpha() and words[0].islower()), words
        options = {
            option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        assert {word for word in words if word.startswith("--")} <= options, words


def test_readme_is_one_screen_to_the_results_and_short():
    lines = README.read_text().splitlines()
    assert len(lines) <= 130
    assert "## Results" in lines[:25]
    for heading in ("## Install", "## Two commands to try it", "## Five minutes", "## What was not measured"):
        assert heading in lines
    picture = re.search(r"!\[[^]]+\]\(([^)]+)\)", README.read_text())
    assert picture
    assert tracked(picture[1])


def test_make_has_the_targets_that_pages_name():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"^make ([a-z]+)|`make ([a-z]+)`", page.read_text(), re.MULTILINE)) <= {
            pair for target in targets for pair in ((target, ""), ("", target))
        }


def test_contributing_lists_every_package_in_the_order_of_the_layers():
    rows = re.findall(r"^\| (`[^|]+`) \|", CONTRIBUTING.read_text(), re.MULTILINE)
    page = [set(re.findall(r"`(\w+)`", row)) for row in rows]
    contract = next(
        c for c in PYPROJECT["tool"]["importlinter"]["contracts"] if c["name"] == "Imports point one way"
    )
    layer_of = {
        name.strip().removeprefix("warpsmith."): depth
        for depth, layer in enumerate(contract["layers"])
        for name in layer.split("|")
    }
    modules = {path.stem for path in (ROOT / "warpsmith").glob("[a-z]*.py")}
    packages = {path.parent.name for path in (ROOT / "warpsmith").glob("*/__init__.py")}
    assert set().union(*page) == modules | packages
    assert set(layer_of) <= set().union(*page)
    depths = [max(layer_of[name] for name in row if name in layer_of) for row in page]
    assert depths == sorted(depths), "a row stands above one that may import it"


def test_contributing_states_the_settings_that_hold():
    text = " ".join(CONTRIBUTING.read_text().split())
    assert f"at most {PYPROJECT['tool']['ruff']['line-length']} characters" in text
    assert PYPROJECT["project"]["requires-python"] == ">=3.11,<3.14"
    assert "Python 3.11 to 3.13" in text
    assert "fewer than three words" in text
    assert LEAST_WORDS == 3
    sizes = {path: len(path.read_text().splitlines()) for path in (ROOT / "warpsmith").rglob("*.py")}
    assert "never more than 600" in text
    assert max(sizes.values()) <= 600
    assert PYPROJECT["tool"]["mypy"]["strict"] is True
    assert PYPROJECT["tool"]["pytest"]["ini_options"]["filterwarnings"][0] == "error"
    record = (ROOT / "benchmarks/records/gpu_tests-h200.xml").read_text()
    counts = {name: int(count) for name, count in re.findall(r'(tests|failures|errors|skipped)="(\d+)"', record)}
    assert f"has {counts['tests'] - counts['failures'] - counts['errors'] - counts['skipped']} that pass" in text


def test_folders_hold_few_modules():
    crowded = {
        str(folder.relative_to(ROOT)): count
        for folder in (ROOT / "warpsmith").rglob("*")
        if folder.is_dir() and (count := len([p for p in folder.glob("*.py") if p.name != "__init__.py"])) > 16
    }
    assert not crowded


def test_test_files_have_unique_names():
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py") if "redteam/" not in str(path)]
    assert len(names) == len(set(names))


def test_the_map_tells_how_things_are():
    text = " ".join(MAP.read_text().split())
    assert {verdict.value for verdict in Verdict} >= {"ROLLBACK", "INVALID"}
    assert GATE_VERSION >= 2
    assert "runs in a sandbox" in text
    assert (ROOT / "warpsmith/lab/sandbox").is_dir()
    assert "counters and sanitizers need an NVIDIA GPU" in text
    assert "cpp" in languages.names()
    assert (ROOT / ".claude-plugin/plugin.json").is_file()
    assert "Claude Code plugin" in text
