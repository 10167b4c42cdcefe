"""Workspace of a kernel: the kernel and its imports in src/, its test in tests/, its benchmark in bench/.

A kernel that is built keeps the repository's layout, all of it below src/: build scripts name files by path.
"""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from warpsmith import files
from warpsmith.core.base import this_minute
from warpsmith.core.repo import RepoSettings, Workspace
from warpsmith.errors import MissingInput, Misuse
from warpsmith.ledger.store import write_model
from warpsmith.repo import command, rounds, store
from warpsmith.repo.sources.native_sources import NativeSources, is_compiled
from warpsmith.repo.sources.python_sources import PythonSources
from warpsmith.repo.store import RepoCampaign
from warpsmith.repo.worktrees import EDIT, Repository

SRC, TESTS, BENCH = "src", "tests", "bench"

_TEST_FOLDERS = frozenset(("test", "tests", "testing"))

Copies = tuple[dict[str, str], set[str], dict[str, str]]
"""Files by their path in the workspace, packages from outside, and commands by the folder of their files."""


def extract_workspace(campaign: RepoCampaign, kernel: str) -> Workspace:
    """Copy the kernel of the campaign's best commit, and the files that it needs, into a workspace.

    Raises:
        Misuse: the kernel is not one of the settings', or there is a workspace already.
    """
    project_settings = campaign.manifest.contract
    if kernel not in project_settings.kernel:
        raise Misuse(
            f"{kernel} is not a kernel of the project settings; they name {', '.join(project_settings.kernel)}."
        )
    with store.hold_repo_campaign(campaign.project, campaign.name, "workspace"):
        existing = [name for name in (SRC, TESTS, BENCH) if (campaign.folder / name).exists()]
        if existing:
            raise Misuse(
                f"{campaign.folder} has {', '.join(existing)} already; move that away to make a new workspace."
            )
        git, best = Repository(campaign.project), rounds.read_repo_state(campaign).best
        worktree = campaign.state / "upstream"
        git.worktree(worktree, best)
        git.bring(worktree, best)
        try:
            workspace = _extract(campaign, git, worktree / git.prefix, kernel, best)
        finally:
            git.remove_worktree(worktree)
        workspace = workspace.model_copy(update={"problem": _find_problem(campaign, workspace)})
        write_model(campaign.folder / store.WORKSPACE, workspace)
    return workspace


def sync_workspace(campaign: RepoCampaign) -> Path:
    """Copy the workspace's kernel, and nothing else, into the worktree `edit`; return the file there.

    Raises:
        MissingInput: there is no workspace.
        Misuse: something else changed the kernel in `edit` meanwhile.
    """
    workspace = campaign.workspace()
    if workspace is None:
        raise MissingInput(f"{campaign.name} has no workspace; run `warpsmith repo workspace {campaign.name}`.")
    with store.hold_repo_campaign(campaign.project, campaign.name, "sync"):
        git = Repository(campaign.project)
        git.worktree(campaign.state / EDIT, rounds.read_repo_state(campaign).best)
        source = campaign.folder / workspace.copy_path
        target = campaign.state / EDIT / git.prefix / workspace.kernel
        if not source.is_file():
            raise MissingInput(f"{source} is gone; make a new workspace with `warpsmith repo workspace`.")
        if target.is_file() and files.file_sha256(target) not in (
            workspace.synced_sha256,
            files.file_sha256(source),
        ):
            raise Misuse(
                f"{target} differs from the file that the workspace was copied from or wrote last;"
                f" merge the two by hand in {source}, then copy that over it."
            )
        content = source.read_bytes()
        target.write_bytes(content)
        synced = workspace.model_copy(update={"synced_sha256": hashlib.sha256(content).hexdigest()})
        write_model(campaign.folder / store.WORKSPACE, synced)
    return target


def _find_problem(campaign: RepoCampaign, workspace: Workspace) -> str:
    """Build and test the workspace; return the first failure, empty if both pass."""
    limits = campaign.manifest.contract.timeouts
    steps = [("rebuild", workspace.rebuild, limits.rebuild), ("test", workspace.test, limits.test)]
    for name, text, limit in steps:
        if text:
            log = campaign.state / "logs" / f"{name}-workspace.out"
            finished = command.run_command(text, campaign.folder, limit, log)
            if not finished.ok:
                return f"`{text}`: {finished.failure}; {campaign.project.relative(log)} has its output"
    return ""


def _extract(campaign: RepoCampaign, git: Repository, root: Path, kernel: str, best: str) -> Workspace:
    project_settings, listing = campaign.manifest.contract, git.listing(best)
    built = project_settings.rebuild is not None or is_compiled(kernel)
    find_copies = _built_copies if built else _python_copies
    copies, outside, commands = find_copies(project_settings, root, listing, kernel)
    for copy, path in copies.items():
        target = campaign.folder / copy
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / path, target)  # with its mode: a build may run it
    search_path = "" if built else f"pythonpath = {SRC} {TESTS} {BENCH}\n"
    # Otherwise pytest reads the project's own configuration, and with it imports the kernel of the checkout.
    files.write_file(campaign.folder / "pytest.ini", f"[pytest]\n{search_path}")
    if not built:
        _make_packages(campaign.folder / SRC)
    content = git.contents(best, kernel)
    sha256 = hashlib.sha256(content).hexdigest()
    return Workspace(
        campaign=campaign.name,
        kernel=kernel,
        copy_path=next(copy for copy, path in copies.items() if path == kernel),
        upstream=best,
        upstream_sha256=sha256,
        synced_sha256=sha256,
        files=copies,
        external=tuple(sorted(outside)),
        test=commands[TESTS],
        benchmark=commands[BENCH],
        rebuild=commands.get(SRC),
        problem="",
        created=this_minute(),
    )


