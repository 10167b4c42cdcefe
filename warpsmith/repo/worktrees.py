"""Worktrees of a campaign, made and moved by git's plumbing: the user's index, stash and checkout do not change.

The kernel is edited in `edit`; commands run in `base` and `candidate`. Those two are brought to a commit before
every evaluation, so that exactly a tree that git can name is measured.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from warpsmith.core.repo import Side
from warpsmith.errors import Misuse
from warpsmith.ledger.git import Git
from warpsmith.project import Project

EDIT = "edit"
"""Worktree that agents and people write in."""

BASE: Side = "base"
CANDIDATE: Side = "candidate"

_MOST_PATHS = 5


class Repository(Git):
    """Git repository that a project lies in."""

    def __init__(self, project: Project) -> None:
        super().__init__(project.root)
        self.project = project

    @cached_property
    def prefix(self) -> str:
        """The project's root in the repository, with a slash at its end; empty if it is the top folder."""
        return self.run("rev-parse", "--show-prefix").strip()

    def head(self) -> str:
        """Commit of HEAD.

        Raises:
            Misuse: this is not a git repository, or it has no commit.
        """
        _ = self.top
        commit = self.commit("HEAD")
        if commit is None:
            raise Misuse(f"{self.top} has no commit yet; commit the kernel, its test and its benchmark first.")
        return commit

    def refuse_dirty(self) -> None:
        """Raise Misuse if tracked files other than records differ from HEAD."""
        paths = ["--", ":/"]
        if self.project.devlog.resolve().is_relative_to(self.top):
            paths.append(f":(exclude,top){self.path(self.project.devlog)}")
        text = self.run("status", "--porcelain", "--untracked-files=no", "-z", *paths)
        changed = [entry[3:] for entry in text.split("\0") if entry]
        if changed:
            raise Misuse(
                f"{self.top} has changes that are not committed ({_format_paths(changed)}); commit or stash them"
                " first: a campaign starts at a commit, and other changes would not be measured."
            )

    def require_tracked(self, commit: str, paths: Sequence[str]) -> None:
        """Raise Misuse if one of the project's files is not in a commit."""
        tracked = self.run("ls-tree", "-z", "--name-only", "--full-tree", "-r", commit).split("\0")
        for path in paths:
            if self.prefix + path not in tracked:
                raise Misuse(f"{path} is not in commit {commit[:12]}; commit it first.")

    def worktree(self, path: Path, commit: str) -> bool:
        """Ensure that there is a worktree at `path`; return True if it was made, at `commit`.

        Raises:
            Misuse: something else is there.
        """
        if self._owns(path):
            return False
        if path.name == EDIT and path.is_dir() and {item.name for item in path.iterdir()} - {".git"}:
            raise Misuse(f"{path} exists and is not a worktree of {self.top}; move it away.")
        shutil.rmtree(path, ignore_errors=True)  # a killed command may have left it half made
        path.parent.mkdir(parents=True, exist_ok=True)
        self.run("worktree", "add", "--force", "--detach", "--no-checkout", str(path), commit)
        self.bring(path, commit)
        return True

    def remove_worktrees(self, folder: Path, spared: str) -> None:
        """Remove a folder with all worktrees in it, except a subfolder `spared` if there is one."""
        for name in (EDIT, BASE, CANDIDATE):
            self.remove_worktree(folder / name)
        if not (folder / spared).exists():
            shutil.rmtree(folder, ignore_errors=True)

    def remove_worktree(self, worktree: Path) -> None:
        """Remove a worktree with all of its files."""
        if worktree.exists():
            self.run("worktree", "remove", "--force", "--force", str(worktree))

    def bring(self, worktree: Path, commit: str) -> bool:
        """Bring a worktree to a commit: reset tracked files and remove all others except ignored ones.

        Returns:
            True if files were removed.
        """
        self._unlock(worktree)
        self._in(worktree, "read-tree", "--reset", "-u", commit)
        self._in(worktree, "update-ref", "--no-deref", "HEAD", commit)
        return self._in(worktree, "clean", "-ffd") != ""

    def follow(self, worktree: Path, commit: str, paths: Sequence[str]) -> None:
        """Move a worktree's HEAD and index to a commit, and of its content only these files."""
        self._unlock(worktree)
        self._in(worktree, "read-tree", "--reset", commit)
        self._in(worktree, "update-ref", "--no-deref", "HEAD", commit)
        if paths:
            self._in(worktree, "checkout-index", "--force", "--", *(self.prefix + path for path in paths))

    def others(self, worktree: Path, paths: Sequence[str]) -> list[str]:
        """List the tracked files of a worktree, other than these of the project, that differ from its HEAD."""
        text = self._in(worktree, "status", "--porcelain", "--untracked-files=no", "-z")
        changed = [entry[3:] for entry in text.split("\0") if entry]
        return [name for name in changed if name not in {self.prefix + path for path in paths}]

    def snapshot(self, worktree: Path, commit: str, paths: Sequence[str]) -> str:
        """Write the tree of a commit with these files of the project as they are in a worktree."""
        index = self.index_folder(worktree.parent)
        try:
            private = {"GIT_INDEX_FILE": str(index / "index")}
            self._in(worktree, "read-tree", commit, env=private)
            names = [self.prefix + path for path in paths]
            self._in(worktree, "update-index", "--add", "--remove", "--", *names, env=private)
            return self._in(worktree, "write-tree", env=private).strip()
        finally:
            shutil.rmtree(index, ignore_errors=True)

    def tree_of(self, commit: str) -> str:
        """Tree of a commit."""
        return self.run("rev-parse", "--verify", f"{commit}^{{tree}}").strip()

    def difference(self, before: str, after: str) -> bytes:
        """Change from one tree or commit to another, in the format of `git apply`."""
        return self.run_bytes(
            *("diff-tree", "-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv"), before, after
        )

    def contents(self, commit: str, path: str) -> bytes:
        """Content of a file of the project in a commit."""
        return self.run_bytes("cat-file", "blob", f"{commit}:{self.prefix}{path}")

    def listing(self, commit: str) -> list[str]:
        """List the project's files in a commit, relative to its root."""
        names = self.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit).split("\0")
        return [name.removeprefix(self.prefix) for name in names if name and name.startswith(self.prefix)]

    def head_of(self, worktree: Path) -> str:
        """Commit that a worktree is at."""
        return self._in(worktree, "rev-parse", "HEAD").strip()

    def _in(self, worktree: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
        return Git(worktree).run(*arguments, env=env)

    def _owns(self, worktree: Path) -> bool:
        """Return whether a folder is a whole worktree of this repository, not of one that this is a copy of."""
        result = Git(worktree).try_run("rev-parse", "--show-toplevel", "--git-common-dir", "HEAD")
        if not worktree.is_dir() or result.returncode:
            return False
        top, common, _ = (Path(line) for line in result.stdout.decode().splitlines())
        return top.resolve() == worktree.resolve() and (worktree / common).resolve() == self._common

    @cached_property
    def _common(self) -> Path:
        return (self.folder / self.run("rev-parse", "--git-common-dir").strip()).resolve()

    def _unlock(self, worktree: Path) -> None:
        """Remove the index lock that a killed git left; the caller holds the campaign."""
        folder = Path(self._in(worktree, "rev-parse", "--absolute-git-dir").strip())
        (folder / "index.lock").unlink(missing_ok=True)


def _format_paths(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_PATHS} more" if len(names) > _MOST_PATHS else ""
    return ", ".join(names[:_MOST_PATHS]) + more
