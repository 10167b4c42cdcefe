"""AMD's assembly as compilers print it: a text for each kernel, its registers, scratch memory and arguments."""

from __future__ import annotations

import re
from math import prod
from pathlib import PurePosixPath
from typing import NamedTuple

_FILE = re.compile(r'^\t\.file\t(\d+) "([^"]*)"(?: "([^"]*)")?', re.MULTILINE)
_LOCATION = re.compile(r"^(\t\.loc\t(\d+) (\d+) (\d+)[^;\n]*)$", re.MULTILINE)
_LABEL = re.compile(r"^([A-Za-z_][\w.$]*):$", re.MULTILINE)
_ENTRY = re.compile(r"^  - (?=\.)", re.MULTILINE)
_NAME = re.compile(r"^ +(?:- )?\.name: +(\S+)$", re.MULTILINE)
_BLOCK = re.compile(r"\.reqd_workgroup_size:\n((?: +- \d+\n)+)")
_GLOBAL = re.compile(r"^\t\.(?:globl|weak)\t(\S+)", re.MULTILINE)
_DEBUG = "\t.section\t.debug_"
_PARAMETER = re.compile(r"\.size: +(\d+)\n +\.value_kind: +(\w+)")
_FIGURE = re.compile(r"^ +(?:- )?\.(\w+): +(\d+)$", re.MULTILINE)


class KernelText(NamedTuple):
    """Assembly of one kernel."""

    symbol: str
    """Its symbol: the function's name, in FlyDSL with a number."""
    text: str
    """Its instructions and its metadata; each line of a source file is named as `; file:line:column`."""
    threads: int | None
    """Threads of a block, if the launch fixes them."""


class RegisterUse(NamedTuple):
    """Registers and scratch memory of a kernel, by the metadata at the end of its assembly."""

    vector: int
    """Vector registers (VGPRs) of a lane, accumulators included."""
    accumulator: int
    """Accumulators (AGPRs) among them."""
    scalar: int
    """Scalar registers (SGPRs) of a wave."""
    vector_spills: int
    """Vector registers that did not fit."""
    scalar_spills: int
    """Scalar registers that did not fit."""
    scratch_bytes: int
    """Scratch memory of a lane, in bytes."""
    lds_bytes: int
    """LDS of a block that the kernel declares, in bytes; a launch may ask for more."""


def split_assembly(text: str) -> list[KernelText]:
    """Split an assembly into its kernels, in the order of the text, with comments that a compiler leaves out."""
    text = _LABEL.sub(r"\1: ; @\1", _name_locations(text))
    code, metadata = text.split("\t.amdgpu_metadata\n", 1)
    entries = {_NAME.findall(entry)[-1]: entry for entry in _ENTRY.split(metadata)[1:]}
    starts = sorted((match.start(), match[1]) for match in _GLOBAL.finditer(code) if match[1] in entries)
    ends = [start for start, _ in starts[1:]] + [len(code)]
    kernels = []
    for (start, symbol), end in zip(starts, ends, strict=True):
        entry = f"  - {entries[symbol].split('amdhsa.target:')[0]}"
        instructions = code[start:end].partition(_DEBUG)[0]
        own = f"{instructions}\t.amdgpu_metadata\n---\namdhsa.kernels:\n{entry}...\n\t.end_amdgpu_metadata\n"
        block = _BLOCK.search(entry)
        threads = prod(int(number) for number in re.findall(r"\d+", block[1])) if block else None
        kernels.append(KernelText(symbol, own, threads))
    return kernels


def read_register_use(text: str) -> RegisterUse:
    """Read registers, spills and scratch memory from the metadata of an assembly with one kernel."""
    figures = {name: int(value) for name, value in _FIGURE.findall(text)}
    return RegisterUse(
        vector=figures["vgpr_count"],
        accumulator=figures["agpr_count"],
        scalar=figures["sgpr_count"],
        vector_spills=figures["vgpr_spill_count"],
        scalar_spills=figures["sgpr_spill_count"],
        scratch_bytes=figures["private_segment_fixed_size"],
        lds_bytes=figures["group_segment_fixed_size"],
    )


def argument_sizes(text: str) -> list[int]:
    """Return the bytes of each argument of an assembly's one kernel, without those that the launch adds."""
    return [int(size) for size, kind in _PARAMETER.findall(text) if not kind.startswith("hidden_")]


def describe_registers(use: RegisterUse) -> str:
    """Describe the registers in one line: `100 VGPRs (16 of them AGPRs), 26 SGPRs, spilled 0 and 0`."""
    vector = f"{use.vector} VGPRs ({use.accumulator} of them AGPRs)"
    return f"{vector}, {use.scalar} SGPRs, spilled {use.vector_spills} and {use.scalar_spills}"


def _name_locations(text: str) -> str:
    """Append the file to each `.loc`, which names it by a number alone."""
    names = {number: str(PurePosixPath(folder) / file) for number, folder, file in _FILE.findall(text)}
    return _LOCATION.sub(lambda match: f"{match[1]} ; {names.get(match[2], '?')}:{match[3]}:{match[4]}", text)
