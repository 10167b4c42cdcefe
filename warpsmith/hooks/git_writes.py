"""Git commands: the paths whose content they replace, remove or take away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def git_written_paths(arguments: Sequence[str], folder: Path) -> list[str]:
    """Return the paths below which a git command can change files in the working tree.

    Switching branches is not among them: git itself refuses to lose a change by it.

    Args:
        arguments: words after `git`.
        folder: folder that it runs in.
    """
    words = list(arguments)
    while words and words[0].startswith("-"):
        option, *words = words
        if option in ("-C", "-c", "--git-dir", "--work-tree") and words:
            value, *words = words
            folder = folder / value if option == "-C" else folder
    if not words:
        return []
    name, rest = words[0], words[1:]
    top = next((str(path) for path in (folder, *folder.parents) if (path / ".git").exists()), str(folder))
    options = {word for word in rest if word.startswith("-") and word != "--"}
    rest = [f"{top}/{word[2:]}" if word.startswith(":/") else word for word in rest]
    paths = [str(folder / word) for word in _paths(rest)]
    if name == "checkout":
        return _checked_out(rest, options, folder, top)
    if name == "restore":
        return [] if options & {"--staged", "-S"} and not options & {"--worktree", "-W"} else paths
    if name == "rm":
        return [] if options & {"--cached", "-n", "--dry-run"} else paths
    if name == "mv":
        return paths
    if name == "clean":
        return [] if _is_dry_run(options) else paths or [str(folder)]
    if name == "reset":
        return [top] if options & {"--hard", "--merge", "--keep"} else []
    if name == "switch":
        return [top] if options & {"-f", "--force", "--discard-changes"} else []
    if name == "stash":
        return _stashed(rest, folder, top)
    return []


def _paths(words: Sequence[str]) -> list[str]:
    """Return the operands, without the values of options; after `--` every word is one."""
    if "--" in words:
        return list(words[words.index("--") + 1 :])
    return [
        word
        for k, word in enumerate(words)
        if not word.startswith("-") and (k == 0 or words[k - 1] not in ("-s", "--source", "-e", "--exclude", "-m"))
    ]


def _checked_out(words: Sequence[str], options: set[str], folder: Path, top: str) -> list[str]:
    if "--" in words:
        return [str(folder / word) for word in _paths(words)]
    if options & {"-b", "-B", "--orphan"}:
        return []
    if options & {"-f", "--force"}:
        return [top]
    return [str(folder / word) for word in _paths(words) if (folder / word).exists()]


def _stashed(words: Sequence[str], folder: Path, top: str) -> list[str]:
    """Return what a stash takes away from the working tree."""
    action = words[0] if words and not words[0].startswith("-") else "push"
    if action not in ("push", "save"):
        return []
    paths = _paths(words[1:] if words and words[0] == action else words) if action == "push" else []
    return [str(folder / path) for path in paths] or [top]


def _is_dry_run(options: set[str]) -> bool:
    short = "".join(option[1:] for option in options if not option.startswith("--"))
    return "--dry-run" in options or "n" in short
