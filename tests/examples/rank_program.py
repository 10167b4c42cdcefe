"""A rank of a version whose kernels are interpreted: files that all ranks map stand for symmetric memory."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch


def main(folder: Path, rank: int) -> None:
    """Make the calls of `calls.json`, and write the results of each to `results-RANK.pt`."""
    from warpsmith.lab.operator import definition_file
    from warpsmith.lab.operator.inputs import Inputs
    from warpsmith.lab.operator.source_module import import_source
    from warpsmith.lab.ranks import shards
    from warpsmith.languages.triton import interpreter_fixes

    interpreter_fixes.patch_interpreter()
    round_to_bfloat16()
    request = json.loads((folder / "calls.json").read_text())
    world, path = request["ranks"], Path(request["definition"])
    file = definition_file.load_definition(path, over_ranks=True)
    torch.cuda.Stream, torch.cuda.current_stream = Line, Line
    torch.cuda.stream = nullcontext
    torch.distributed.get_rank = lambda *_: rank
    torch.distributed.get_world_size = lambda *_: world
    module: Any = import_source("version", Path(request["version"]))
    areas = iter(range(1000))
    module.share_memory = lambda size, _: share_file(folder, next(areas), size, rank, world)
    for name, value in request["constants"].items():
        setattr(module, name, value)
    definition = file.definition.model_copy(update=request["update"])
    results = []
    for call in request["calls"]:
        workload = definition.workloads[0].model_copy(update=call["workload"])
        whole = Inputs(with_definition(file, definition), workload, call["seed"], "cpu").draw()
        tensors = {
            name: shards.take_shard(definition.tensor_inputs[name], tensor, rank, world).clone()
            for name, tensor in whole.items()
        }
        numbers = definition.scalars(workload)
        time.sleep(call["late"][rank])
        outputs = module.run(*(tensors.get(name, numbers.get(name)) for name in definition.inputs))
        results.append(outputs if isinstance(outputs, tuple) else (outputs,))
    torch.save([[each.clone() for each in outputs] for outputs in results], folder / f"results-{rank}.pt")


def with_definition(file: Any, definition: Any) -> Any:
    """Return the definition file with another definition in it."""
    import dataclasses

    return dataclasses.replace(file, definition=definition)


def share_file(
    folder: Path, number: int, size: int, rank: int, world: int
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Map an area of all ranks; return them, and their addresses."""
    own = folder / f"area-{number}-{rank}"
    own.with_suffix(".part").write_bytes(bytes(size))
    own.with_suffix(".part").rename(own)
    areas = []
    for each in range(world):
        path = folder / f"area-{number}-{each}"
        while not path.exists():
            time.sleep(0.001)
        areas.append(torch.from_file(str(path), shared=True, size=size, dtype=torch.uint8))
    return areas, torch.tensor([area.data_ptr() for area in areas])


class Line:
    """A stream on a processor: all is done when it is asked for."""

    cuda_stream = 0

    def __init__(self, **_: int) -> None:
        pass

    def wait_stream(self, _: Line) -> None:
        pass

    def wait_event(self, _: None) -> None:
        pass

    def record_event(self) -> None:
        pass


def round_to_bfloat16() -> None:
    """Round to bfloat16 to nearest, as GPUs do."""
    from triton.runtime import interpreter

    original = interpreter._convert_float

    def convert(data: Any, source: Any, target: Any, rounding: Any) -> Any:
        if target.name != "bf16" or source.name != "fp32":
            return original(data, source, target, rounding)
        return torch.from_numpy(data.astype("float32")).to(torch.bfloat16).view(torch.uint16).numpy()

    interpreter._convert_float = convert


if __name__ == "__main__":
    os.environ["TRITON_INTERPRET"] = "1"
    main(Path(sys.argv[1]), int(sys.argv[2]))
