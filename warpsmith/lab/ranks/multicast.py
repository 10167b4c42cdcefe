"""NVLink multicast, which stays off: a program that uses it can put the GPUs of a host out of service."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import Final

from warpsmith.errors import MachineFailed, Misuse

MULTICAST_OFF: Final = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
}
"""Variables that keep NCCL, PyTorch's symmetric memory and NVSHMEM from it."""

_USES = re.compile(rf"{'|'.join(MULTICAST_OFF)}|NVLS|cuMulticast|multimem")


def require_multicast_off(environment: Mapping[str, str]) -> None:
    """Raise MachineFailed unless every variable that turns multicast off is set so."""
    wrong = [f"{name}={value}" for name, value in MULTICAST_OFF.items() if environment.get(name) != value]
    if wrong:
        raise MachineFailed(f"Ranks on GPUs run with NVLink multicast off only; set {', '.join(wrong)}.")


def refuse_multicast(name: str, source: str) -> None:
    """Raise Misuse for a version whose code names multicast, or the variables that turn it off; comments and
    docstrings may."""
    for line, word in _list_words(source):
        if match := _USES.search(word):
            raise Misuse(
                f"{name}, line {line} names `{match[0]}`: NVLink multicast stays off for ranks on GPUs; remove it"
                " from the version."
            )


def _list_words(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of the names and strings of a program; nothing if it is none, which its import says."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # a docstring is one of these
    for node in nodes:
        match node:
            case ast.Name():
                yield node.lineno, node.id
            case ast.Attribute():
                yield node.lineno, node.attr
            case ast.alias():
                yield node.lineno, node.name
            case ast.Constant(value=str(text)) if id(node) not in alone:
                yield node.lineno, text
