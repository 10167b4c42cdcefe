"""Git's plumbing with no side effect on the user's checkout: no hooks, a private index, compare and swap."""

from __future__ import annotations

import os
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from warpsmith import files
from warpsmith.errors import MachineLacks, Misuse

_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.splitIndex": "false",
    "core.fsync": "loose-object,reference",  # git before 2.36 does not know it and goes on without
    "core.fsyncMethod": "fsync",
    "gc.auto": "0",
}
_COMMAND = ("git", *(part for item in _SETTINGS.items() for part in ("-c", "=".join(item))))
_FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR",
            "GIT_NAMESPACE", "GIT_PREFIX", "GIT_ALTERNATE_OBJECT_DIRECTORIES")  # fmt: skip
_NOBODY = "0" * 40


class Git:
    """The repository that a folder lies in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def top(self) -> Path:
        """The checkout's top folder.

        Raises:
            Misuse: the folder lies in no git checkout.
            MachineLacks: there is no git.
        """
        return Path(self._run("rev-parse", "--show-toplevel").strip()).resolve()

    def path(self, path: Path) -> str:
        """A path as trees give it; raises Misuse where it lies outside of the checkout."""
        path = path.resolve()
        if not path.is_relative_to(self.top):
            raise Misuse(f"{path} lies outside of the git checkout {self.top}; start with `--git none`.")
        return path.relative_to(self.top).as_posix()

    def commit(self, name: str) -> str | None:
        """The commit that a ref or HEAD names; None where there is none yet."""
        found = self._start("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return found.stdout.decode().strip() if found.returncode == 0 else None

    def log(self, tip: str, message: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Commits reachable from `tip`, oldest first, whose message matches, with their trailers."""
        form = "%x01%H%n%(trailers:only,unfold)"
        text = self._run("log", "--reverse", "--topo-order", f"--grep={message}", f"--format={form}", tip)
        for part in text.split("\x01")[1:]:
            commit, *lines = part.strip().splitlines()
            yield commit, dict(line.split(": ", 1) for line in lines if ": " in line)

    def files(self, commit: str, folder: str) -> dict[str, bytes]:
        """The files directly in a folder of a commit, by name."""
        names = self._run("ls-tree", "-z", "--name-only", "--full-tree", f"{commit}", f"{folder}/").split("\0")
        return {Path(n).name: self._bytes("cat-file", "blob", f"{commit}:{n}") for n in names if n}

    def blobs(self, paths: Sequence[Path]) -> list[str]:
        """Keep the files' content, unfiltered; returns its object names."""
        text = "".join(f"{path.resolve()}\n" for path in paths)
        return self._run("hash-object", "-w", "--no-filters", "--stdin-paths", data=text).split()

    @staticmethod
    def index_folder(folder: Path) -> Path:
        """A fresh folder for a private index, which `files.sweep` finds where it is left behind."""
        index = folder / f"{files.TEMPORARY}index-{os.getpid()}-{secrets.token_hex(4)}"
        index.mkdir()
        return index

    def tree(self, base: str | None, blobs: dict[str, str], index: Path) -> str:
        """The tree of `base` with these files, made in a private index in the folder `index`."""
        private = {"GIT_INDEX_FILE": str(index / "index")}
        self._run("read-tree", base or "--empty", env=private)
        lines = "".join(f"100644 {blob}\t{path}\0" for path, blob in blobs.items())
        self._run("update-index", "--add", "-z", "--index-info", data=lines, env=private)
        return self._run("write-tree", env=private).strip()

    def commit_tree(self, tree: str, parent: str | None, message: str, minute: str) -> str:
        """A commit dated `minute` (UTC); the same arguments give the same commit."""
        parents = ("-p", parent) if parent else ()
        date = f"{minute}:00 +0000"
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        return self._run("commit-tree", tree, *parents, data=message, env=dates).strip()

    def move(self, ref: str, new: str, old: str | None) -> bool:
        """Set a ref if it still is at `old`; whether it was.

        Raises:
            Misuse: git refuses although it was.
        """
        done = self._start("update-ref", "-m", "warpsmith", ref, new, old or _NOBODY)
        if done.returncode and self.commit(ref) == old:
            raise self._refusal("update-ref", done)
        return done.returncode == 0

    def checked_out(self, ref: str) -> str | None:
        """The worktree that a branch is checked out in."""
        place = None
        for line in self._run("worktree", "list", "--porcelain").splitlines():
            if line.startswith("worktree "):
                place = line.removeprefix("worktree ")
            if line == f"branch {ref}":
                return place
        return None

    @cached_property
    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        return {**kept, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}

    @cached_property
    def _identity(self) -> dict[str, str]:
        own = self._start("config", "--get-regexp", r"^user\.(name|email)$").stdout.decode()
        missing: dict[str, str] = {}
        for key, value in (("name", "Warpsmith"), ("email", "warpsmith@localhost")):
            if f"user.{key} " not in own:
                names = [f"GIT_{role}_{key.upper()}" for role in ("AUTHOR", "COMMITTER")]
                missing |= {name: value for name in names if name not in os.environ}
        return missing

    def _run(self, *arguments: str, data: str = "", env: dict[str, str] | None = None) -> str:
        return self._bytes(*arguments, data=data, env=env).decode("utf-8", "surrogateescape")

    def _bytes(self, *arguments: str, data: str = "", env: dict[str, str] | None = None) -> bytes:
        done = self._start(*arguments, data=data, env=env)
        if done.returncode:
            raise self._refusal(arguments[0], done)
        return done.stdout

    def _start(
        self, *arguments: str, data: str = "", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        extra = self._identity if arguments[0] in ("commit-tree", "update-ref") else {}
        try:
            return subprocess.run(
                (*_COMMAND, "-C", str(self.folder), *arguments),
                input=data.encode("utf-8", "surrogateescape"),
                env=self._environment | extra | (env or {}),
                capture_output=True,
            )
        except FileNotFoundError as error:
            raise MachineLacks(
                "There is no git on this machine; install it, or start with `--git none`."
            ) from error

    def _refusal(self, command: str, done: subprocess.CompletedProcess[bytes]) -> Misuse:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit {done.returncode}"]
        if "not a git repository" in lines[0]:
            return Misuse(f"{self.folder} is no git checkout; `git init` makes it one.")
        return Misuse(f"git {command} refuses in {self.folder}: {lines[0][:300]}; mend it, then try again.")
