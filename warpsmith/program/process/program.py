"""The program that a user names: a file or module with a step, or a shell command."""

from __future__ import annotations

import ast
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from itertools import pairwise
from pathlib import Path

from warpsmith import project
from warpsmith.errors import MissingInput, Misuse

_MOST_NAMES = 12


@dataclass(frozen=True)
class Program:
    """A Python file with a callable step, or a shell command that runs steps."""

    path: Path
    """Absolute path of the file; for a command its script, or the working folder if it names none."""
    step: str
    """Name of the module-level callable; empty for a command."""
    setup: str | None = None
    """Name of a callable that is called once and returns the step's arguments."""
    args: tuple[str, ...] = ()
    """Arguments in sys.argv after the program's name."""
    command: str | None = None
    """Shell command; None for a file or module."""
    module: str = ""
    """Dotted name of a program that was given as a module; it is imported with its package."""

    writes: tuple[Path, ...] = ()
    """Files and folders of the project that a command may write."""

    @property
    def root(self) -> Path:
        """Return the folder whose files a command may only read: the project's."""
        return project.find_project(self.path.parent if self.path.is_file() else self.path).root

    @property
    def label(self) -> str:
        """Return its name in messages, such as `train.py`."""
        return self.command or self.module or self.path.name

    @property
    def folder(self) -> Path:
        """Return the folder that is first on the program's import path."""
        depth = self.module.count(".") if self.path.name != "__init__.py" else self.module.count(".") + 1
        return self.path.parents[depth]


def resolve_step_program(
    text: str | None,
    step: str | None,
    *,
    setup: str | None = None,
    args: Sequence[str] = (),
    command: str | None = None,
    writes: Sequence[str] = (),
) -> Program:
    """Resolve a file or dotted module with the name of its step, or a shell command, to a program.

    The program does not run: a missing step is reported when it starts.

    Raises:
        Misuse: neither or both are given, the name of the step is missing or invalid, or it is not a Python file.
        MissingInput: there is no such file or module.
    """
    if command is not None:
        if text or step or setup:
            raise Misuse("Give either a program with --step or --command, not both.")
        if not command.strip():
            raise Misuse("--command is empty; give the shell command that runs the steps.")
        allowed = tuple(Path(path).absolute() for path in writes)
        return Program(find_script(command) or Path.cwd(), "", command=command, writes=allowed)
    if not text:
        raise Misuse("Give a Python file or module with --step NAME, or --command 'python train.py'.")
    if not step:
        names = ", ".join(_list_functions(Path(text)))
        raise Misuse(
            f"{text}: which callable is one step? Give --step NAME, a module-level function of it"
            f"{f': it has {names}' if names else ''}."
        )
    for option, name in (("--step", step), ("--setup", setup or step)):
        if not name.isidentifier():
            raise Misuse(f"{option} {name}: give the bare name of a module-level callable of {text}.")
    path = Path(text)
    if path.suffix == ".py" or path.exists():
        return Program(_resolve_file(path), step, setup, tuple(args))
    return Program(_resolve_module(text), step, setup, tuple(args), module=text)


def _list_functions(path: Path) -> list[str]:
    """Return the names of a file's module-level functions, without a run; empty if it does not parse."""
    try:
        body = ast.parse(path.read_bytes()).body if path.is_file() else []
    except (OSError, SyntaxError, ValueError):
        return []
    return [node.name for node in body if isinstance(node, ast.FunctionDef)][:_MOST_NAMES]


def find_script(command: str) -> Path | None:
    """Return the Python file that a shell command runs: a word that ends with `.py`, or the module after `-m`.

    Launchers are modules too (`python -m torch.distributed.run train.py`), so a file comes first.
    """
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    for word in words:
        if word.endswith(".py") and Path(word).is_file():
            return Path(word).resolve()
    modules = [name for flag, name in pairwise(words) if flag == "-m"]
    for name in modules:
        path = Path(*name.split(".")).with_suffix(".py")
        if path.is_file():
            return path.resolve()
    return None


def _resolve_file(path: Path) -> Path:
    if path.is_dir() or (path.exists() and path.suffix != ".py"):
        raise Misuse(f"{path} is not a Python file; give one, a dotted module, or a shell command by --command.")
    if not path.is_file():
        raise MissingInput(f"There is no program {path}; give a Python file or a dotted module.")
    return path.resolve()


def _resolve_module(name: str) -> Path:
    """Find the file of a dotted module without running its packages."""
    folders: Sequence[str] | None = [str(Path.cwd()), *sys.path]
    spec = None
    for depth in range(1, name.count(".") + 2):
        part = ".".join(name.split(".")[:depth])
        spec = PathFinder.find_spec(part, folders) if all(map(str.isidentifier, name.split("."))) else None
        if spec is None:
            raise MissingInput(f"There is no file and no module {name}; give a Python file or a dotted module.")
        folders = spec.submodule_search_locations
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise Misuse(f"Module {name} is not a single Python file; give the module that contains the step.")
    return Path(spec.origin).resolve()
