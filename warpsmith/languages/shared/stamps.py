"""Stamps: `WARPSMITH_PHASE("load");` in a kernel reads the clocks where a phase begins.

`warpsmith try --phases` builds a copy of the file in which every stamp stores times; all else builds the file
without them. A stamp stores, and reads nothing back, so that it delays its thread by little.
"""

from __future__ import annotations

import re

from warpsmith.errors import Misuse

MOST_PHASES = 16
"""Stamps with different names in one kernel file."""

ROWS = 4096
"""Blocks of a launch, or threads on a CPU, whose stamps are stored. Where there are more blocks, every n-th is."""

COLUMNS = 3
"""Numbers of a stamp: nanoseconds, cycles, and the multiprocessor or thread."""

_STAMP = re.compile(r'\bWARPSMITH_PHASE\(\s*"([^"\\\n]+)"\s*\)[ \t]*;?')
_LONE_LINE = re.compile(rf"^[ \t]*{_STAMP.pattern}[ \t]*\n", re.MULTILINE)
_ANY = "WARPSMITH_PHASE"
_STORE = "WARPSMITH_STORE_STAMP"

_CPP_PRELUDE = f"""\
#include <atomic>
#include <chrono>
namespace warpsmith_stamps {{
inline long long rows[{ROWS}][{MOST_PHASES}][{COLUMNS}];
inline std::atomic<int> threads{{0}};
inline void store(int phase) {{
  thread_local const int thread = threads++;
  if (thread >= {ROWS}) return;
  long long* stamp = rows[thread][phase];
  stamp[0] = std::chrono::steady_clock::now().time_since_epoch().count();
#if defined(__x86_64__)
  stamp[1] = __builtin_ia32_rdtsc();
#else
  stamp[1] = stamp[0];
#endif
  stamp[2] = thread;
}}
}}
extern "C" long long* warpsmith_stamp_rows() {{ return &warpsmith_stamps::rows[0][0][0]; }}
#define {_STORE}(phase) warpsmith_stamps::store(phase)
#line 1
"""


def list_phases(source: str) -> list[str]:
    """List the names in a file's stamps, in their order.

    Raises:
        Misuse: a stamp has no name in quotes, or there are more than `MOST_PHASES`.
    """
    names = list(dict.fromkeys(_STAMP.findall(source)))
    if _ANY in _STAMP.sub("", source):
        raise Misuse(f'A stamp is no `{_ANY}("name");` on one line, with a name in quotes: write it so.')
    if len(names) > MOST_PHASES:
        raise Misuse(f"The file has {len(names)} phases: name at most {MOST_PHASES}.")
    return names


def without_stamps(source: str, *, same_lines: bool = False) -> str:
    """Return a file without its stamps; a line that holds nothing else goes too, unless `same_lines`."""
    return _STAMP.sub("", source if same_lines else _LONE_LINE.sub("", source))


def numbered_stamps(source: str) -> str:
    """Return a file whose stamps store into the place of their number in `list_phases`."""
    numbers = {name: number for number, name in enumerate(list_phases(source))}
    return _STAMP.sub(lambda stamp: f"{_STORE}({numbers[stamp[1]]});", source)


def cpp_with_stamps(source: str) -> str:
    """Return a C++ file that stores its stamps in a table, which `warpsmith_stamp_rows` returns."""
    return _CPP_PRELUDE + numbered_stamps(source)


def python_with_stamps(source: str, module: str, function: str) -> str:
    """Return a Python file that stores its stamps by a function of a module.

    The import stands at the end, where it moves no line: a kernel looks the name up when it is compiled.
    """
    return f"{numbered_stamps(source)}\nfrom {module} import {function} as {_STORE}\n"


def stores_stamps(code: str) -> bool:
    """Return True for code whose stamps are numbered, which requires a prelude."""
    return f"{_STORE}(" in code


def cuda_prelude(address: int) -> str:
    """Return the start of a CUDA C++ program whose blocks store stamps at an address, by one thread each."""
    return f"""\
#define {_STORE}(phase) do {{ \\
  if ((threadIdx.x | threadIdx.y | threadIdx.z) == 0) {{ \\
    const unsigned blocks = gridDim.x * gridDim.y * gridDim.z, stride = (blocks + {ROWS - 1}u) / {ROWS}u; \\
    const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x; \\
    if (block % stride == 0) {{ \\
      unsigned long long time, cycles; unsigned unit; \\
      asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time) :: "memory"); \\
      asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles) :: "memory"); \\
      asm volatile("mov.u32 %0, %%smid;" : "=r"(unit)); \\
      unsigned long long* stamp = reinterpret_cast<unsigned long long*>({address:#x}ull) \\
        + (block / stride * {MOST_PHASES} + (phase)) * {COLUMNS}; \\
      stamp[0] = time; stamp[1] = cycles; stamp[2] = unit; \\
    }} \\
  }} \\
}} while (0)
"""
