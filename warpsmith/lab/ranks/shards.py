"""Shards: which part of an operator's tensors each rank has, and the whole tensor from the parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.core.definition import Definition, TensorSpec, Workload
from warpsmith.errors import Misuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch


def change_ranks(definition: Definition, ranks: int) -> Definition:
    """Return the definition for another number of ranks. A fixed axis that the ranks share out, and that has one
    part for each, becomes as long as there are ranks.

    Raises:
        Misuse: that many ranks cannot share out another axis evenly, or there is only one.
    """
    specs = (*definition.tensor_inputs.values(), *definition.outputs.values())
    shared = {spec.shard_axis for spec in specs}
    axes = {
        name: ranks if name in shared and size == definition.ranks else size
        for name, size in definition.axes.items()
    }
    try:
        if ranks < 2:
            raise ValueError("ranks are at least 2")
        return Definition.model_validate(definition.model_dump() | {"ranks": ranks, "axes": axes})
    except ValueError as error:
        reason = str(error).partition("Value error, ")[2].partition(" [type=")[0] or str(error)
        raise Misuse(f"{definition.name} cannot run on {ranks} ranks: {reason}.") from error


def localize_definition(definition: Definition, workload: Workload) -> Definition:
    """Return the definition of one rank's call at a workload: every shape in numbers, sharded axes shortened."""

    def localize(spec: TensorSpec) -> TensorSpec:
        shape = list(definition.shape(spec, workload))
        if spec.shard_axis is not None:
            shape[spec.shape.index(spec.shard_axis)] //= definition.ranks
        return spec.model_copy(update={"shape": tuple(shape)})

    inputs = {
        name: localize(spec) if isinstance(spec, TensorSpec) else spec for name, spec in definition.inputs.items()
    }
    outputs = {name: localize(spec) for name, spec in definition.outputs.items()}
    return definition.model_copy(update={"inputs": inputs, "outputs": outputs})


def take_shard(spec: TensorSpec, tensor: torch.Tensor, rank: int, ranks: int) -> torch.Tensor:
    """Return a view of what one of the ranks has of a tensor: its part, or all of it."""
    if spec.shard_axis is None:
        return tensor
    return tensor.chunk(ranks, spec.shape.index(spec.shard_axis))[rank]


def join_outputs(
    definition: Definition, parts: Sequence[Mapping[str, torch.Tensor]]
) -> list[dict[str, torch.Tensor]]:
    """Return the whole outputs as each rank has them, from the ranks' outputs in order of the ranks.

    A sharded output is put together from all ranks. If every output is sharded, all ranks have the same, and one
    is returned.
    """
    import torch

    whole = {
        name: torch.cat([part[name] for part in parts], spec.shape.index(spec.shard_axis))
        for name, spec in definition.outputs.items()
        if spec.shard_axis is not None
    }
    if len(whole) == len(definition.outputs):
        return [whole]
    return [{name: whole.get(name, part[name]) for name in definition.outputs} for part in parts]


def redraw_rank(
    definition: Definition, inputs: Mapping[str, torch.Tensor], other: Mapping[str, torch.Tensor], rank: int
) -> dict[str, torch.Tensor]:
    """Return inputs in which one rank's parts are those of another draw; all other ranks see nothing new."""
    changed = {name: tensor.clone() for name, tensor in inputs.items()}
    for name, spec in definition.tensor_inputs.items():
        if spec.shard_axis is not None:
            part = take_shard(spec, changed[name], rank, definition.ranks)
            part.copy_(take_shard(spec, other[name], rank, definition.ranks))
    return changed
