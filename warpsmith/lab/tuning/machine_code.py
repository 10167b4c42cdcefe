"""Machine code: a hash that is equal for equal code, whatever its files are called and wherever they lie."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

SUFFIXES = (".cubin", ".so")
"""Endings of files with machine code, all of them ELF files of 64 bits: a GPU's code first, then the host's."""

_NOTE, _NOBITS = 7, 8
_ALLOCATED = 2
_SECTIONS = struct.Struct("<40xQ10xHHH")
_SECTION = struct.Struct("<IIQQQQ")


def code_digest(paths: Iterable[Path]) -> str | None:
    """Return one hash over all code in these files and folders, in any order; None if there is none.

    Where there is code for a GPU, the host's does not count, because it only launches the GPU's. Debug
    information, build ids and symbol tables do not count either: they name files and lines.
    """
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    for suffix in SUFFIXES:
        if digests := {_file_digest(file.read_bytes()) for file in files if file.suffix == suffix}:
            return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()
    return None


def _file_digest(data: bytes) -> str:
    code = hashlib.sha256()
    try:
        for part in _loaded_sections(data):
            code.update(part)
    except (struct.error, IndexError, ValueError):  # not an ELF file, despite its name: all of it counts
        return hashlib.sha256(data).hexdigest()
    return code.hexdigest()


def _loaded_sections(data: bytes) -> Iterator[bytes]:
    """Yield name and content of the sections that are loaded, and of NVIDIA's that describe a kernel's launch."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no ELF file of 64 bits")
    start, size, count, names = _SECTIONS.unpack_from(data)
    headers = [_SECTION.unpack_from(data, start + index * size) for index in range(count)]
    text = headers[names][4]
    for name_offset, kind, flags, _, offset, length in headers:
        name = data[text + name_offset : data.index(b"\0", text + name_offset)]
        if kind != _NOTE and (flags & _ALLOCATED or name.startswith(b".nv.info")):
            yield name + struct.pack("<Q", length)
            yield b"" if kind == _NOBITS else data[offset : offset + length]
