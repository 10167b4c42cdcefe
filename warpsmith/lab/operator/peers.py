"""Peers: other implementations of an operator, with what a race must know to compare them honestly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from warpsmith.errors import BadDefinition, Misuse
from warpsmith.lab.operator.definition_file import DefinitionFile

if TYPE_CHECKING:
    import torch

Canonical = Callable[[dict[str, Any], "dict[str, torch.Tensor]"], "dict[str, torch.Tensor]"]
"""`canonical(inputs, outputs)`, both by name: the outputs with what the operator leaves open put in the
reference's form; what is wrong stays wrong. The grader calls it, never in a timed call."""


@dataclass(frozen=True)
class Peer:
    """One peer; a definition's `peers` may hold plain functions in place of those that need nothing of this."""

    run: Callable[..., Any]
    """The implementation, with the reference's signature; it returns its results."""
    consumes: tuple[str, ...] = ()
    """Inputs that it writes over, as its users let it: they are fresh before each of its calls, the copy is in no
    time, and they may change. Only a race can do that."""
    canonical: Canonical | None = None
    """How its outputs are compared where more than one result is right; None: as they are."""
    differs: str = ""
    """What it does otherwise than the operator, for whoever reads the times."""

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401 - whatever the operator takes and returns
        """Call the implementation."""
        return self.run(*arguments)


def get_peer(file: DefinitionFile, name: str) -> Peer:
    """A side as a peer: the definition's, or one that needs nothing.

    Raises:
        BadDefinition: it consumes what is no tensor of the definition.
    """
    found = file.peers.get(name, _no_peer)
    peer = found if isinstance(found, Peer) else Peer(found)
    unknown = sorted(set(peer.consumes) - set(file.definition.tensor_inputs))
    if unknown:
        raise BadDefinition(f"{file.path}: the peer {name} consumes {', '.join(unknown)}, no tensor input of it.")
    return peer


def refuse_consuming_peers(file: DefinitionFile, names: Iterable[str]) -> None:
    """All sides of the gate share inputs; raises Misuse where a peer writes over some."""
    for name in names:
        if consumed := get_peer(file, name).consumes:
            raced = f"`warpsmith race {file.definition.name} --peer {name}`"
            raise Misuse(f"The peer {name} writes over {', '.join(consumed)}: leave it out, {raced} has it.")


def _no_peer(*_: object) -> None:
    """Stands for a side that is none of the definition's peers."""
