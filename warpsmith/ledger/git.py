"""Git by its plumbing commands alone: no hooks, a private index, refs moved by compare and swap.

The user's index, hooks, stash, HEAD and checkout are never touched.
"""

from __future__ import annotations

import os
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
    "core.fsync": "loose-object,reference",  # git before 2.36 ignores it
    "core.fsyncMethod": "fsync",
    "gc.auto": "0",
}
_COMMAND = ("git", *(part for item in _SETTINGS.items() for part in ("-c", "=".join(item))))
_FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR",
            "GIT_NAMESPACE", "GIT_PREFIX", "GIT_ALTERNATE_OBJECT_DIRECTORIES")  # fmt: skip
_NOBODY = "0" * 40


def campaign_ref(name: str) -> str:
    """Ref of a campaign's branch."""
    return f"refs/heads/optimize/{name}"


def campaign_refs(git: Git, name: str) -> list[str]:
    """List the refs that hold a campaign's branch: its own, then those fetched from other repositories."""
    own, pattern = campaign_ref(name), f"refs/remotes/*/optimize/{name}"
    fetched = git.run("for-each-ref", "--format=%(refname)", pattern).split()
    return [*([own] if git.commit(own) else []), *fetched]


def branch_obstacle(root: Path, folders: Sequence[Path]) -> str:
    """Return why no campaign's branch can hold files of these folders; empty if one can."""
    git = Git(root)
    try:
        paths = [git.path(folder) for folder in folders]
    except (Misuse, MachineLacks) as error:
        return str(error).split(";")[0]
    if git.commit("refs/heads/optimize"):
        return "a branch is named `optimize`, so none can be named `optimize/...`"
    for path in paths:
        if git.try_run("check-ignore", "-q", "--no-index", f"{git.top / path}/x").returncode == 0:
            return f"git ignores {path}"
    return ""


def has_other_checkouts(root: Path) -> bool:
    """Return whether the repository of a folder has a remote or a second worktree, with which its work is merged.

    Without git to ask, a checkout counts as one of several.
    """
    git = Git(root)
    try:
        return bool(git.run("remote").strip()) or git.run("worktree", "list", "--porcelain").count("worktree ") > 1
    except Misuse:
        return False
    except MachineLacks:
        return any((folder / ".git").exists() for folder in (root, *root.parents))


