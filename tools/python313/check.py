"""Compile every file, import every module that needs no compiled package, and ask every command for its help.

It runs inside Pyodide's CPython 3.13, which has no compiled packages of this machine and no Linux.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

_VERSION = (3, 13)
_REPOSITORY = Path("/repository")
_FOLDERS = ("warpsmith", "tools", "tests", "kernels", "examples", "benchmarks")
_COMPILED = (
    "pydantic", "pydantic_core", "torch", "triton", "numpy", "scipy", "matplotlib", "psutil", "cryptography",
    "cutlass", "fcntl", "resource", "sqlite3", "termios",
)  # fmt: skip
"""Packages that have compiled parts, and modules of Python that only a real system has."""


def main() -> int:
    """Print what was checked; return 1 if anything failed, else 0."""
    if sys.version_info[:2] != _VERSION:
        sys.stdout.write(f"This is Python {sys.version.split()[0]}, not 3.13.\n")
        return 1
    warnings.filterwarnings("ignore", "only soft file lock")  # WebAssembly has no other
    for name in _COMPILED:
        sys.modules[name] = None  # type: ignore[assignment]  # each import of it fails at once
    files = [path for folder in _FOLDERS for path in sorted((_REPOSITORY / folder).rglob("*.py"))]
    counts, lacking = Counter[str](), Counter[str]()
    failures = [*_compile_all(files), *_import_all(counts, lacking), *_ask_for_help(counts)]
    lacks = ", ".join(name for name, _ in lacking.most_common())
    sys.stdout.write(
        f"Python {sys.version.split()[0]}: {len(files)} files compile, {counts['modules']} modules import,"
        f" {counts['commands']} commands have help; {lacking.total()} modules need {lacks}.\n"
    )
    sys.stdout.write("".join(f"{failure}\n" for failure in failures))
    return 1 if failures or not counts["commands"] else 0


def _compile_all(files: list[Path]) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for path in files:
            try:
                compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
            except (SyntaxError, ValueError, Warning) as error:
                yield f"{path}: {error!r}"


def _import_all(counts: Counter[str], lacking: Counter[str]) -> Iterator[str]:
    """Import every module of the package; one may fail only for lack of a compiled package."""
    for path in sorted((_REPOSITORY / "warpsmith").rglob("*.py")):
        name = ".".join(path.relative_to(_REPOSITORY).with_suffix("").parts).removesuffix(".__init__")
        if name.endswith("__main__") or path.name == "definition.py":
            continue
        try:
            importlib.import_module(name)
            counts["modules"] += 1
        except ImportError as error:
            lack = next((each for each in _COMPILED if (error.name or "").split(".")[0] == each), "")
            if lack:
                lacking[lack] += 1
            else:
                yield f"{name}: {error!r}"
        except Exception as error:
            yield f"{name}: {error!r}"


def _ask_for_help(counts: Counter[str]) -> Iterator[str]:
    """Ask the parser of each command for its help; the command itself does not run."""
    import typer
    import typer.main

    from warpsmith.cli.main import load_app

    pending = [typer.Context(typer.main.get_command(load_app()), info_name="warpsmith")]
    for context in pending:
        inner = getattr(context.command, "commands", {})
        pending += [typer.Context(command, parent=context, info_name=name) for name, command in inner.items()]
        counts["commands"] += 1
        try:
            with redirect_stdout(StringIO()) as printed:
                text = context.get_help()
            if not text and not printed.getvalue():
                yield f"{context.command_path}: no help"
        except Exception as error:
            yield f"{context.command_path} --help: {error!r}"
