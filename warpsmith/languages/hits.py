"""Hit counts: source that counts the calls of an exported version where it serves.

Each process appends lines `<process> <name> <calls>` to the file that the environment variable `WARPSMITH_HITS`
names: at its calls 1, 2, 4, 8 and so on, and at its end. The last line of a process counts. Writes are few, and a
process that is killed has written.
"""

from __future__ import annotations

from collections.abc import Sequence

PYTHON_COUNTER = "hits.py"
"""File name of the Python counter, whose `run` calls the version's."""

_PYTHON = '''\
"""Made by `warpsmith export --apply`: counts the calls of `run` if WARPSMITH_HITS names a file."""

import atexit
import itertools
import os

from .@MODULE@ import run as _run

_PATH = os.environ.get("WARPSMITH_HITS")
_numbers = itertools.count(1)
_calls = 0


def _write():
    if _PATH and _calls:
        with open(_PATH, "a") as file:
            file.write(f"{os.getpid()} @NAME@ {_calls}\\n")


def _count():
    global _calls
    _calls = number = next(_numbers)
    if number & (number - 1) == 0:
        _write()


def run(@PARAMETERS@):
    _count()
    return _run(@PARAMETERS@)


atexit.register(_write)
'''

COUNTER_INCLUDES = """
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
"""
"""Headers of the C++ counter."""

_CPP = """// Counts the calls if WARPSMITH_HITS names a file.
struct HitCounter {
  std::atomic<unsigned long> calls{0};

  void write(unsigned long count) const {
    const char* path = std::getenv("WARPSMITH_HITS");
    std::FILE* file = path != nullptr ? std::fopen(path, "a") : nullptr;
    if (file == nullptr) return;
    std::fprintf(file, "%ld @NAME@ %lu\\n", static_cast<long>(getpid()), count);
    std::fclose(file);
  }

  void add() {
    const unsigned long count = ++calls;
    if ((count & (count - 1)) == 0) write(count);
  }

  ~HitCounter() {
    if (calls != 0) write(calls);
  }
} hit_counter_;

"""

COUNTER_CALL = "  hit_counter_.add();\n"
"""Statement that counts a call."""


def python_counter(module: str, parameters: Sequence[str], name: str) -> str:
    """Return the source of a module whose `run` counts under `name` and calls that of the module beside it."""
    text = _PYTHON.replace("@MODULE@", module).replace("@NAME@", name)
    return text.replace("@PARAMETERS@", ", ".join(parameters))


def cpp_counter(name: str) -> str:
    """Return the definition of the C++ counter, which counts under `name`."""
    return _CPP.replace("@NAME@", name)
