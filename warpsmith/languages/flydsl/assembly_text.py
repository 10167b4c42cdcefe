"""AMD's assembly as FlyDSL's compiler prints it: a text for each kernel, with the comments that readers need."""

from __future__ import annotations

import re
from math import prod
from pathlib import PurePosixPath
from typing import NamedTuple

_FILE = re.compile(r'^\t\.file\t(\d+) "([^"]*)"(?: "([^"]*)")?', re.MULTILINE)
_LOCATION = re.compile(r"^(\t\.loc\t(\d+) (\d+) (\d+).*)$", re.MULTILINE)
_LABEL = re.compile(r"^([A-Za-z_][\w.$]*):$", re.MULTILINE)
_ENTRY = re.compile(r"^  - (?=\.)", re.MULTILINE)
_NAME = re.compile(r"^ +(?:- )?\.name: +(\S+)$", re.MULTILINE)
_BLOCK = re.compile(r"\.reqd_workgroup_size:\n((?: +- \d+\n)+)")

_KERNEL = re.compile(r"^ *gpu\.func @(\w+)\((.*)\) kernel\b", re.MULTILINE)
_ARGUMENT = re.compile(r"%arg\d+: ")
_TENSOR = re.compile(r"!fly\.memref<(\w+), \w+, (.*?)(?:, align<\d+>)?>$")
_CONSTANT = re.compile(r"(%\w+) = arith\.constant (\d+) : i32")
_LAUNCH = re.compile(r"gpu\.launch_func .*?@kernels::@(\w+) .*?dynamic_shared_memory_size (%\w+)")


class KernelText(NamedTuple):
    """Assembly of one kernel."""

    symbol: str
    """Its symbol: the function's name and a number."""
    text: str
    """Its instructions and its metadata; each line of a source file is named as `; file:line:column`."""
    threads: int | None
    """Threads of a block, if the launch fixes them."""


def split_assembly(text: str) -> list[KernelText]:
    """Split an assembly into its kernels, in the order of the text, and add the comments that LLVM leaves out."""
    text = _LABEL.sub(r"\1: ; @\1", _name_locations(text))
    code, metadata = text.split("\t.amdgpu_metadata\n", 1)
    entries = {_NAME.findall(entry)[-1]: entry for entry in _ENTRY.split(metadata)[1:]}
    starts = sorted((code.index(f"\t.globl\t{symbol}\n"), symbol) for symbol in entries)
    ends = [start for start, _ in starts[1:]] + [len(code)]
    kernels = []
    for (start, symbol), end in zip(starts, ends, strict=True):
        entry = f"  - {entries[symbol].split('amdhsa.target:')[0]}"
        own = f"{code[start:end]}\t.amdgpu_metadata\n---\namdhsa.kernels:\n{entry}...\n\t.end_amdgpu_metadata\n"
        block = _BLOCK.search(entry)
        threads = prod(int(number) for number in re.findall(r"\d+", block[1])) if block else None
        kernels.append(KernelText(symbol, own, threads))
    return kernels


def argument_types(module: str) -> dict[str, str]:
    """Return the types of each kernel's arguments in a traced module: `bf16 (?,?):(?,1), i32`."""
    return {
        symbol: ", ".join(_TENSOR.sub(r"\1 \2", word) for word in _split_arguments(arguments))
        for symbol, arguments in _KERNEL.findall(module)
    }


def launched_lds(module: str) -> dict[str, int]:
    """Return the bytes of LDS that launches of a traced module ask for, by kernel, beside what kernels declare.

    A launch whose size is computed is left out.
    """
    constants = {name: int(value) for name, value in _CONSTANT.findall(module)}
    sizes: dict[str, int] = {}
    for symbol, value in _LAUNCH.findall(module):
        if value in constants:
            sizes[symbol] = max(sizes.get(symbol, 0), constants[value])
    return sizes


def _name_locations(text: str) -> str:
    """Append the file to each `.loc`, which names it by a number alone."""
    names = {number: str(PurePosixPath(folder) / file) for number, folder, file in _FILE.findall(text)}
    return _LOCATION.sub(lambda match: f"{match[1]} ; {names.get(match[2], '?')}:{match[3]}:{match[4]}", text)


def _split_arguments(arguments: str) -> list[str]:
    """Split a kernel's arguments, whose types hold commas."""
    return [word.strip().removesuffix(",") for word in _ARGUMENT.split(arguments)[1:]]
