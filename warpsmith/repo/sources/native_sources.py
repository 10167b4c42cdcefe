"""Files that a compiled kernel is built from: includes, cimports, build scripts and the sources that they name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath

COMPILED = frozenset(
    (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hh", ".hpp", ".hxx", ".inl", ".pyx", ".pxd", ".pxi")
)
"""Endings of files that a compiler reads."""

BUILD_FILES = frozenset(
    (
        *("CMakeLists.txt", "MANIFEST.in", "Makefile", "meson.build", "meson_options.txt"),
        *("pyproject.toml", "pytest.ini", "setup.cfg", "setup.py", "tox.ini"),
    )
)
"""Names of files that say how a package is built and tested."""

_MOST_CHARACTERS = 1_000_000
_INCLUDE = re.compile(
    r'^\s*#\s*include\s*[<"]([^>"\n]+)[>"]|^\s*(?:cdef extern from|include)\s+["\']([^"\'\n]+)', re.M
)
_CIMPORT = re.compile(r"^\s*(?:from\s+(\.*[\w.]*)\s+cimport\s+([\w, ]+)|cimport\s+([\w.]+))", re.M)
_WORD = re.compile(r"[^\s\"'()\[\]{},;=`]+")
_VARIABLE = re.compile(r"\$\{\w+\}/|\$\(\w+\)/")


class NativeSources:
    """The files of a repository that compilers and build tools read."""

    def __init__(self, root: Path, listing: Collection[str]) -> None:
        self._root = root
        self._listing = sorted(listing)
        self._files = set(listing)

    def needs(self, kernel: str, scripts: Iterable[str] = ()) -> list[str]:
        """List the files that the kernel is built from, itself included.

        These are the build files of its folder and of those above, files in the repository that they name, also by
        patterns or without their folder, compiled files beside the kernel, and all that these include.

        Args:
            kernel: path of the kernel.
            scripts: further files that build it, such as a shell script.
        """
        folder = PurePosixPath(kernel).parent
        siblings = [path for path in self._listing if PurePosixPath(path).parent == folder and is_compiled(path)]
        needed: dict[str, None] = {}
        pending = [kernel, *siblings, *scripts, *self._build_files(kernel)]
        while pending:
            path = pending.pop(0)
            if path in needed or path not in self._files:
                continue
            needed[path] = None
            name = PurePosixPath(path).name
            if is_compiled(path):
                pending += self._included(path)
            elif name in BUILD_FILES or name.endswith((".cmake", ".sh")):
                pending += self._named_by(path)
        return list(needed)

    def _build_files(self, kernel: str) -> list[str]:
        folders = [str(parent) for parent in PurePosixPath(kernel).parents]
        paths = [PurePosixPath(path) for path in self._listing]
        return [str(path) for path in paths if path.name in BUILD_FILES and str(path.parent) in folders]

    def _included(self, path: str) -> Iterator[str]:
        text = self._read(path)
        for match in _INCLUDE.finditer(text):
            yield from self._resolve(path, match[1] or match[2])
        for match in _CIMPORT.finditer(text):
            module, names = match[1] or match[3], (match[2] or "").replace(" ", "").split(",")
            stem = module.lstrip(".").replace(".", "/")
            for each in (stem, *(f"{stem}/{name}".strip("/") for name in names if name)):
                for ending in (".pxd", ".pyx"):
                    yield from self._resolve(path, each + ending)
        if path.endswith((".pyx", ".pxd")):
            yield from (str(PurePosixPath(path).with_suffix(ending)) for ending in (".pyx", ".pxd", ".py"))

    def _resolve(self, path: str, name: str) -> list[str]:
        """Find an included file: beside the file that includes it, from the root, or by the end of its path."""
        for candidate in (PurePosixPath(path).parent / name, PurePosixPath(name)):
            text = _normalize(candidate)
            if text in self._files:
                return [text]
        ending = "/" + name.removeprefix("./").lstrip("./")
        return [each for each in self._listing if each.endswith(ending)]

    def _named_by(self, path: str) -> Iterator[str]:
        """Find the files, patterns and CMake folders that a build file names."""
        folder = PurePosixPath(path).parent
        for word in dict.fromkeys(_VARIABLE.sub("", each) for each in _WORD.findall(self._read(path))):
            names = [_normalize(folder / word), _normalize(PurePosixPath(word))]
            exact = [name for name in names if name in self._files]
            if exact:
                yield exact[0]
            elif "*" in word:
                patterns = [_to_pattern(name) for name in names]
                yield from (each for each in self._listing if any(p.fullmatch(each) for p in patterns))
            elif is_compiled(word):
                yield from (each for each in self._listing if each.endswith(f"/{word}"))
            else:
                below = [f"{name}/{build}" for name in names for build in ("CMakeLists.txt", "meson.build")]
                yield from (name for name in below if name in self._files)

    def _read(self, path: str) -> str:
        with (self._root / path).open(encoding="utf-8", errors="replace") as file:
            return file.read(_MOST_CHARACTERS)


def is_compiled(path: str) -> bool:
    """Return whether a compiler reads a file, by its ending."""
    return PurePosixPath(path).suffix in COMPILED


def _normalize(path: PurePosixPath) -> str:
    """Return a path without `.` and `..` where the repository has such a path."""
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part not in (".", "/"):
            parts.append(part)
    return "/".join(parts)


def _to_pattern(glob: str) -> re.Pattern[str]:
    """Return the pattern of a glob, in which `*` stays within one folder and `**/` spans any number of them."""
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile(
        "".join(parts.get(part) or re.escape(part) for part in re.split(r"(\*\*/|\*\*|\*|\?)", glob))
    )
