"""Peers among the versions over ranks: each is what its name says, or fails with a sentence."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from rank_play import EXAMPLES

from warpsmith.lab.operator.source_module import import_source

COMPILED = ["all_gather_matmul", "matmul_reduce_scatter"]


OPERATORS = """
meta_size() -> int
init_custom_ar(int[] ipc_tensors, Tensor rank_data, int rank, bool fully_connected) -> int
register_buffer(int fa, int[] ipc_tensors) -> ()
"""
"""What vLLM's library declares."""


@pytest.fixture
def fake_group():
    """A group of two, of which only this process exists."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    yield
    dist.destroy_process_group()
    torch._dynamo.reset()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("fusing", [True, False])
@pytest.mark.parametrize("name", COMPILED)
def test_fusion_is_seen_in_the_compiled_graph(name, fusing, fake_group, monkeypatch):
    import torch.distributed._symmetric_memory as symmetric

    monkeypatch.setattr(symmetric, "_is_test_mode", fusing)  # counts the group as one with symmetric memory
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)
    version = import_source("peer", EXAMPLES / name / "v4.py")
    calls = []

    def gather(x, weights, dim, group, *, return_A=True):  # noqa: N803 - PyTorch's name
        calls.append("gather")
        return None, [torch.cat([x, x]) @ weights[0]]

    def scatter(x, weight, op, dim, group):
        calls.append("scatter")
        return (x @ weight).chunk(2)[0].clone()

    with torch.library._scoped_library("symm_mem", "IMPL") as library:
        library.impl("fused_all_gather_matmul", gather, "CPU")
        library.impl("fused_matmul_reduce_scatter", scatter, "CPU")
        y = version.run(torch.ones(8, 16), torch.ones(16, 4))
    assert version._fused == [fusing]
    assert len(calls) == fusing
    assert y.shape == ((16, 4) if name == "all_gather_matmul" else (4, 4))


@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("graphs", [[], [False], [True, False]])
def test_time_on_a_gpu_without_fusion_is_refused(name, graphs):
    version = import_source("peer", EXAMPLES / name / "v4.py")
    version._fused.extend(graphs)
    version.refuse_unfused(torch.device("cpu"))
    with pytest.raises(RuntimeError, match="did not fuse"):
        version.refuse_unfused(torch.device("cuda", 1))


@pytest.mark.parametrize("name", COMPILED)
def test_fused_graphs_are_accepted_on_a_gpu(name):
    version = import_source("peer", EXAMPLES / name / "v4.py")
    version._fused.extend([True, True])
    version.refuse_unfused(torch.device("cuda", 0))


@pytest.mark.parametrize(
    ("size", "world", "sentence"),
    [(8 << 20, 2, "less than 8388608 bytes"), (16 * 7 + 4, 4, "multiples of 16"), (16, 3, "not 3")],
)
def test_parts_that_vllm_leaves_to_nccl_are_refused(size, world, sentence):
    version = import_source("peer", EXAMPLES / "all_reduce_rmsnorm" / "v9.py")
    version.refuse_part((8 << 20) - 16, world if world != 3 else 2)
    with pytest.raises(ValueError, match=sentence):
        version.refuse_part(size, world)


def test_vllm_gets_the_addresses_of_all_ranks(fake_group, monkeypatch):
    version = import_source("peer", EXAMPLES / "all_reduce_rmsnorm" / "v9.py")
    sizes, calls = [], []

    def share(size, device):
        sizes.append(size)
        return torch.zeros(1), [100 * len(sizes), 100 * len(sizes) + 1]

    monkeypatch.setattr(version, "share_memory", share)
    monkeypatch.setattr(version.peer_libraries, "vllm", lambda namespace: calls.append(namespace))
    with torch.library._scoped_library("_C_custom_ar", "DEF") as library:
        for schema in OPERATORS.split("\n")[1:-1]:
            library.define(schema)
        library.impl("meta_size", lambda: 2560, "CompositeExplicitAutograd")
        library.impl("init_custom_ar", lambda flags, table, rank, linked: 7 + len(flags) + flags[1] + rank, "CPU")
        library.impl("register_buffer", lambda *call: calls.append(call), "CompositeExplicitAutograd")
        exchange = version.open_exchange(torch.device("cpu"))
    assert sizes == [2560 + (8 << 20), 8 << 20]
    assert calls == ["_C", (7 + 2 + 101, [200, 201])]
    assert (exchange.state, exchange.buffer) == (110, 200)
