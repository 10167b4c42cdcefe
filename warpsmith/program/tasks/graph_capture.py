"""Task: steps on a GPU with new content in their inputs each time, eager or replayed from a CUDA graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpsmith.program.capture import replay as graph_replay

if TYPE_CHECKING:
    from warpsmith.program.process.child import Child


def main(
    child: Child, folders: list[str], warm: int, steps: int, replay: bool, moving: bool = True
) -> dict[str, Any]:
    """What `steps` steps give after `warm` eager ones, and the seconds of one.

    `moving`: the inputs get new content before each. Where an eager step fails, so does the task; where a replay
    does, that is its answer. The capture runs no step on the device, so that the first replay is the step that
    eager would run next.
    """
    import torch

    inputs = graph_replay.Inputs(child, moving=moving)
    graph_replay.warm_up(child.step, inputs, warm)
    if not replay:
        found: list[dict[str, list[float]]] = []
        graph_replay.follow(child, inputs, child.step, steps, found)
        return {"captured": True, "values": found, "seconds": graph_replay.seconds(child.step)}
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            value = child.step()
    except Exception as error:
        return graph_replay.failure(error, folders)

    def again() -> object:
        graph.replay()
        return value

    return graph_replay.replayed(child, inputs, again, steps, graph.replay)
