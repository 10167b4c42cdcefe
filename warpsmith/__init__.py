"""Warpsmith: the agent proposes, the lab decides.

This module is the public interface: user files import from here alone, and every other module may move.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # Stands in for the name in `typing`, so that hooks need not import that module.
if TYPE_CHECKING:
    from warpsmith.core.definition import Definition as Definition
    from warpsmith.core.definition import ScalarSpec as ScalarSpec
    from warpsmith.core.definition import TensorSpec as TensorSpec
    from warpsmith.core.definition import Tolerance as Tolerance
    from warpsmith.core.definition import Workload as Workload
    from warpsmith.interchange.sibling import load_sibling as load_sibling
    from warpsmith.lab.operator.peers import Peer as Peer
    from warpsmith.program.operators.kernel_override import disable as disable
    from warpsmith.program.operators.kernel_override import enable as enable
    from warpsmith.use.operator import best as best

_MODULES = {
    "Definition": "warpsmith.core.definition",
    "Peer": "warpsmith.lab.operator.peers",
    "ScalarSpec": "warpsmith.core.definition",
    "TensorSpec": "warpsmith.core.definition",
    "Tolerance": "warpsmith.core.definition",
    "Workload": "warpsmith.core.definition",
    "best": "warpsmith.use.operator",
    "disable": "warpsmith.program.operators.kernel_override",
    "enable": "warpsmith.program.operators.kernel_override",
    "load_sibling": "warpsmith.interchange.sibling",
}

__all__ = [
    "Definition",
    "Peer",
    "ScalarSpec",
    "TensorSpec",
    "Tolerance",
    "Workload",
    "best",
    "disable",
    "enable",
    "load_sibling",
]


def __getattr__(name: str) -> object:
    """Import a public name at its first use: `best` needs PyTorch, and the command must run without it."""
    if name not in _MODULES:
        raise AttributeError(f"module `warpsmith` has no attribute `{name}`")
    import importlib

    return getattr(importlib.import_module(_MODULES[name]), name)
