"""Code blocks in Markdown: Python, JSON, YAML, TOML, shell and C++ blocks must parse."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import subprocess
import textwrap
import tomllib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import yaml

from tools.textlint.finding import Finding
from tools.textlint.page import Block
from tools.textlint.shell import replace_placeholders
from tools.textlint.tree import Tree

_API = "warpsmith/languages/cpp/api"
_SHELLS = ("bash", "sh", "shell", "!")
_PARSERS: dict[str, Callable[[str], object]] = {
    "python": lambda code: ast.parse(textwrap.dedent(code)),
    "json": json.loads,
    "yaml": lambda code: list(yaml.safe_load_all(code)),
    "toml": tomllib.loads,
}


def check_blocks(tree: Tree) -> Iterator[Finding]:
    """Yield blocks that do not parse; C++ blocks are skipped if there is no compiler."""
    compiler = cpp_compiler()
    if compiler is not None:
        compiler += ["-std=c++20", "-fsyntax-only", "-fopenmp", f"-I{tree.root / _API}", "-x", "c++", "-"]
    blocks = [(page.path, block) for page in tree.pages for block in page.blocks]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = pool.map(lambda item: _error(item[1], compiler), blocks)
        for (path, block), error in zip(blocks, errors, strict=True):
            if error:
                message = f"the {block.language} block does not parse: {error}"
                yield Finding(path, block.line, message, "correct the code, or name the block `text`")


def cpp_compiler() -> list[str] | None:
    """Return $CXX with its arguments, else g++ or clang++; None if there is no compiler."""
    candidates = [shlex.split(command)] if (command := os.environ.get("CXX")) else [["g++"], ["clang++"]]
    return next((list(parts) for parts in candidates if shutil.which(parts[0])), None)


def _error(block: Block, compiler: list[str] | None) -> str:
    """Return the first error of a block; empty if it parses or its language is not checked."""
    if block.language in _SHELLS:
        return _run(["bash", "-n", "-c", replace_placeholders(block.text)], "")
    if block.language == "cpp":
        return _run(compiler, block.text) if compiler else ""
    if parse := _PARSERS.get(block.language):
        try:
            parse(block.text)
        except (ValueError, SyntaxError, yaml.YAMLError) as error:
            return " ".join(str(error).split())
    return ""


def _run(command: list[str], code: str) -> str:
    process = subprocess.run(command, input=code, capture_output=True, text=True, check=False)
    errors = process.stderr.strip().splitlines() or ["no message"]
    return "" if process.returncode == 0 else next((line for line in errors if "error" in line), errors[0])
