"""Task: run steps on a GPU with new content in their inputs each time, eagerly or replayed from a CUDA graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.program.capture import replay as graph_replay

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(
    program: LoadedProgram, folders: list[str], warm: int, steps: int, replay: bool, moving: bool = True
) -> dict[str, Any]:
    """Run `warm` eager steps, then `steps` recorded ones; return their values and the median seconds of one.

    With `moving` the inputs get new content before each step. An eager step that fails raises; a replay that fails
    is part of the answer. A capture runs no step on the device, so the first replay is the step that an eager run
    would do next.
    """
    import torch

    inputs = graph_replay.StepInputs(program, moving=moving)
    graph_replay.warm_up(program.step, inputs, warm)
    if not replay:
        figures: list[graph_replay.StepFigures] = []
        graph_replay.record_steps(program, inputs, program.step, steps, figures)
        return {"captured": True, "values": figures, "seconds": graph_replay.median_seconds(program.step)}
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            value = program.step()
    except Exception as error:
        return graph_replay.answer_failure(error, folders)

    def replay_graph() -> object:
        graph.replay()
        return value

    return graph_replay.answer_replays(program, inputs, replay_graph, steps, graph.replay)
