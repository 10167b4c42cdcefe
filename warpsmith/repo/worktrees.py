"""Worktrees of a campaign, made and moved by git's plumbing: the user's index, stash and checkout stay.

`edit` is where the kernel is worked on; `base` and `candidate` are where commands run. Those two are brought to a
commit before every judgement, so that what is measured is a tree that git can name, and nothing beside it.
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
"""The worktree that agents and people write in."""

BASE: Side = "base"
CANDIDATE: Side = "candidate"

_SHOWN = 5


class Repository(Git):
    """The git repository that a project lies in."""

    def __init__(self, project: Project) -> None:
        super().__init__(project.root)
        self.project = project

    @cached_property
    def prefix(self) -> str:
        """The project's root in the repository, with a slash at its end; empty where it is the top."""
        return self.run("rev-parse", "--show-prefix").strip()

    def head(self) -> str:
        """The commit of HEAD.

        Raises:
            Misuse: this is no git repository, or it has no commit.
        """
        _ = self.top
        commit = self.commit("HEAD")
        if commit is None:
            raise Misuse(f"{self.top} has no commit yet; commit the kernel, its test and its benchmark first.")
        return commit

    def refuse_dirty(self) -> None:
        """Raise Misuse where tracked files, other than records, differ from HEAD."""
        places = ["--", ":/"]
        if self.project.devlog.resolve().is_relative_to(self.top):
            places.append(f":(exclude,top){self.path(self.project.devlog)}")
        text = self.run("status", "--porcelain", "--untracked-files=no", "-z", *places)
        changed = [entry[3:] for entry in text.split("\0") if entry]
        if changed:
            raise Misuse(
                f"{self.top} has changes that are not committed ({_listed(changed)}); commit or stash them first:"
                " a campaign starts at a commit, and what is not in it would not be measured."
            )

    def require_tracked(self, commit: str, paths: Sequence[str]) -> None:
        """Raise Misuse where one of the project's files is not in a commit."""
        found = self.run("ls-tree", "-z", "--name-only", "--full-tree", "-r", commit).split("\0")
        for path in paths:
            if self.prefix + path not in found:
                raise Misuse(f"{path} is not in commit {commit[:12]}; commit it first.")

    def worktree(self, place: Path, commit: str) -> bool:
        """Make sure that there is a worktree at `place`; returns whether it was made, at `commit`.

        Raises:
            Misuse: something else is there.
        """
        if self._owns(place):
            return False
        if place.name == EDIT and place.is_dir() and {path.name for path in place.iterdir()} - {".git"}:
            raise Misuse(f"{place} is there and is no worktree of {self.top}; move it away.")
        shutil.rmtree(place, ignore_errors=True)  # what a kill left half made
        place.parent.mkdir(parents=True, exist_ok=True)
        self.run("worktree", "add", "--force", "--detach", "--no-checkout", str(place), commit)
        self.bring(place, commit)
        return True

    def remove_worktrees(self, folder: Path) -> None:
        """Remove a folder with all worktrees in it."""
        for name in (EDIT, BASE, CANDIDATE):
            self.remove_worktree(folder / name)
        shutil.rmtree(folder, ignore_errors=True)

    def remove_worktree(self, place: Path) -> None:
        """Remove a worktree, whatever is in it."""
        if place.exists():
            self.run("worktree", "remove", "--force", "--force", str(place))

    def bring(self, place: Path, commit: str) -> bool:
        """Bring a worktree to a commit: tracked files as they are there, all others but ignored ones gone.

        Returns:
            Whether there were such others.
        """
        self._unlock(place)
        self._in(place, "read-tree", "--reset", "-u", commit)
        self._in(place, "update-ref", "--no-deref", "HEAD", commit)
        return self._in(place, "clean", "-ffd") != ""

    def follow(self, place: Path, commit: str, paths: Sequence[str]) -> None:
        """Move a worktree's HEAD and index to a commit, and only these files of its content."""
        self._unlock(place)
        self._in(place, "read-tree", "--reset", commit)
        self._in(place, "update-ref", "--no-deref", "HEAD", commit)
        if paths:
            self._in(place, "checkout-index", "--force", "--", *(self.prefix + path for path in paths))

    def others(self, place: Path, paths: Sequence[str]) -> list[str]:
        """Tracked files of a worktree, other than these of the project, that differ from its HEAD."""
        text = self._in(place, "status", "--porcelain", "--untracked-files=no", "-z")
        changed = [entry[3:] for entry in text.split("\0") if entry]
        return [name for name in changed if name not in {self.prefix + path for path in paths}]

    def snapshot(self, place: Path, commit: str, paths: Sequence[str]) -> str:
        """The tree of a commit with these files of the project as they are in a worktree."""
        index = self.index_folder(place.parent)
        try:
            private = {"GIT_INDEX_FILE": str(index / "index")}
            self._in(place, "read-tree", commit, env=private)
            names = [self.prefix + path for path in paths]
            self._in(place, "update-index", "--add", "--remove", "--", *names, env=private)
            return self._in(place, "write-tree", env=private).strip()
        finally:
            shutil.rmtree(index, ignore_errors=True)

    def tree_of(self, commit: str) -> str:
        """A commit's tree."""
        return self.run("rev-parse", "--verify", f"{commit}^{{tree}}").strip()

    def difference(self, before: str, after: str) -> bytes:
        """The change from one tree or commit to another, as `git apply` takes it."""
        return self.run_bytes(
            *("diff-tree", "-r", "-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv"), before, after
        )

    def contents(self, commit: str, path: str) -> bytes:
        """A file of the project in a commit."""
        return self.run_bytes("cat-file", "blob", f"{commit}:{self.prefix}{path}")

    def listing(self, commit: str) -> list[str]:
        """The project's files in a commit, relative to its root."""
        names = self.run("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit).split("\0")
        return [name.removeprefix(self.prefix) for name in names if name and name.startswith(self.prefix)]

    def head_of(self, place: Path) -> str:
        """The commit that a worktree is at."""
        return self._in(place, "rev-parse", "HEAD").strip()

    def _in(self, place: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
        return Git(place).run(*arguments, env=env)

    def _owns(self, place: Path) -> bool:
        """Whether a folder is a whole worktree of this repository, and not of the one that this is a copy of."""
        found = Git(place).try_run("rev-parse", "--show-toplevel", "--git-common-dir", "HEAD")
        if not place.is_dir() or found.returncode:
            return False
        top, common, _ = (Path(line) for line in found.stdout.decode().splitlines())
        return top.resolve() == place.resolve() and (place / common).resolve() == self._common

    @cached_property
    def _common(self) -> Path:
        return (self.folder / self.run("rev-parse", "--git-common-dir").strip()).resolve()

    def _unlock(self, place: Path) -> None:
        """Remove the index lock that a killed git left; whoever calls holds the campaign."""
        folder = Path(self._in(place, "rev-parse", "--absolute-git-dir").strip())
        (folder / "index.lock").unlink(missing_ok=True)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
