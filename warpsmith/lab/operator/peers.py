"""Peers: other implementations of an operator, with the facts that a race needs for a fair comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpsmith.errors import BadDefinition, Misuse
from warpsmith.lab.operator.definition_file import DefinitionFile

if TYPE_CHECKING:
    import torch

Canonical = Callable[[dict[str, Any], "dict[str, torch.Tensor]"], "dict[str, torch.Tensor]"]
"""Function `canonical(inputs, outputs)`, both by name, that returns the outputs with free choices of the
operator put into the reference's form; a wrong output stays wrong. The grader calls it outside of timed calls."""


@dataclass(frozen=True)
class Peer:
    """One peer; `peers` of a definition may hold plain functions for peers that need none of these fields."""

    run: Callable[..., Any]
    """Implementation with the reference's signature; it returns its results."""
    consumes: tuple[str, ...] = ()
    """Inputs that it writes over, as its users allow. A race renews them before each call, outside of the timing;
    only a race can do that."""
    canonical: Canonical | None = None
    """Function that makes its outputs comparable if several results are right; None: they are compared as they
    are."""
    differs: str = ""
    """Difference from the operator, for readers of the times."""

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401 - whatever the operator takes and returns
        """Call the implementation."""
        return self.run(*arguments)


def get_peer(file: DefinitionFile, name: str) -> Peer:
    """Return a side as a peer: the definition's own, or one with default fields.

    Raises:
        BadDefinition: the peer consumes something that is not a tensor input of the definition.
    """
    function = file.peers.get(name, _no_peer)
    peer = function if isinstance(function, Peer) else Peer(function)
    unknown = sorted(set(peer.consumes) - set(file.definition.tensor_inputs))
    if unknown:
        raise BadDefinition(
            f"{file.path}: the peer {name} consumes {', '.join(unknown)}, which is not among the definition's"
            " tensor inputs."
        )
    return peer


def refuse_consuming_peers(file: DefinitionFile, names: Iterable[str]) -> None:
    """Refuse peers that write over inputs, since all sides of the gate share them.

    Raises:
        Misuse: a peer writes over inputs.
    """
    for name in names:
        if consumed := get_peer(file, name).consumes:
            race_command = f"`warpsmith race {file.definition.name} --peer {name}`"
            raise Misuse(
                f"The peer {name} writes over {', '.join(consumed)}; leave it out here and use {race_command}."
            )


def _no_peer(*_: object) -> None:
    """Stand in for a side that is none of the definition's peers."""
