"""Shell commands: what they plainly write, and if they drive a campaign or open a trial."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

from warpsmith.hooks import git_writes, scripts
from warpsmith.hooks.command_prefixes import bare_command, program_name
from warpsmith.hooks.event import Write
from warpsmith.hooks.shell_syntax import UNKNOWN, SimpleCommand, parse_commands

CAMPAIGN_COMMANDS = {"start", "resume", "select", "plan", "evaluate", "learn"}
"""Subcommands of warpsmith with which a session drives a campaign."""

REMOVERS = {
    "rm", "rmdir", "unlink", "shred", "srm", "trash", "trash-put", "chmod", "chown", "truncate", "touch", "tee",
    "sponge", "patch", "dos2unix", "unix2dos",
}  # fmt: skip
"""Programs that write to all of their arguments, and to what is below a folder among them."""

COPIERS = {"cp", "install", "ln", "rsync", "mv", "scp"}
"""Programs that write to their last argument, or into it if it is a folder."""

PACKERS = {"gzip", "gunzip", "xz", "unxz", "bzip2", "bunzip2"}
"""Programs that replace their files by packed or unpacked ones."""

IN_PLACE = ("sed", "perl", "ruby", "awk", "gawk", "yq", "clang-format")
"""Programs that write to all of their files with an option such as `-i`."""

FORMATTERS = {"black": (), "isort": (), "ruff": ("format", "--fix"), "prettier": ("--write", "-w")}
"""Programs that format their files in place; all but the first two only with one of these words."""

_COMPILERS = ("nvcc", "hipcc", "gcc", "g++", "clang", "clang++", "cc", "c++")
OUTPUT_OPTIONS = {
    "curl": ("-o", "--output"),
    "wget": ("-O", "--output-document", "-P", "--directory-prefix"),
    "sort": ("-o", "--output"),
    "tar": ("-C", "--directory"),
    "unzip": ("-d",),
    "ncu": ("-o", "--export", "--log-file"),
    "nsys": ("-o", "--output"),
    **dict.fromkeys(_COMPILERS, ("-o",)),
}
"""Options that name what a program writes to."""

_CLUSTERS = {"curl", "sort", "unzip"}
"""Those of them whose short options stand together, as `-so FILE`."""

SHELLS = {"bash", "sh", "dash", "zsh", "ksh"}
LISTERS = {"ls", "echo", "printf", "grep", "rg", "fd", "find", "git", "dirname", "realpath", "readlink"}
"""Programs whose output can name the files that `xargs` or a loop passes on."""

_TEXT_OPTION = re.compile(r"-[a-z]*c")
"""Option of shells that is followed by the text to run."""
_SCRIPT_BYTES = 100_000
"""Longest file of a shell script that is read."""
_LANGUAGES = re.compile(r"(python|perl|ruby|node|php)[\d.]*")
_MOST = 500
"""Most files that a pattern is expanded to."""


def drives_campaign(command: str) -> bool:
    """Return True if the command takes a step of a campaign."""
    return any(words[1:2] and words[1] in CAMPAIGN_COMMANDS for words in _warpsmith_commands(command))


def opens_trial(command: str) -> bool:
    """Return True if the command opens a trial of a whole program."""
    return any(words[1:3] == ("program", "apply") for words in _warpsmith_commands(command))


def written_files(command: str, folder: Path, listed: Sequence[Write] = ()) -> list[Write]:
    """Return what a command plainly writes if it runs in `folder`; `listed` stands for its unknown arguments.

    If it does not parse and has a word that writes, that is every path in it.
    """
    commands = parse_commands(command, folder)
    if commands is None:
        return _doubtful_writes(command, folder)
    listed = [*listed, *(write for simple in commands for write in _listed_files(simple))]
    writes = [write for simple in commands for write in _writes(simple, listed)]
    return writes + [write for simple in commands for write in _file_writes(simple)]


def _warpsmith_commands(command: str) -> Iterator[tuple[str, ...]]:
    commands = parse_commands(command, Path())
    if commands is None:
        commands = [SimpleCommand(tuple(part.split()), Path()) for part in re.split(r"[;&|\n]+", command)]
    for simple in commands:
        words = bare_command(simple).words
        if words and program_name(words) == "warpsmith":
            yield words


def _doubtful_writes(command: str, folder: Path) -> list[Write]:
    words = [word for word in re.split(r"[\s'\"`;&|<>()$={}]+", command) if word]
    programs = REMOVERS | COPIERS | set(IN_PLACE) | {"find", "git", "dd", "xargs"}
    if ">" in command or any(word.rpartition("/")[2] in programs for word in words):
        return [Write(_path(word, folder)) for word in words]
    return []


def _file_writes(simple: SimpleCommand) -> Iterator[Write]:
    """Yield what the shell script writes whose file a command runs.

    Scripts are long: only what they name counts, and scripts that they run are not read.
    """
    simple = bare_command(simple)
    name, operands = program_name(simple.words), [word for word in simple.words[1:] if not word.startswith("-")]
    if name in SHELLS or name in ("source", "."):
        operand = "" if any(_TEXT_OPTION.fullmatch(word) for word in simple.words) else (*operands, "")[0]
    else:
        operand = simple.words[0] if simple.words and name.endswith(".sh") else ""
    path = _path(operand, simple.folder)
    with suppress(OSError, UnicodeDecodeError):
        if operand and path.is_file() and path.stat().st_size <= _SCRIPT_BYTES:
            for inner in parse_commands(path.read_text(), simple.folder) or ():
                yield from _writes(inner, ())


def _writes(simple: SimpleCommand, listed: Sequence[Write]) -> Iterator[Write]:
    """Yield what one simple command writes; `listed` stands for arguments that are not known."""
    for output in simple.outputs:
        if not output.startswith(UNKNOWN):
            yield Write(_path(output, simple.folder))
    simple = bare_command(simple)
    words, folder = simple.words, simple.folder
    name = program_name(words)
    if name in SHELLS or name == "eval":
        yield from written_files(_shell_code(simple), folder, listed)
    elif match := _LANGUAGES.fullmatch(name):
        yield from _script_writes(simple, match[1])
    if name == "find":
        yield from _find_writes(simple)
    elif name == "git":
        for path in git_writes.git_written_paths(words[1:], folder):
            yield from _resolve(path, folder, listed, deep=True)
    else:
        for word, deep in _written_arguments(name, words[1:], folder):
            yield from _resolve(word, folder, listed, deep=deep)


def _path(word: str, folder: Path) -> Path:
    path = Path(word.replace(UNKNOWN, "*"))
    with suppress(RuntimeError):  # `~name` of nobody
        path = path.expanduser()
    return folder / path


def _resolve(word: str, folder: Path, listed: Sequence[Write], *, deep: bool) -> Iterator[Write]:
    """Yield the files that a word names: a pattern is expanded, an unknown word is what the command lists."""
    if word.startswith(UNKNOWN):
        yield from listed
        word = word.lstrip(UNKNOWN).lstrip("/")
    if not word:
        return
    path = _path(word, folder)
    pattern = str(path)
    names = islice(glob.iglob(pattern), _MOST) if glob.has_magic(pattern) else ()  # noqa: PTH207, Path.glob can raise
    for match in [Path(name) for name in names] or [path]:
        yield Write(match, deep)


def _written_arguments(name: str, arguments: Sequence[str], folder: Path) -> Iterator[tuple[str, bool]]:
    """Yield the arguments that a program writes to, each with True if what is below it is written too."""
    operands = [word for word in arguments if not word.startswith("-")]
    if name in COPIERS:
        *sources, target = operands or [""]
        if chosen := _option_values(arguments, ("-t", "--target-directory")):
            sources, target = [word for word in operands if word not in chosen], chosen[0]
        if name == "rsync":
            yield target, any(word.startswith("--del") for word in arguments)
            yield from ((f"{target}/{Path(source).name}", False) for source in sources if not source.endswith("/"))
        elif _path(target, folder).is_dir():
            yield from ((f"{target}/{Path(source).name}", False) for source in sources)
        else:
            yield target, False
        if name == "mv":
            yield from ((source, True) for source in sources)
    elif name in REMOVERS:
        yield from ((word, True) for word in operands)
    elif name in PACKERS:
        if not any(re.match(r"-[a-z0-9]*[kclt]|--(keep|stdout|list|test)", word) for word in arguments):
            yield from ((word, True) for word in operands)
    elif name in FORMATTERS and _formats(name, arguments):
        # The settings of a project can exclude folders from a run over all of it.
        yield from ((word, True) for word in operands if word not in (".", "./"))
    elif name in IN_PLACE and any(re.match(r"-[pnlrEszyY0-9]*i|--in-place", word) for word in arguments):
        yield from ((word, False) for word in operands)
    elif name == "dd":
        yield from ((word[3:], False) for word in operands if word.startswith("of="))
    elif name in OUTPUT_OPTIONS and (name != "tar" or _extracts(arguments)):
        options = OUTPUT_OPTIONS[name]
        clusters = [word for word in arguments if re.fullmatch(rf"-[a-zA-Z]+{options[0][1:]}", word)]
        values = _option_values(arguments, [*options, *(clusters if name in _CLUSTERS else ())])
        yield from ((value, False) for value in values)


def _formats(name: str, arguments: Sequence[str]) -> bool:
    only_checks = {"--check", "--diff", "--check-only"}.intersection(arguments)
    return not only_checks and (not FORMATTERS[name] or bool(set(FORMATTERS[name]).intersection(arguments)))


def _extracts(arguments: Sequence[str]) -> bool:
    flags = [word for k, word in enumerate(arguments) if k == 0 or word.startswith("-")]
    return any(re.match(r"-?[a-zA-Z]*x|--extract|--get", word) for word in flags)


def _option_values(arguments: Sequence[str], options: Sequence[str]) -> list[str]:
    following = [value for option, value in pairwise(arguments) if option in options]
    joined = [word.partition("=") for word in arguments if "=" in word]
    return following + [value for option, _, value in joined if option in options]


def _shell_code(simple: SimpleCommand) -> str:
    """Return the text that a shell runs: after `-c`, after `eval`, or its here-document."""
    if program_name(simple.words) == "eval":
        return " ".join(simple.words[1:])
    for option, value in zip(simple.words[1:], simple.words[2:], strict=False):
        if _TEXT_OPTION.fullmatch(option):
            return value
    return simple.stdin


def _script_writes(simple: SimpleCommand, language: str) -> Iterator[Write]:
    """Yield what the script of a command writes: after `-c` or `-e`, or its here-document."""
    pairs = zip(simple.words[1:], simple.words[2:], strict=False)
    flag = re.compile(r"-p|-[a-zA-Z]*[ceEr]" if language == "node" else r"-[a-zA-Z]*[ceEr]")
    code = next((value for option, value in pairs if flag.fullmatch(option)), simple.stdin)
    if not code:
        return
    paths, folders, commands = scripts.script_writes(code, language, simple.words[1:])
    for path in (*paths, *folders):
        yield from _resolve(path, simple.folder, (), deep=path in folders)
    for command in commands:
        yield from written_files(command, simple.folder)


def _find_writes(simple: SimpleCommand) -> Iterator[Write]:
    """Yield what `find` removes, or hands to a program that writes."""
    words, searched = simple.words, list(_listed_files(simple))
    if "-delete" in words:
        yield from searched
    for k, word in enumerate(words):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            rest = words[k + 1 :]
            end = next((n for n, text in enumerate(rest) if text in (";", "+")), len(rest))
            inner = tuple(text.replace("{}", UNKNOWN) for text in rest[:end])
            yield from _writes(SimpleCommand(inner, simple.folder), searched)


def _listed_files(simple: SimpleCommand) -> Iterator[Write]:
    """Yield the files that the output of a command can name."""
    simple = bare_command(simple)
    name, arguments = program_name(simple.words), simple.words[1:]
    if name not in LISTERS or (name == "git" and arguments[:1] not in (("ls-files",), ("grep",))):
        return
    patterns: tuple[str, ...] = ()
    if name == "find":
        first = next((k for k, word in enumerate(arguments) if word[:1] in ("-", "(", "!")), len(arguments))
        operands, tests = list(arguments[:first]), arguments[first:]
        patterns = tuple(_find_patterns(tests))
    else:
        operands = [word for word in arguments if not word.startswith("-")]
        if name == "git":
            operands = operands[1:]
        if name == "rg" or arguments[:1] == ("grep",):
            operands = operands[1:]  # without the pattern
    if not operands and name != "echo":
        operands = ["."]
    for operand in operands:
        for write in _resolve(operand, simple.folder, (), deep=True):
            yield replace(write, names=patterns)


def _find_patterns(tests: Sequence[str]) -> Iterator[str]:
    """Yield the patterns of the names that `find` looks for; `!` stands before one that it leaves out."""
    for k, (test, pattern) in enumerate(pairwise(tests)):
        if test not in ("-name", "-iname", "-path", "-wholename"):
            continue
        if k and tests[k - 1] in ("!", "-not"):
            yield f"!{pattern}"
        elif "-prune" in tests[k + 2 : k + 4]:  # also after `-type d`
            yield f"!{pattern}"
            yield f"!{pattern}/*"
        else:
            yield pattern
