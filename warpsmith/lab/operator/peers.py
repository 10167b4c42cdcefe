"""Peers: other implementations of an operator, with the facts that a race needs for a fair comparison."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
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
    prepare: Callable[..., Any] | None = None
    """Function of some weights, which its parameters name, that returns a tuple in a form of the peer's own, as
    its users make it once. `run` then takes the other inputs in order, followed by that tuple. A race calls it
    for every draw of the weights, outside of timed calls; only a race can do that."""

    @property
    def prepared_inputs(self) -> tuple[str, ...]:
        """Return the names of the weights that are prepared."""
        return () if self.prepare is None else tuple(inspect.signature(self.prepare).parameters)

    def __call__(self, *arguments: Any) -> Any:  # noqa: ANN401 - whatever the operator takes and returns
        """Call the implementation."""
        return self.run(*arguments)


@dataclass
class PreparedWeights:
    """Weights of one workload in a peer's own form, slot by slot.

    A slot's tensors keep their addresses, since captured calls read them there.
    """

    peer: Peer
    """Peer with a `prepare`."""
    names: Sequence[str]
    """Names of the operator's inputs, in order."""
    _slots: dict[int, tuple[Any, ...]] = field(default_factory=dict)

    def arguments_of_run(self, slot: int, inputs: Sequence[Any]) -> list[Any]:
        """Prepare a slot's weights anew; return the arguments of the peer's `run`."""
        assert self.peer.prepare is not None
        values = dict(zip(self.names, inputs, strict=True))
        fresh = tuple(self.peer.prepare(*(values.pop(name) for name in self.peer.prepared_inputs)))
        lasting = self._slots.setdefault(slot, fresh)
        for old, new in zip(lasting, fresh, strict=True):
            if old is not new:
                old.copy_(new)
        return [*values.values(), *lasting]


def get_peer(file: DefinitionFile, name: str) -> Peer:
    """Return a side as a peer: the definition's own, or one with default fields.

    Raises:
        BadDefinition: the peer consumes something that is not a tensor input of the definition, or prepares
            something that is not a weight.
    """
    function = file.peers.get(name, _no_peer)
    peer = function if isinstance(function, Peer) else Peer(function)
    unknown = sorted(set(peer.consumes) - set(file.definition.tensor_inputs))
    if unknown:
        raise BadDefinition(
            f"{file.path}: the peer {name} consumes {', '.join(unknown)}, which is not among the definition's"
            " tensor inputs."
        )
    if peer.prepare is not None:
        weights = {name for name, spec in file.definition.tensor_inputs.items() if spec.role == "weight"}
        if not set(peer.prepared_inputs) <= weights:
            raise BadDefinition(
                f"{file.path}: the peer {name} prepares {', '.join(peer.prepared_inputs)}; only inputs with"
                f' `role="weight"` may be prepared: {", ".join(sorted(weights)) or "there are none"}.'
            )
    return peer


def refuse_race_peers(file: DefinitionFile, names: Iterable[str]) -> None:
    """Refuse peers that only a race can hold: all sides of the gate share their inputs, as they were drawn.

    Raises:
        Misuse: a peer writes over inputs, or prepares weights ahead of its calls.
    """
    for name in names:
        peer = get_peer(file, name)
        if peer.consumes or peer.prepare is not None:
            does = "writes over" if peer.consumes else "prepares"
            inputs = ", ".join(peer.consumes or peer.prepared_inputs)
            race_command = f"`warpsmith race {file.definition.name} --peer {name}`"
            raise Misuse(f"The peer {name} {does} {inputs}; leave it out here and use {race_command}.")


def with_contiguous_results(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the reference so that its results are contiguous, as those of versions must be.

    The reference may return a view, and then the copy counts in its time.
    """
    import torch

    def run(*arguments: Any) -> Any:  # noqa: ANN401 - whatever the reference takes and returns
        result = reference(*arguments)
        if isinstance(result, tuple | list):
            return [value.contiguous() if isinstance(value, torch.Tensor) else value for value in result]
        return result.contiguous() if isinstance(result, torch.Tensor) else result

    return run


def null_kernel(device: str) -> Callable[..., tuple[()]]:
    """Return a function that launches one empty kernel, in a graph or by itself; on a CPU it does nothing."""
    import torch

    spin: Callable[[int], None] = torch.cuda._sleep

    def run(*_: Any) -> tuple[()]:  # noqa: ANN401 - an operator's inputs
        if device != "cpu":
            spin(0)  # a kernel of one thread that waits for no cycle
        return ()

    return run


def compile_afresh(reference: Callable[..., Any]) -> Callable[..., Any]:
    """Compile with torch.compile after a reset, since guards of other workloads would slow the calls."""
    import torch

    torch._dynamo.reset()
    compiled: Callable[..., Any] = torch.compile(reference, dynamic=False)
    return compiled


def _no_peer(*_: object) -> None:
    """Stand in for a side that is none of the definition's peers."""
