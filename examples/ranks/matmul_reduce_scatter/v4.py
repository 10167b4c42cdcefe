"""torch.compile with micro-pipelining, which makes the product and the reduce-scatter PyTorch's fused operator.

`v2` calls that operator itself. On GPUs the version fails where the compiler did not fuse: its time would be that
of `v1`. On a processor there is nothing to fuse.
"""

import warnings

import torch
import torch.distributed
import torch.distributed._functional_collectives as collectives
import torch.distributed._symmetric_memory as symmetric

_fused: list[bool] = []
"""Of each compiled graph, whether it has the fused operator."""


def record_fusion(graph: torch.fx.Graph) -> None:
    """Look for the fused operator in a graph, after the compiler's own passes."""
    fused = torch.ops.symm_mem.fused_matmul_reduce_scatter.default
    _fused.append(any(node.target is fused for node in graph.nodes))


OPTIONS = {
    "_micro_pipeline_tp": True,
    "post_grad_custom_post_pass": record_fusion,
    "fx_graph_cache": False,  # a graph from the cache would not be looked at
    "shape_padding": False,  # a product of padded tensors is not fused
    "compile_threads": 1,  # there is nothing to compile in parallel
}


@torch.compile(fullgraph=True, dynamic=False, options=OPTIONS)
def multiply_and_scatter(x: torch.Tensor, weight: torch.Tensor, group: str) -> torch.Tensor:
    """Return this rank's rows of the product, as the compiler takes it."""
    return collectives.reduce_scatter_tensor(x @ weight, "sum", 0, group)


def refuse_unfused(device: torch.device) -> None:
    """Raise RuntimeError if a GPU's graph lacks the fused operator, or was not looked at."""
    if device.type == "cuda" and not (_fused and all(_fused)):
        raise RuntimeError("torch.compile did not fuse the product with the reduce-scatter.")


def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return this rank's rows of the product."""
    group = torch.distributed.group.WORLD.group_name
    if x.is_cuda and not _fused:
        with warnings.catch_warnings(action="ignore"):  # it warns of doing nothing, but the compiler asks for it
            symmetric.enable_symm_mem_for_group(group)
    y = multiply_and_scatter(x, weight, group)
    refuse_unfused(x.device)
    return y.contiguous()
