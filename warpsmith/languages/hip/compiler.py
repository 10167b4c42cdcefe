"""Compilers of HIP C++ for AMD's GPUs: ROCm's own where it is installed, else clang from Python's `ziglang`."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from warpsmith.errors import MachineLacks, SolutionFailed
from warpsmith.languages.shared import tool
from warpsmith.packages import install_command
from warpsmith.temporary import TemporaryFolder

_SECONDS = 90.0
_HIPCC = "hipcc"
_ZIG_SUBCOMMAND = "clang"
_USUAL = "/opt/rocm/bin"
_API = Path(__file__).parent / "api"
"""Stand-in for ROCm's headers."""
_FLAGS = ("-x", "hip", "--cuda-device-only", "-std=c++17", "-O3", "-gline-tables-only", "-fno-color-diagnostics")
_WITHOUT_ROCM = ("-nogpuinc", "-nogpulib", "-fdeclspec", f"-I{_API}")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)@(?:rel32|gotpcrel32)@lo")
_DEFINED = re.compile(r"^([A-Za-z_]\w*):", re.MULTILINE)


def find_hip_compiler() -> tuple[str, ...] | None:
    """Return the command of ROCm's compiler, else that of `ziglang` with a stand-in for ROCm's headers.

    None: there is neither. The architecture and the files are to be added.
    """
    for path in _hipcc_paths():
        if program := shutil.which(path):
            return (program, *_FLAGS)
    package = find_spec("ziglang")
    if package is not None and package.origin is not None:  # a mere folder of that name has no origin
        return (str(Path(package.origin).parent / "zig"), _ZIG_SUBCOMMAND, *_FLAGS, *_WITHOUT_ROCM)
    return None


def describe_hip_compiler() -> str:
    """Return the name of the compiler that is used: `ROCm's hipcc`, `Python's ziglang`; empty if none."""
    command = find_hip_compiler()
    if command is None:
        return ""
    return "Python's ziglang" if _ZIG_SUBCOMMAND in command else f"ROCm's {_HIPCC}"


def missing_hip_compiler() -> str | None:
    """Say in one sentence what compiling HIP C++ needs and this machine lacks; None: nothing."""
    if find_hip_compiler() is None:
        lack = f"Neither ROCm's `{_HIPCC}` nor Python's ziglang is installed"
    elif find_spec("torch") is None:
        lack = "Python's torch cannot be imported"
    else:
        return None
    return f"{lack}: run `{install_command('lab', 'hip')}`."


def compile_hip(code: str, options: Sequence[str], arch: str) -> str:
    """Compile a program for an architecture, and return its assembly.

    Raises:
        MachineLacks: there is no compiler.
        SolutionFailed: it does not compile, or it calls what is defined nowhere; the message holds the errors.
        TimeoutError: it takes too long.
    """
    command = find_hip_compiler()
    if command is None:
        raise MachineLacks(str(missing_hip_compiler()))
    with TemporaryFolder() as folder:
        source, target = Path(folder) / "program.hip", Path(folder) / "program.s"
        source.write_text(code)
        whole: list[str | Path] = [*command, f"--offload-arch={arch}", *options, "-S", source, "-o", target]
        result = tool.run_tool(whole, _SECONDS, cwd=Path(folder))
        if result.code != 0:
            raise SolutionFailed(result.output.replace(f"{folder}/", "").strip())
        text = target.read_text()
    if unknown := sorted({*_CALLED.findall(text)} - {*_DEFINED.findall(text)}):
        raise SolutionFailed(f"it calls `{'`, `'.join(unknown)}`, which it does not define; no library is linked")
    return text


def _hipcc_paths() -> Iterator[str]:
    """Yield where ROCm's compiler may be: where the user says, on PATH, in ROCm's usual folder."""
    for variable in ("ROCM_PATH", "HIP_PATH"):
        if folder := os.environ.get(variable):
            yield f"{folder}/bin/{_HIPCC}"
    yield _HIPCC
    yield f"{_USUAL}/{_HIPCC}"
