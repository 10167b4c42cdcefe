"""Prefixes of shell commands: programs such as `sudo` or `uv run` that start the command behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from warpsmith.hooks.shell_syntax import UNKNOWN, SimpleCommand

WRAPPERS = {
    "sudo": "ughpCTRDU", "doas": "uC", "env": "uCS", "nice": "n", "timeout": "ks", "nohup": "", "time": "fo",
    "command": "", "builtin": "", "exec": "a", "setsid": "", "stdbuf": "ioe", "ionice": "cnpPu", "busybox": "",
    "xargs": "InPLdEas", "taskset": "", "chrt": "", "numactl": "NmCip", "flock": "wE", "srun": "nNpGtcJw",
    "unbuffer": "", "strace": "eop", "watch": "n", "coproc": "",
}  # fmt: skip
"""Programs that start the command behind them, and their short options that take a value."""

RUNNERS = {
    "uv": "p",
    "poetry": "",
    "pipenv": "",
    "pdm": "p",
    "hatch": "",
    "pixi": "e",
    "conda": "np",
    "mamba": "np",
}
"""Programs that do so as `uv run`."""

LONG_OPTIONS = {
    "--user", "--group", "--kill-after", "--signal", "--chdir", "--unset", "--adjustment", "--max-args",
    "--max-procs", "--with", "--python", "--project", "--directory", "--extra", "--name", "--prefix",
}  # fmt: skip
"""Long options of them that take a value, if it does not follow after `=`."""

WITH_OPERAND = {"timeout", "taskset", "chrt", "flock"}
"""Wrappers with one operand before the command."""


def program_name(words: Sequence[str]) -> str:
    """Return the name of the program that a command starts, without its folder."""
    return words[0].rpartition("/")[2] if words else ""


def bare_command(simple: SimpleCommand) -> SimpleCommand:
    """Remove programs such as `sudo` from the front; the arguments that `xargs` adds are unknown."""
    words = simple.words
    while words and ((name := program_name(words)) in WRAPPERS or (name in RUNNERS and words[1:2] == ("run",))):
        inserted = ""
        words = words[1 if name in WRAPPERS else 2 :]
        values = WRAPPERS.get(name, RUNNERS.get(name, ""))
        while words and (words[0].startswith("-") or (name == "env" and "=" in words[0])):
            option, value = words[0], (*words, "")[1]
            if name == "xargs" and option.startswith("-I"):
                inserted = option[2:] or value
            takes_value = option in LONG_OPTIONS or (len(option) == 2 and option[1:] in values)
            words = words[2 if takes_value else 1 :]
        if name in WITH_OPERAND:
            words = words[1:]
        if inserted:
            words = tuple(word.replace(inserted, UNKNOWN) for word in words)
        elif name == "xargs":
            words = (*words, UNKNOWN)
    return replace(simple, words=words, outputs=())