def _python_copies(project_settings: RepoSettings, root: Path, listing: list[str], kernel: str) -> Copies:
    """Find the files of a kernel that is Python, and its commands."""
    sources = PythonSources(root, listing)
    package, outside = sources.needs(kernel)
    start = PurePosixPath(sources.root_of(kernel))
    top = start / _below(start, kernel).parts[0]
    copies = {f"{SRC}/{_below(start, path)}": path for path in package}
    commands = {}
    for folder, text in ((TESTS, project_settings.test), (BENCH, project_settings.benchmark)):
        paths = _named_files(root, text)
        for path in [*paths, *sources.implicit_files(paths)]:
            needed, more = sources.needs(path) if path.endswith(".py") else ([path], set())
            outside |= more
            for each in needed:
                own = each in package or (PurePosixPath(each).is_relative_to(top) and each not in paths)
                copies[f"{SRC}/{_below(start, each)}" if own else f"{folder}/{each}"] = each
        commands[folder] = _workspace_command(text, paths, folder)
    return copies, outside, commands


def _built_copies(project_settings: RepoSettings, root: Path, listing: list[str], kernel: str) -> Copies:
    """Find the files of a kernel that is built, and its commands, which run in src/."""
    python, native = PythonSources(root, listing), NativeSources(root, listing)
    texts = {TESTS: project_settings.test, BENCH: project_settings.benchmark, SRC: project_settings.rebuild or ""}
    command_paths = [path for text in texts.values() for path in _named_files(root, text, listing)]
    folders = {str(PurePosixPath(path).parent) for path in command_paths if _is_in_tests(path)}
    everywhere = not any(map(_is_in_tests, command_paths))  # the command names no test: it takes all of them
    command_paths += [
        path
        for path in listing
        if _is_in_tests(path) and (everywhere or any(path.startswith(f"{folder}/") for folder in folders))
    ]
    needed = dict.fromkeys(native.needs(kernel, command_paths))
    for path in project_settings.kernel:
        needed |= dict.fromkeys(native.needs(path, command_paths))
    outside: set[str] = set()
    for path in [*command_paths, *python.implicit_files(command_paths), *list(needed)]:
        imports, more = python.needs(path) if path.endswith(".py") else ([path], set())
        needed |= dict.fromkeys(imports)
        outside |= more
    needed |= dict.fromkeys(python.implicit_files(needed))
    commands = {folder: f"cd {SRC} && {text}" for folder, text in texts.items() if text}
    own = {PurePosixPath(path).parts[0] for path in listing}  # a compiled module of the package is no file
    return {f"{SRC}/{path}": path for path in needed}, outside - own, commands


def _is_in_tests(path: str) -> bool:
    """Return whether a file lies in a folder of tests, with whatever data they read."""
    return not _TEST_FOLDERS.isdisjoint(PurePosixPath(path).parts[:-1])


def _below(start: PurePosixPath, path: str) -> PurePosixPath:
    """Path relative to the folder that the kernel's imports start from; unchanged if it lies elsewhere."""
    full = PurePosixPath(path)
    return full.relative_to(start) if full.is_relative_to(start) else full


def _named_files(root: Path, text: str, listing: Sequence[str] = ()) -> list[str]:
    """List the repository's files that a command names, also as `file.py::test`, and those of `listing` in folders
    that it names."""
    words = [word.partition("::")[0] for word in shlex.split(text)]
    paths = [str(PurePosixPath(word)) for word in words]
    inside = [path for path in dict.fromkeys(paths) if path != "." and not path.startswith(("/", ".."))]
    below = [each for path in inside if (root / path).is_dir() for each in listing if each.startswith(f"{path}/")]
    return [*(path for path in inside if (root / path).is_file()), *below]


def _workspace_command(text: str, paths: list[str], folder: str) -> str:
    """Rewrite a command for the workspace."""
    for path in paths:
        text = text.replace(path, f"{folder}/{path}")
    search_path = f"PYTHONPATH={SRC}:{TESTS}:{BENCH}"
    if "PYTHONPATH=" not in text:
        return f"export {search_path}; {text}"
    return re.sub(r"\bPYTHONPATH=(\S+)", lambda match: ":".join((search_path, *_outside_entries(match[1]))), text)


def _outside_entries(paths: str) -> list[str]:
    """List the entries of a search path that lie outside of the repository."""
    return [path for path in paths.split(":") if path.startswith(("/", "$"))]


def _make_packages(src: Path) -> None:
    """Write empty `__init__.py` files where the package's own files are not needed."""
    for folder in {path.parent for path in src.rglob("*.py")}:
        while folder != src:
            (folder / "__init__.py").touch()
            folder = folder.parent
