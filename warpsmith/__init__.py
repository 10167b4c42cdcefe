"""Warpsmith: the agent proposes, the lab decides.

User files import from here alone; every other module is free to move.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # as in `typing`, which hooks need not import
if TYPE_CHECKING:
    from warpsmith.core.definition import Definition as Definition
    from warpsmith.core.definition import ScalarSpec as ScalarSpec
    from warpsmith.core.definition import TensorSpec as TensorSpec
    from warpsmith.core.definition import Tolerance as Tolerance
    from warpsmith.core.definition import Workload as Workload
    from warpsmith.interchange.sibling import beside as beside
    from warpsmith.lab.operator.peers import Peer as Peer
    from warpsmith.program.operators.kernel_override import enable as enable
    from warpsmith.use.operator import best as best

_HOMES = {
    "Definition": "warpsmith.core.definition",
    "Peer": "warpsmith.lab.operator.peers",
    "ScalarSpec": "warpsmith.core.definition",
    "TensorSpec": "warpsmith.core.definition",
    "Tolerance": "warpsmith.core.definition",
    "Workload": "warpsmith.core.definition",
    "beside": "warpsmith.interchange.sibling",
    "best": "warpsmith.use.operator",
    "enable": "warpsmith.program.operators.kernel_override",
}

__all__ = ["Definition", "Peer", "ScalarSpec", "TensorSpec", "Tolerance", "Workload", "beside", "best", "enable"]


def __getattr__(name: str) -> object:
    """Import a public name at its first use: `best` needs PyTorch, the command must answer without it."""
    if name not in _HOMES:
        raise AttributeError(f"module `warpsmith` has no attribute `{name}`")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
