"""The repository as the linter sees it: the files that git knows or would take, read once."""

from __future__ import annotations

import subprocess
from functools import cached_property
from pathlib import Path, PurePosixPath

from tools.textlint.page import Page

PLUGIN = "warpsmith"
"""The plugin's name: its agents and skills are addressed as `warpsmith:<name>`."""

_RECORDED = ("devlog", "kernels", "tests")
"""Folders whose Markdown is rendered from records, or is a test's."""

_OWN_HIDDEN = {".claude", ".claude-plugin", ".github"}
"""The hidden folders that are looked into where there is no git to ask."""


class Tree:
    """The files below a root, with their texts."""

    def __init__(self, root: Path) -> None:
        """Of the folder `root`, which exists."""
        self.root = root
        self._texts: dict[str, str] = {}
        self._pages: dict[str, Page] = {}

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Every file, relative to the root, sorted; what git ignores is not among them."""
        command = ["git", "-C", str(self.root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = set(done.stdout.split("\0")) - {""} if done.returncode == 0 else self._walked()
        return tuple(sorted(path for path in found if (self.root / path).is_file()))

    def _walked(self) -> set[str]:
        below = (path.relative_to(self.root) for path in self.root.rglob("*"))
        return {
            path.as_posix() for path in below if not path.parts[0].startswith(".") or path.parts[0] in _OWN_HIDDEN
        }

    @cached_property
    def _places(self) -> frozenset[str]:
        return frozenset(str(place) for path in self.files for place in (path, *PurePosixPath(path).parents))

    def has(self, path: str) -> bool:
        """Whether a file or a folder of that name is there."""
        return path in self._places

    def text(self, path: str) -> str:
        """The text of a file, bytes that are no UTF-8 replaced."""
        if path not in self._texts:
            self._texts[path] = (self.root / path).read_text(encoding="utf-8", errors="replace")
        return self._texts[path]

    def page(self, path: str) -> Page:
        """A Markdown file, taken apart."""
        if path not in self._pages:
            self._pages[path] = Page(path, self.text(path))
        return self._pages[path]

    def match(self, pattern: str) -> list[str]:
        """The files that fit a glob pattern; `*` does not cross a slash."""
        depth = pattern.count("/")
        return [path for path in self.files if path.count("/") == depth and PurePosixPath(path).match(pattern)]

    @cached_property
    def pages(self) -> list[Page]:
        """The Markdown that is written by hand or by `knowledge index`, in order of path."""
        return [
            self.page(path)
            for path in self.files
            if path.endswith(".md") and PurePosixPath(path).parts[0] not in _RECORDED
        ]

    @cached_property
    def skills(self) -> dict[str, Page]:
        """The skills' pages by folder name."""
        return {path.split("/")[1]: self.page(path) for path in self.match("skills/*/SKILL.md")}

    @cached_property
    def agents(self) -> dict[str, Page]:
        """The agents' pages by file stem."""
        return {PurePosixPath(path).stem: self.page(path) for path in self.match("agents/*.md")}
