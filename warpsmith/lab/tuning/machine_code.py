"""Machine code: whether two compilations gave the same, whatever they were called and wherever they lay."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

SUFFIXES = (".cubin", ".so")
"""Endings of files that hold it, all ELF files of 64 bits: a GPU's code first, then the host's."""

_NOTE, _NOBITS = 7, 8
_ALLOCATED = 2
_SECTIONS = struct.Struct("<40xQ10xHHH")
_SECTION = struct.Struct("<IIQQQQ")


def digest(paths: Iterable[Path]) -> str | None:
    """One hash over all code in these files and folders, in any order; None: there is none.

    Where there is code for a GPU, the host's does not count: it is what launches it. Neither do debug information,
    build ids and symbol tables: they name files and lines.
    """
    files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file()]
    for suffix in SUFFIXES:
        if found := {_digest(file.read_bytes()) for file in files if file.suffix == suffix}:
            return hashlib.sha256("".join(sorted(found)).encode()).hexdigest()
    return None


def _digest(data: bytes) -> str:
    code = hashlib.sha256()
    try:
        for part in _loaded(data):
            code.update(part)
    except (struct.error, IndexError, ValueError):  # not what its name says: it counts as it stands
        return hashlib.sha256(data).hexdigest()
    return code.hexdigest()


def _loaded(data: bytes) -> Iterator[bytes]:
    """Name and content of the sections that are loaded, and of what NVIDIA's say of a kernel's launch."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no ELF file of 64 bits")
    start, size, count, names = _SECTIONS.unpack_from(data)
    headers = [_SECTION.unpack_from(data, start + index * size) for index in range(count)]
    text = headers[names][4]
    for name, kind, flags, _, place, length in headers:
        called = data[text + name : data.index(b"\0", text + name)]
        if kind != _NOTE and (flags & _ALLOCATED or called.startswith(b".nv.info")):
            yield called + struct.pack("<Q", length)
            yield b"" if kind == _NOBITS else data[place : place + length]
