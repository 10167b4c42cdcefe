"""Code blocks: what says that it is Python, JSON, YAML, TOML, shell or C++ parses as such."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import textwrap
import tomllib
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import yaml

from tools.textlint.finding import Finding
from tools.textlint.page import Block
from tools.textlint.shell import without_placeholders
from tools.textlint.tree import Tree

_UNPARSED = frozenset({"", "text", "markdown", "md", "console", "diff", "cuda", "ptx", "sass", "jinja", "make"})
_CPP = re.compile(r"<stdin>:(\d+):\d+: (?:fatal )?error: (.*)")
_BASH = re.compile(r"line (\d+): (.*)")
_API = "warpsmith/languages/cpp/api"

Problem = tuple[int, str]
"""The line within the block, from 1, and what is wrong there."""


def parses(tree: Tree) -> Iterator[Finding]:
    """Blocks that do not parse in the language they name, or name one that is not known."""
    for page in tree.pages:
        for block in page.blocks:
            if block.language in _PARSERS:
                if problem := _PARSERS[block.language](block.text):
                    yield _finding(page.path, block, problem)
            elif block.language not in (*_UNPARSED, "cpp"):
                yield Finding(
                    page.path,
                    block.line - 1,
                    f"`{block.language}` is no language that is checked here",
                    "correct it, or write `text`",
                )


def compiles(tree: Tree) -> Iterator[Finding]:
    """C++ blocks that a compiler refuses; none where there is no compiler."""
    found = [(page.path, block) for page in tree.pages for block in page.blocks if block.language == "cpp"]
    command = compiler()
    if not found or command is None:
        return
    command += ["-std=c++20", "-fsyntax-only", "-fopenmp", f"-I{tree.root / _API}", "-x", "c++", "-"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = pool.map(lambda item: _compile(command, item[1].text), found)
        for (path, block), problem in zip(found, problems, strict=True):
            if problem:
                yield _finding(path, block, problem)


def compiler() -> list[str] | None:
    """$CXX with its arguments, else g++ or clang++; None where there is none."""
    candidates = [shlex.split(chosen)] if (chosen := os.environ.get("CXX")) else [["g++"], ["clang++"]]
    return next((list(parts) for parts in candidates if shutil.which(parts[0])), None)


def _finding(path: str, block: Block, problem: Problem) -> Finding:
    line, message = problem
    name = block.language or "text"
    return Finding(
        path,
        block.line + line - 1,
        f"the {name} block does not parse: {message.rstrip('.')}",
        "correct the code, or name the block `text`",
    )


def _compile(command: list[str], code: str) -> Problem | None:
    done = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    first = _CPP.search(done.stderr)
    return (int(first[1]), first[2]) if first else (1, done.stderr.strip().split("\n")[0])


def _python(code: str) -> Problem | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", SyntaxWarning)
        try:
            ast.parse(textwrap.dedent(code))
        except SyntaxError as error:
            return error.lineno or 1, error.msg
    return None


def _json(code: str) -> Problem | None:
    try:
        json.loads(code)
    except json.JSONDecodeError as error:
        return error.lineno, error.msg
    return None


def _yaml(code: str) -> Problem | None:
    try:
        list(yaml.safe_load_all(code))
    except yaml.MarkedYAMLError as error:
        return (error.problem_mark.line + 1 if error.problem_mark else 1), error.problem or "it is no YAML"
    return None


def _toml(code: str) -> Problem | None:
    try:
        tomllib.loads(code)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        return int(place[1]) if place else 1, str(error)
    return None


def _bash(code: str) -> Problem | None:
    command = ["bash", "-n", "-c", without_placeholders(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    first = _BASH.search(done.stderr)
    return (int(first[1]), first[2]) if first else (1, done.stderr.strip())


_PARSERS: dict[str, Callable[[str], Problem | None]] = {
    "python": _python,
    "json": _json,
    "yaml": _yaml,
    "toml": _toml,
    "bash": _bash,
    "sh": _bash,
    "shell": _bash,
    "!": _bash,
}
