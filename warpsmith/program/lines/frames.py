"""In the program's process: the line of Python that called an operator, and the loop around it."""

from __future__ import annotations

import ast
import re
import sys
import sysconfig
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from warpsmith.program.capture.events import UserLine, is_user_file

_MOST_FRAMES = 24
"""Frames of the program and of libraries that are searched for a loop, from the innermost on."""

_DETOUR = re.compile(r"/torch/(autograd|optim)/")
"""Files of PyTorch that run backward passes and optimizers."""

_COMPILED = ("/torch/_dynamo/eval_frame.py", "compile_wrapper")
"""File and function of PyTorch that call a compiled function."""

_COMPREHENSIONS = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)


class SourceLoop(NamedTuple):
    """One loop, or comprehension, of a file."""

    file: str
    line: int
    """Line with its `for` or `while`."""
    first: int
    """First line of its body."""
    last: int
    """Last line of its body."""
    function: str


class CallSite(NamedTuple):
    """The line that called an operator."""

    line: UserLine
    """Innermost line outside of PyTorch and Python's own library."""
    package: str
    """Package that the line belongs to; empty if it is the user's."""
    caller: UserLine | None
    """Innermost line of the user's; None if there is none, or it is `line` itself."""
    loop: SourceLoop | None
    """Innermost loop around the line, or around one of the calls that led to it."""


class FrameReader:
    """Reader of the running frames; what it learns of a file or a line, it remembers."""

    def __init__(
        self, folders: list[str], *, compiled: bool = False, whole: frozenset[SourceLoop] = frozenset()
    ) -> None:
        """Take files below `folders` for the user's, unless they belong to a package.

        `compiled`: the program calls torch.compile, so that all frames are searched for compiled functions.
        `whole`: loops whose body is a step or more, which are no loops of a step.
        """
        import torch

        paths = sysconfig.get_paths()
        self._folders, self._compiled, self._whole = folders, compiled, whole
        self._packages = tuple({f"{paths[name]}/" for name in ("purelib", "platlib")})
        self._python = tuple({f"{paths[name]}/" for name in ("stdlib", "platstdlib")})
        self._own = (f"{Path(torch.__file__).parent}/", f"{Path(__file__).resolve().parents[2]}/")
        self._skipped: dict[str, bool] = {}
        self._user: dict[str, bool] = {}
        self._loops: dict[str, list[SourceLoop]] = {}
        self._loop_at: dict[tuple[str, int], SourceLoop | None] = {}

    def read_site(self, *, update: bool = False) -> CallSite | None:
        """Return the line that led here; None outside of any file, and in a backward pass or a compiled function.

        `update`: the line that called an optimizer; without it there is None for one.
        """
        frame: FrameType | None = sys._getframe(1)
        site: UserLine | None = None
        caller: UserLine | None = None
        package, loop, depth = "", None, 0
        while frame is not None and (self._compiled or (depth < _MOST_FRAMES and not (caller and loop))):
            code = frame.f_code
            if code.co_name == _COMPILED[1] and code.co_filename.endswith(_COMPILED[0]):
                return None
            if not self._is_skipped(code.co_filename):
                depth += 1
                line = UserLine(code.co_filename, frame.f_lineno or 1, code.co_qualname)
                is_user = self._is_user(code.co_filename)
                if site is None:
                    site = line
                    package = "" if is_user else str(frame.f_globals.get("__name__", "")).partition(".")[0]
                if caller is None and is_user:
                    caller = line
                loop = loop or self._find_loop(line)
            elif site is None and not update and _DETOUR.search(code.co_filename):
                return None
            frame = frame.f_back
        return site and CallSite(site, package, None if caller == site else caller, loop)

    def _is_skipped(self, file: str) -> bool:
        if file not in self._skipped:
            python = file.startswith(self._python) and not file.startswith(self._packages)
            self._skipped[file] = file.startswith(("<", *self._own)) or python
        return self._skipped[file]

    def _is_user(self, file: str) -> bool:
        if file not in self._user:
            self._user[file] = is_user_file(file, self._folders)
        return self._user[file]

    def _find_loop(self, line: UserLine) -> SourceLoop | None:
        key = line[:2]
        if key not in self._loop_at:
            if line.file not in self._loops:
                self._loops[line.file] = list_loops(line.file)
            loops = (loop for loop in self._loops[line.file] if loop not in self._whole)
            around = [loop for loop in loops if loop.first <= line.line <= loop.last]
            self._loop_at[key] = min(around, key=lambda loop: loop.last - loop.first, default=None)
        return self._loop_at[key]


def list_frames() -> list[FrameType]:
    """List the frames that run, the caller's first."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def list_running_loops() -> frozenset[SourceLoop]:
    """Return the loops in whose bodies the running frames are."""
    return frozenset(
        loop
        for frame in list_frames()
        for loop in list_loops(frame.f_code.co_filename)
        if loop.first <= (frame.f_lineno or 0) <= loop.last
    )


def list_loops(file: str) -> list[SourceLoop]:
    """List the loops and comprehensions of a Python file; none if it cannot be read."""
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return []
    loops: list[SourceLoop] = []

    def visit(node: ast.AST, names: tuple[str, ...]) -> None:
        function = ".".join(names)
        if isinstance(node, ast.For | ast.AsyncFor | ast.While):
            loops.append(
                SourceLoop(file, node.lineno, node.body[0].lineno, node.body[-1].end_lineno or 0, function)
            )
        elif isinstance(node, _COMPREHENSIONS):
            loops.append(SourceLoop(file, node.lineno, node.lineno, node.end_lineno or 0, function))
        inside = names
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inside = (*names, node.name)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree, ())
    return loops
