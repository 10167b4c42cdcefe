"""A workspace: the kernel with what it imports in src/, its test in tests/, its benchmark in bench/."""

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from pathlib import Path, PurePosixPath

from warpsmith import files
from warpsmith.core.base import this_minute
from warpsmith.core.repo import Workspace
from warpsmith.errors import MissingInput, Misuse
from warpsmith.ledger.store import write_model
from warpsmith.repo import command, rounds, store
from warpsmith.repo.imports import PythonSources
from warpsmith.repo.store import RepoCampaign
from warpsmith.repo.worktrees import EDIT, Repository

SRC, TESTS, BENCH = "src", "tests", "bench"


def extract_workspace(campaign: RepoCampaign, kernel: str) -> Workspace:
    """Take the kernel out of the campaign's best commit.

    Raises:
        Misuse: the kernel is not one of the contract's, or a workspace is there already.
    """
    contract = campaign.manifest.contract
    if kernel not in contract.kernel:
        raise Misuse(f"{kernel} is not a kernel of the contract; it names {', '.join(contract.kernel)}.")
    with store.hold_repo_campaign(campaign.project, campaign.name, "workspace"):
        there = [name for name in (SRC, TESTS, BENCH) if (campaign.folder / name).exists()]
        if there:
            raise Misuse(f"{campaign.folder} has {', '.join(there)} already; move that away to extract again.")
        git, best = Repository(campaign.project), rounds.read_repo_state(campaign).best
        place = campaign.state / "upstream"
        git.worktree(place, best)
        git.bring(place, best)
        try:
            made = _extract(campaign, git, place / git.prefix, kernel, best)
        finally:
            git.remove_worktree(place)
        log = campaign.state / "logs" / "test-workspace.out"
        tried = command.run_command(made.test, campaign.folder, campaign.manifest.contract.timeouts.test, log)
        made = made.model_copy(update={"problem": "" if tried.ok else tried.why})
        write_model(campaign.folder / store.WORKSPACE, made)
    return made


def sync_workspace(campaign: RepoCampaign) -> Path:
    """Write the workspace's kernel, and nothing else of it, into the worktree `edit`; returns the file there.

    Raises:
        MissingInput: there is no workspace.
        Misuse: the kernel in `edit` has been changed by something else meanwhile.
    """
    made = campaign.workspace()
    if made is None:
        raise MissingInput(f"{campaign.name} has no workspace; run `warpsmith repo workspace {campaign.name}`.")
    with store.hold_repo_campaign(campaign.project, campaign.name, "sync"):
        git = Repository(campaign.project)
        git.worktree(campaign.state / EDIT, rounds.read_repo_state(campaign).best)
        source = campaign.folder / made.copy_path
        target = campaign.state / EDIT / git.prefix / made.kernel
        if not source.is_file():
            raise MissingInput(f"{source} is gone; extract it again with `warpsmith repo workspace`.")
        if target.is_file() and files.file_sha256(target) not in (made.synced_sha256, files.file_sha256(source)):
            raise Misuse(
                f"{target} is not what the workspace was taken from or brought last; merge the two by hand, in"
                f" {source}, then copy that over it."
            )
        content = source.read_bytes()
        target.write_bytes(content)
        synced = made.model_copy(update={"synced_sha256": hashlib.sha256(content).hexdigest()})
        write_model(campaign.folder / store.WORKSPACE, synced)
    return target


def _extract(campaign: RepoCampaign, git: Repository, root: Path, kernel: str, best: str) -> Workspace:
    contract, sources = campaign.manifest.contract, PythonSources(root, git.listing(best))
    package, outside = sources.needs(kernel)
    start = PurePosixPath(sources.root_of(kernel))
    top = start / _below(start, kernel).parts[0]
    taken = {f"{SRC}/{_below(start, path)}": path for path in package}
    commands = {}
    for folder, text in ((TESTS, contract.test), (BENCH, contract.benchmark)):
        named = _named(root, text)
        for path in [*named, *sources.beside(named)]:
            needed, more = sources.needs(path) if path.endswith(".py") else ([path], set())
            outside |= more
            for each in needed:
                own = each in package or (PurePosixPath(each).is_relative_to(top) and each not in named)
                taken[f"{SRC}/{_below(start, each)}" if own else f"{folder}/{each}"] = each
        commands[folder] = _moved(text, named, folder)
    for place, path in taken.items():
        target = campaign.folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / path, target)
    _packages(campaign.folder / SRC)
    # Else pytest takes the project's own configuration, and with it the kernel of the checkout.
    files.write_file(campaign.folder / "pytest.ini", f"[pytest]\npythonpath = {SRC} {TESTS} {BENCH}\n")
    content = git.contents(best, kernel)
    sha256 = hashlib.sha256(content).hexdigest()
    return Workspace(
        campaign=campaign.name,
        kernel=kernel,
        copy_path=f"{SRC}/{_below(start, kernel)}",
        upstream=best,
        upstream_sha256=sha256,
        synced_sha256=sha256,
        files=taken,
        external=tuple(sorted(outside)),
        test=commands[TESTS],
        benchmark=commands[BENCH],
        problem="",
        created=this_minute(),
    )


def _below(start: PurePosixPath, path: str) -> PurePosixPath:
    """A path from where the kernel's imports start; as it is where it lies elsewhere."""
    found = PurePosixPath(path)
    return found.relative_to(start) if found.is_relative_to(start) else found


def _named(root: Path, text: str) -> list[str]:
    """The repository's files that a command names, pytest's `file.py::test` among them."""
    words = [word.partition("::")[0] for word in shlex.split(text)]
    paths = [str(PurePosixPath(word)) for word in words]
    return [path for path in dict.fromkeys(paths) if not path.startswith(("/", "..")) and (root / path).is_file()]


def _moved(text: str, named: list[str], folder: str) -> str:
    """The command as it is run in the workspace."""
    for path in named:
        text = text.replace(path, f"{folder}/{path}")
    ours = f"PYTHONPATH={SRC}:{TESTS}:{BENCH}"
    if "PYTHONPATH=" not in text:
        return f"export {ours}; {text}"
    return re.sub(r"\bPYTHONPATH=(\S+)", lambda found: ":".join((ours, *_elsewhere(found[1]))), text)


def _elsewhere(paths: str) -> list[str]:
    """The entries of a search path that lie outside of the repository."""
    return [path for path in paths.split(":") if path.startswith(("/", "$"))]


def _packages(src: Path) -> None:
    """Empty `__init__.py` files where the package's own are not needed."""
    for folder in {path.parent for path in src.rglob("*.py")}:
        while folder != src:
            (folder / "__init__.py").touch()
            folder = folder.parent
