"""Traced modules of FlyDSL: types of the kernels' arguments, and LDS that launches ask for."""

from __future__ import annotations

import re

_KERNEL = re.compile(r"^ *gpu\.func @(\w+)\((.*)\) kernel\b", re.MULTILINE)
_ARGUMENT = re.compile(r"%arg\d+: ")
_TENSOR = re.compile(r"!fly\.memref<(\w+), \w+, (.*?)(?:, align<\d+>)?>$")
_CONSTANT = re.compile(r"(%\w+) = arith\.constant (\d+) : i32")
_LAUNCH = re.compile(r"gpu\.launch_func .*?@kernels::@(\w+) .*?dynamic_shared_memory_size (%\w+)")


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


def _split_arguments(arguments: str) -> list[str]:
    """Split a kernel's arguments, whose types hold commas."""
    return [word.strip().removesuffix(",") for word in _ARGUMENT.split(arguments)[1:]]
