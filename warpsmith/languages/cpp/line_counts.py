"""Lines of a C++ version that no call ran: gcov's counters, and what of them means untried code."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Sequence
from pathlib import Path

from warpsmith.errors import MachineLacks
from warpsmith.languages.shared import tool
from warpsmith.languages.shared.cpp_source import blank_tokens
from warpsmith.temporary import TemporaryFolder

FLAGS = ("-O0", "--coverage", "-fprofile-update=atomic")
"""Flags of a build with counters, after all others. Optimized code has no block of its own for `if (c) x = 0;`.
Threads must not lose a count."""

DUMP = "warpsmith_write_counts"
"""Function of such a library that writes its counters."""

INTRINSICS = "#if __has_include(<x86intrin.h>)\n#include <x86intrin.h>\n#endif\n"
"""Text in front of a source that includes intrinsics, in every build: their header has another form for `-O0`."""

PRELUDE = (
    "#undef __NO_INLINE__\n#ifndef __OPTIMIZE__\n#define __OPTIMIZE__ 1\n#endif\n"
    'extern "C" void __gcov_dump(void);\nextern "C" void __gcov_reset(void);\n'
    f'extern "C" void {DUMP}(void) {{ __gcov_dump(); __gcov_reset(); }}\n'
)
"""Text in front of such a source: its macros are those of the usual build."""

POISON = (
    "#pragma GCC poison no_profile_instrument_function __no_profile_instrument_function__ "
    f"__gcov_dump __gcov_reset __gcov_exit __gcov_init {DUMP}\n"
)
"""Text in front of every source: none leaves a function out, or reaches for the counters."""

COUNTERS = ("__gcov", "warpsmith_", "__llvm_profile")
"""Beginnings of names that tell a version that it is counted."""

_SECONDS = 20.0
_FUNCTION = 0x01000000
_BYTES_SINCE = "B2"
"""First release of gcc, 12, whose notes count bytes and not words."""
_REPORTS = re.compile(
    r"(?:\}|else|\s)*(?:if\s*(?:constexpr\s*)?\(.*\)\s*)?\{?\s*"
    r"(?:throw\b|(?:std::|::)?(?:abort|exit|_Exit|quick_exit|terminate|unreachable)\s*\(|static_assert\s*\("
    r"|assert\s*\(|__builtin_(?:unreachable|trap|abort)\s*\(|TORCH_CHECK\s*\(|perror\s*\()"
)


def read_unrun_lines(source: Path, notes: bytes, counts: bytes) -> tuple[int, ...]:
    """Return the lines of a source that hold code which no call ran, without those that only report an error.

    A line of a template counts as run if one of its types ran all of it.

    Args:
        source: the version's file.
        notes: the compiler's notes on the build, from the `.gcno` file.
        counts: the counters after the calls, from the `.gcda` file.

    Raises:
        MachineLacks: `gcov` does not read this compiler's notes.
    """
    from warpsmith import landlock  # with ctypes, which reading commands do without

    with TemporaryFolder() as name:
        folder = Path(name)
        (folder / "run.gcno").write_bytes(_with_outlined_loops(notes))
        (folder / "run.gcda").write_bytes(counts)
        command = landlock.confined_command(
            ["gcov", "--json-format", "--stdout", "run.gcda"], readable=[folder], writable=[folder]
        )
        output = tool.run_tool(command, _SECONDS, cwd=folder).output
    try:
        report = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
        files = [each["lines"] for each in report["files"] if Path(each["file"]).name == source.name]
        lines = [(int(line["line_number"]), _is_unrun(line)) for each in files for line in each]
    except (StopIteration, ValueError, KeyError, TypeError) as error:
        raise MachineLacks("`gcov` does not read the compiler's notes; both must be of one release.") from error
    ran = {number for number, unrun in lines if not unrun}
    text = blank_tokens(source.read_text(errors="replace"), "comment", "literal").splitlines()
    untried = sorted({number for number, unrun in lines if unrun} - ran)
    exempt = _error_lines(text)
    return tuple(number for number in untried if number not in exempt)


def _is_unrun(line: dict[str, object]) -> bool:
    return not line["count"] or bool(line["unexecuted_block"])


def _error_lines(text: Sequence[str]) -> set[int]:
    """Return the lines of statements that only raise, end the process or assert, and lines without a name."""
    exempt, inside = set(), False
    for number, line in enumerate(text, 1):
        begins = _REPORTS.match(line)
        if inside or begins or not re.search(r"\w", line):
            exempt.add(number)
        if begins and line.count(";") > 1:
            exempt.discard(number)  # it does something else too
        inside = bool(inside or begins) and ";" not in line
    return exempt


def _with_outlined_loops(notes: bytes) -> bytes:
    """Return the notes without the mark of functions that the compiler made, in which gcov counts nothing: the
    bodies of parallel loops are such functions.

    Raises:
        MachineLacks: the notes are of another form.
    """
    data = bytearray(notes)
    try:
        if data[:4] != b"oncg":
            raise MachineLacks("The compiler's notes on lines are of another form than gcc's.")
        release = data[4:8][::-1].decode()
        unit = 1 if release >= _BYTES_SINCE else 4
        position = _after_string(data, 16 if unit == 1 else 12, unit) + 4
        while position + 8 <= len(data):
            tag, length = struct.unpack_from("<II", data, position)
            if tag == _FUNCTION:
                struct.pack_into("<I", data, _after_string(data, position + 20, unit), 0)
            position += 8 + length * unit
    except (struct.error, UnicodeDecodeError) as error:
        raise MachineLacks("The compiler's notes on lines are of another form than gcc's.") from error
    return bytes(data)


def _after_string(data: bytearray, position: int, unit: int) -> int:
    (length,) = struct.unpack_from("<I", data, position)
    return position + 4 + int(length) * unit
