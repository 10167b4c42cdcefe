"""The C++ compiler of this machine: the command, or the reason why there is none."""

from __future__ import annotations

import os
import shlex
import shutil


def find_cxx_compiler() -> list[str] | None:
    """Return the command of the C++ compiler: `$CXX` with its arguments, else the first one on PATH, else None."""
    chosen = shlex.split(os.environ.get("CXX", ""))
    candidates = [chosen] if chosen else [["c++"], ["g++"], ["clang++"]]
    return next((command for command in candidates if shutil.which(command[0])), None)


def missing_cxx_compiler() -> str | None:
    """Say in one sentence why there is no C++ compiler, and what to do; None if there is one."""
    if find_cxx_compiler():
        return None
    if chosen := shlex.split(os.environ.get("CXX", "")):
        location = "does not exist or is no program" if "/" in chosen[0] else "is not on PATH"
        return f"CXX={os.environ['CXX']}: {chosen[0]} {location}; correct CXX, or unset it."
    return "No C++ compiler is on PATH: install `g++` (Debian, Ubuntu), `gcc-c++` (Fedora) or `clang`, or set CXX."
