"""Best version over ranks: the function that each rank of a program calls with its own tensors."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from warpsmith.campaign.rounds.rank_race import read_rank_race
from warpsmith.campaign.rounds.rank_rounds import VERSION, RankCampaign, StoredRankRound
from warpsmith.core.definition import ScalarSpec, TensorSpec
from warpsmith.core.evaluation import REFERENCE
from warpsmith.errors import MachineLacks, Misuse
from warpsmith.lab.operator import source_module
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.ranks.shards import change_ranks, take_shard
from warpsmith.use import choice

if TYPE_CHECKING:
    import torch

    from warpsmith.project import Project

Function = Callable[..., Any]


def best_over_ranks(project: Project, file: DefinitionFile, device_name: str | None) -> tuple[str, Function]:
    """Return the best version for the ranks of this program, and its name; the reference, with a warning, where no
    version runs.

    The version is that of the last accepted round on the same target and number of ranks; not one that its final
    race found wrong.

    Args:
        project: project of the operator.
        file: definition of the operator.
        device_name: name of the GPU as its driver reports it; None for a processor.

    Raises:
        Misuse: the process group is not there yet, or this many ranks cannot share the tensors out.
    """
    import torch.distributed as dist

    op = file.definition.name
    if not dist.is_available() or not dist.is_initialized():
        raise Misuse(
            f"`{op}` is computed by several processes; call torch.distributed.init_process_group() on every rank"
            " before best()."
        )
    ranks = dist.get_world_size()
    if ranks != file.definition.ranks:
        change_ranks(file.definition, ranks)
    try:
        stored = _choose_round(project, file, device_name, ranks)
        module = source_module.import_source(f"warpsmith_{op}_over_ranks", stored.folder / VERSION)
        name, run = f"ranks/round {stored.number}", module.run
    except Exception as error:  # a program goes on with the reference, whatever is broken
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        warnings.warn(f"{op}: {reason}; its reference runs instead, on gathered tensors.", stacklevel=4)
        name, run = REFERENCE, _gathered_reference(file)
    return name, _bound(file, run)


def _choose_round(project: Project, file: DefinitionFile, device_name: str | None, ranks: int) -> StoredRankRound:
    """Choose the round whose version runs; raises MachineLacks if there is none."""
    target = choice.target_of_device(project, device_name)
    device = device_name or "the CPU"
    if target is None:
        raise MachineLacks(f"no version was accepted for {device}")
    campaign = RankCampaign(project, file.definition.name, target.id, ranks)
    for stored in reversed(campaign.accepted(file.sha256)):
        race = read_rank_race(campaign, stored)
        if race is None or race.correct:
            return stored
    raise MachineLacks(f"no version was accepted for {ranks} ranks of {device}")


def _bound(file: DefinitionFile, run: Function) -> Function:
    """Return a function of the definition's inputs, by position or name; omitted numbers have their values."""
    empty = inspect.Parameter.empty
    parameters = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=spec.value if isinstance(spec, ScalarSpec) else empty,
        )
        for name, spec in file.definition.inputs.items()
    ]
    signature = inspect.Signature(parameters)

    def function(*positional: Any, **by_keyword: Any) -> Any:  # noqa: ANN401 - tensors and numbers
        import torch

        bound = signature.bind(*positional, **by_keyword)
        bound.apply_defaults()
        values = tuple(bound.arguments.values())
        if torch.is_grad_enabled() and any(getattr(value, "requires_grad", False) for value in values):
            raise Misuse(
                f"`{file.definition.name}` over ranks has no gradients; call it under torch.no_grad(), or detach"
                " its inputs."
            )
        return run(*values)

    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _gathered_reference(file: DefinitionFile) -> Function:
    """Return the reference for one rank: it gathers what the ranks share out, and keeps its own part."""
    definition = file.definition

    def run(*values: Any) -> Any:  # noqa: ANN401 - tensors and numbers
        import torch
        import torch.distributed as dist

        specs = zip(definition.inputs.values(), values, strict=True)
        results = file.reference(*(_gather(spec, value) for spec, value in specs))
        outputs = results if isinstance(results, tuple) else (results,)
        parts = tuple(_own_parts(outputs, definition.outputs.values(), dist.get_rank(), dist.get_world_size()))
        return parts if not isinstance(results, torch.Tensor) else parts[0]

    return run


def _own_parts(outputs: Any, specs: Any, rank: int, ranks: int) -> Iterator[torch.Tensor]:  # noqa: ANN401
    for spec, output in zip(specs, outputs, strict=True):
        yield take_shard(spec, output, rank, ranks).contiguous()


def _gather(spec: TensorSpec | ScalarSpec, value: Any) -> Any:  # noqa: ANN401 - a tensor or a number
    """Return the whole tensor of an input that the ranks share out; anything else as it is."""
    import torch
    import torch.distributed as dist

    if not isinstance(spec, TensorSpec) or spec.shard_axis is None:
        return value
    own = value.contiguous()
    data = own.reshape(-1).view(torch.uint8)  # bytes: not every back end gathers every type
    parts = [torch.empty_like(data) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, data)
    whole = [part.view(own.dtype).reshape(own.shape) for part in parts]
    return torch.cat(whole, spec.shape.index(spec.shard_axis))
