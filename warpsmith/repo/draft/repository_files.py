"""Files of a repository, listed and read once."""

from __future__ import annotations

import subprocess
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath

_MOST_CHARACTERS = 1_000_000
_SKIPPED = frozenset(("build", "dist", "devlog", "node_modules", "site-packages", "venv", "__pycache__"))


class RepositoryFiles:
    """The files of a repository that git does not ignore, by their paths relative to the root."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._texts = lru_cache(maxsize=None)(self._text)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files, sorted; without git all but those in hidden, virtual and build folders."""
        git = ("git", "-C", str(self.root), "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        listing = subprocess.run(git, capture_output=True, check=False)
        if listing.returncode == 0:
            names = [name for name in listing.stdout.decode(errors="replace").split("\0") if name]
        else:
            names = [path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()]
        return tuple(sorted(name for name in names if _is_source(name) and (self.root / name).is_file()))

    def list_named(self, *names: str) -> list[str]:
        """List the paths whose last part is one of these names, the shallowest first."""
        paths = [path for path in self.paths if PurePosixPath(path).name in names]
        return sorted(paths, key=lambda path: (path.count("/"), path))

    def list_ending(self, *endings: str) -> list[str]:
        """List the paths that end so."""
        return [path for path in self.paths if path.endswith(endings)]

    def text(self, path: str) -> str:
        """Text of a file, at most a million characters; empty if it cannot be read."""
        return self._texts(path)

    def _text(self, path: str) -> str:
        try:
            with (self.root / path).open(encoding="utf-8", errors="replace") as file:
                return file.read(_MOST_CHARACTERS)
        except OSError:
            return ""


def _is_source(path: str) -> bool:
    folders = PurePosixPath(path).parts[:-1]
    return not any(part in _SKIPPED or part.startswith(".") for part in folders)