class Git:
    """The git repository that a folder lies in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def top(self) -> Path:
        """Top folder of the checkout.

        Raises:
            Misuse: the folder lies in no git checkout.
            MachineLacks: git is not installed.
        """
        return Path(self.run("rev-parse", "--show-toplevel").strip()).resolve()

    def path(self, path: Path) -> str:
        """Path relative to the top folder, with slashes; raises Misuse if it lies outside of the checkout."""
        path = path.resolve()
        if not path.is_relative_to(self.top):
            raise Misuse(f"{path} lies outside of the git checkout {self.top}; start with `--git none`.")
        return path.relative_to(self.top).as_posix()

    def commit(self, name: str) -> str | None:
        """Commit that a ref or HEAD names; None if there is none yet."""
        result = self.try_run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return result.stdout.decode().strip() if result.returncode == 0 else None

    def log(self, tip: str, message: str) -> Iterator[tuple[str, dict[str, str]]]:
        """List the commits reachable from `tip` whose message matches, oldest first, each with its trailers."""
        form = "%x01%H%n%(trailers:only,unfold)"
        text = self.run("log", "--reverse", "--topo-order", f"--grep={message}", f"--format={form}", tip)
        for part in text.split("\x01")[1:]:
            commit, *lines = part.strip().splitlines()
            yield commit, dict(line.split(": ", 1) for line in lines if ": " in line)

    def files(self, commit: str, folder: str) -> dict[str, bytes]:
        """Read the files directly in a folder of a commit, by name."""
        names = self.run("ls-tree", "-z", "--name-only", "--full-tree", f"{commit}", f"{folder}/").split("\0")
        return {Path(n).name: self.run_bytes("cat-file", "blob", f"{commit}:{n}") for n in names if n}

    def blobs(self, paths: Sequence[Path]) -> list[str]:
        """Store the content of files in the repository, unfiltered; return the names of the objects."""
        text = "".join(f"{path.resolve()}\n" for path in paths)
        return self.run("hash-object", "-w", "--no-filters", "--stdin-paths", data=text).split()

    @staticmethod
    def index_folder(folder: Path) -> Path:
        """Make a fresh folder for a private index; a sweep of unfinished writes finds it if it is left behind."""
        index = files.temporary_path(folder / "index")
        index.mkdir()
        return index

    def tree(self, base: str | None, blobs: dict[str, str], index: Path) -> str:
        """Write the tree of `base` with these files, through a private index in the folder `index`."""
        private = {"GIT_INDEX_FILE": str(index / "index")}
        self.run("read-tree", base or "--empty", env=private)
        lines = "".join(f"100644 {blob}\t{path}\0" for path, blob in blobs.items())
        self.run("update-index", "--add", "-z", "--index-info", data=lines, env=private)
        return self.run("write-tree", env=private).strip()

    def commit_tree(self, tree: str, parent: str | None, message: str, minute: str) -> str:
        """Write a commit dated `minute` (UTC); the same arguments give the same commit."""
        parents = ("-p", parent) if parent else ()
        date = f"{minute}:00 +0000"
        dates = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
        return self.run("commit-tree", tree, *parents, data=message, env=dates).strip()

    def move(self, ref: str, new: str, old: str | None) -> bool:
        """Set a ref if it is still at `old`; return whether it was.

        Raises:
            Misuse: git refuses although the ref is at `old`.
        """
        result = self.try_run("update-ref", "-m", "warpsmith", ref, new, old or _NOBODY)
        if result.returncode and self.commit(ref) == old:
            raise self._refusal("update-ref", result)
        return result.returncode == 0

    def checked_out(self, ref: str) -> str | None:
        """Worktree that a branch is checked out in; None if it is checked out nowhere."""
        worktree = None
        for line in self.run("worktree", "list", "--porcelain").splitlines():
            if line.startswith("worktree "):
                worktree = line.removeprefix("worktree ")
            if line == f"branch {ref}":
                return worktree
        return None

    def refuse_checked_out(self, ref: str, command: str) -> None:
        """Raise Misuse if a branch is checked out: moving it would change the files under its user."""
        worktree = self.checked_out(ref)
        if worktree:
            raise Misuse(
                f"{ref} is checked out in {worktree}; switch that checkout to another branch,"
                f" then run `{command}`."
            )

    def run(self, *arguments: str, data: str = "", env: dict[str, str] | None = None) -> str:
        """Run a git command and return its stdout; raises Misuse if it fails."""
        return self.run_bytes(*arguments, data=data, env=env).decode("utf-8", "surrogateescape")

    def run_bytes(self, *arguments: str, data: str = "", env: dict[str, str] | None = None) -> bytes:
        """Run a git command and return its stdout as bytes; raises Misuse if it fails."""
        result = self.try_run(*arguments, data=data, env=env)
        if result.returncode:
            raise self._refusal(arguments[0], result)
        return result.stdout

    def try_run(
        self, *arguments: str, data: str = "", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a git command, which may fail; raises MachineLacks if git is not installed."""
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

    @cached_property
    def _environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        return {**inherited, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}

    @cached_property
    def _identity(self) -> dict[str, str]:
        own = self.try_run("config", "--get-regexp", r"^user\.(name|email)$").stdout.decode()
        missing: dict[str, str] = {}
        for key, value in (("name", "Warpsmith"), ("email", "warpsmith@localhost")):
            if f"user.{key} " not in own:
                names = [f"GIT_{role}_{key.upper()}" for role in ("AUTHOR", "COMMITTER")]
                missing |= {name: value for name in names if name not in os.environ}
        return missing

    def _refusal(self, command: str, result: subprocess.CompletedProcess[bytes]) -> Misuse:
        lines = result.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit {result.returncode}"]
        if "not a git repository" in lines[0]:
            return Misuse(f"{self.folder} is no git checkout; `git init` makes it one.")
        return Misuse(f"git {command} refuses in {self.folder}: {lines[0][:300]}; correct that, then try again.")
