"""The repository's files: those that git tracks or would add, read once."""

from __future__ import annotations

import subprocess
from functools import cached_property
from pathlib import Path, PurePosixPath

from tools.textlint.page import MarkdownPage

PLUGIN = "warpsmith"
"""Name of the plugin; its agents and skills are addressed as `warpsmith:<name>`."""

_RECORDED = ("devlog", "kernels", "tests")
"""Folders whose Markdown is rendered from records, or belongs to tests."""

_OWN_HIDDEN = {".claude", ".claude-plugin", ".github"}
"""Hidden folders that are checked if there is no git."""


class Tree:
    """The files below a root, with their texts."""

    def __init__(self, root: Path) -> None:
        """Take the existing folder `root`."""
        self.root = root
        self._texts: dict[str, str] = {}
        self._pages: dict[str, MarkdownPage] = {}

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Every file, relative to the root, sorted, except links and those that git ignores."""
        command = ["git", "-C", str(self.root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        paths = set(process.stdout.split("\0")) - {""} if process.returncode == 0 else self._walk()
        return tuple(sorted(path for path in paths if self._is_own_file(path)))

    def _is_own_file(self, path: str) -> bool:
        file = self.root / path
        folders = file.parents[: path.count("/")]
        return file.is_file() and not any(part.is_symlink() for part in (file, *folders))

    def _walk(self) -> set[str]:
        below = (path.relative_to(self.root) for path in self.root.rglob("*"))
        return {
            path.as_posix() for path in below if not path.parts[0].startswith(".") or path.parts[0] in _OWN_HIDDEN
        }

    @cached_property
    def _paths(self) -> frozenset[str]:
        return frozenset(str(part) for path in self.files for part in (path, *PurePosixPath(path).parents))

    def has(self, path: str) -> bool:
        """Return whether a file or a folder exists."""
        return path in self._paths

    def text(self, path: str) -> str:
        """Return the text of a file; bytes that are not UTF-8 are replaced."""
        if path not in self._texts:
            self._texts[path] = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return self._texts[path]

    def page(self, path: str) -> MarkdownPage:
        """Return a parsed Markdown file."""
        if path not in self._pages:
            self._pages[path] = MarkdownPage(path, self.text(path))
        return self._pages[path]

    def match(self, pattern: str) -> list[str]:
        """Return the files that match a glob pattern; `*` does not match a slash."""
        depth = pattern.count("/")
        return [path for path in self.files if path.count("/") == depth and PurePosixPath(path).match(pattern)]

    @cached_property
    def pages(self) -> list[MarkdownPage]:
        """Markdown pages written by hand or by `knowledge index`, in order of path."""
        return [
            self.page(path)
            for path in self.files
            if path.endswith(".md") and PurePosixPath(path).parts[0] not in _RECORDED
        ]

    @cached_property
    def skills(self) -> dict[str, MarkdownPage]:
        """Pages of skills by folder name."""
        return {path.split("/")[1]: self.page(path) for path in self.match("skills/*/SKILL.md")}

    @cached_property
    def agents(self) -> dict[str, MarkdownPage]:
        """Pages of agents by file name without suffix."""
        return {PurePosixPath(path).stem: self.page(path) for path in self.match("agents/*.md")}
