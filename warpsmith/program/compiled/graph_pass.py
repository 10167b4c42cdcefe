"""Pass of Inductor's own over post-grad graphs, beside the passes that the program has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.fx import Graph

PASS_OPTION = "post_grad_custom_post_pass"
"""Inductor's option that holds the pass."""


def joined_pass(change: Callable[[Graph], None], identity: Callable[[], Any]) -> Any:  # noqa: ANN401 - CustomGraphPass
    """Return a pass that runs the program's own passes first, and then changes the graph.

    Args:
        change: called with each post-grad graph.
        identity: what the change depends on, for the keys of Inductor's caches; None keeps code out of them.
    """
    import torch._inductor.config as options
    from torch._inductor.custom_graph_pass import CustomGraphPass

    present: Any = getattr(options, PASS_OPTION)
    others = list(present) if isinstance(present, list | tuple) else [present] if present is not None else []

    class JoinedPass(CustomGraphPass):
        def __call__(self, graph: Graph) -> None:
            for other in others:
                other(graph)
            change(graph)

        def uuid(self) -> Any:  # noqa: ANN401 - as in the class
            identities = [*(other.uuid() if hasattr(other, "uuid") else None for other in others), identity()]
            return None if None in identities else repr(identities)

    return JoinedPass()
