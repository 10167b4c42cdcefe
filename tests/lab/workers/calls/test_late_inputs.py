"""The kernel that writes late, assembled without a GPU; and a worker's late call, over a stream that is played."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch

from warpsmith.errors import MachineFailed
from warpsmith.lab.machine import cuda_driver
from warpsmith.lab.workers.calls import late_inputs
from warpsmith.lab.workers.worker import Worker, WorkloadTensors
from warpsmith.languages.shared import tool

SECONDS = 60.0


@pytest.mark.parametrize("arch", ["sm_90", "sm_90a", "sm_100"])
def test_it_lets_others_start_before_it_waits(tmp_path, arch):
    nvidia = pytest.importorskip("triton.knobs").nvidia
    if nvidia.ptxas is None or nvidia.nvdisasm is None:
        pytest.skip("no ptxas and nvdisasm beside Triton")
    text, cubin = tmp_path / "late.ptx", tmp_path / "late.cubin"
    text.write_text(late_inputs.PTX)
    made = tool.run_tool([nvidia.ptxas.path, f"-arch={arch}", text, "-o", cubin], SECONDS)
    assert made.code == 0, made.output
    sass = tool.run_tool([nvidia.nvdisasm.path, "-c", cubin], SECONDS).output
    let, first, store = (sass.find(word) for word in ("PREEXIT", "GLOBALTIMER", "STG"))
    again = sass.find("GLOBALTIMER", first + 1)  # read anew at each turn, and not only once
    assert -1 < let < first < again < sass.find("BRA") < store
    assert "ACQBULK" not in sass


KINDS = (ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64)


def test_the_launch_names_every_pair_on_the_current_stream(monkeypatch):
    tables, called, real = [], [], torch.tensor

    def tensor(rows, dtype, device):
        tables.append(real(rows, dtype=dtype))
        return tables[0]

    def call(name, *arguments):
        *shape, stream, addresses, _ = arguments[1:] if name == "cuLaunchKernel" else (None, (), None)
        given = [kind.from_address(at).value for kind, at in zip(KINDS, addresses, strict=False)]
        called.append((name, shape, getattr(stream, "value", None), given))

    monkeypatch.setattr(torch, "tensor", tensor)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: SimpleNamespace(cuda_stream=77))
    monkeypatch.setattr(cuda_driver, "call_driver", call)
    late_inputs._function.cache_clear()
    pairs = [(torch.zeros(count), torch.ones(count)) for count in (3, 5)]
    launch = late_inputs.prepare_late_copy(pairs)
    assert [name for name, *_ in called] == ["cuModuleLoadData", "cuModuleGetFunction"]
    launch()
    late_inputs._function.cache_clear()
    given = [tables[0].data_ptr(), 2, 1_000_000]
    assert called[-1] == ("cuLaunchKernel", [16, 1, 1, 1024, 1, 1, 0], 77, given)
    assert tables[0].tolist() == [
        [source.data_ptr(), target.data_ptr(), source.nbytes] for source, target in pairs
    ]


class Stream:
    """Work that is done when somebody waits, in order; or kept in a graph."""

    def __init__(self) -> None:
        self.queue, self.graph, self.current = [], None, "default"

    def launch(self, work):
        (self.queue if self.graph is None else self.graph).append(work)

    def synchronize(self):
        for work in self.queue:
            work()
        self.queue.clear()

    @contextmanager
    def capture(self, graph):
        self.graph = graph.nodes = []
        self.current = "capture"  # where a capture that fails leaves it, as PyTorch does
        try:
            yield
            self.current = "default"
        finally:
            self.graph = None


@pytest.fixture
def stream(monkeypatch):
    found = Stream()

    class Graph:
        def replay(self):
            found.queue.extend(self.nodes)

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", found.capture)
    monkeypatch.setattr(torch.cuda, "synchronize", found.synchronize)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: found.current)
    monkeypatch.setattr(torch.cuda, "set_stream", lambda stream: setattr(found, "current", stream))
    monkeypatch.setattr(
        late_inputs,
        "prepare_late_copy",
        lambda pairs: lambda: found.launch(lambda: [target.copy_(source) for source, target in pairs]),
    )
    return found


@pytest.fixture
def worker(stream):
    """A worker with two slots of an input, a number and a given output, whose `run` doubles the input."""

    def make(early=False, gives=True):
        found = Worker()
        found.language = "triton"
        found.definition = SimpleNamespace(outputs_are="given" if gives else "returned")
        found.synchronize = stream.synchronize
        landing = [[torch.full((3,), torch.nan)] for _ in range(2)]
        arguments = [
            [torch.full((3,), float(slot + 1)), 2.0, *(landing[slot] if gives else [])] for slot in range(2)
        ]
        found.tensors = WorkloadTensors(arguments, landing)

        def run(x, factor, y=None):
            y = torch.empty_like(x) if y is None else y
            work = lambda: y.copy_(x * factor)  # noqa: E731
            if early:  # it does not wait for what is ahead of it
                ahead, stream.queue = stream.queue, []
                work() if stream.graph is None else stream.graph.insert(0, work)
                stream.queue = ahead
            else:
                stream.launch(work)
            return None if gives else y

        found.run = run
        return found

    return make


def asked(worker, captured):
    said = worker.call_with_late_inputs({"slot": 0, "source": 1, "captured": captured})
    assert [output["shape"] for output in said["outputs"]] == [[3]]
    return worker.tensors.results[0][0]


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("gives", [False, True])
def test_a_call_that_waits_has_the_inputs_that_arrived(worker, captured, gives):
    found = worker(gives=gives)
    assert asked(found, captured).tolist() == [4.0] * 3
    assert found.tensors.arguments[0][0].tolist() == found.tensors.arguments[1][0].tolist()


@pytest.mark.parametrize("captured", [False, True])
def test_a_call_that_does_not_wait_has_those_before(worker, captured):
    assert asked(worker(early=True, gives=False), captured).tolist() == [2.0] * 3


@pytest.mark.parametrize("captured", [False, True])
def test_what_is_written_into_a_given_output_before_it_may_be_is_lost(worker, captured):
    assert asked(worker(early=True), captured).isnan().all()


def test_what_stands_against_a_graph_is_said(worker, stream):
    found = worker()
    found.run = lambda *_: torch.zeros(1).item() / 0
    assert found.call_with_late_inputs({"slot": 0, "source": 1, "captured": True}) == {
        "reason": "ZeroDivisionError: float division by zero"
    }
    assert found.tensors.graph is None
    assert stream.current == "default"


def refuse(*_):
    raise MachineFailed("no PTX here")


@pytest.mark.parametrize("writer", [refuse, lambda _: refuse], ids=["to load", "to launch"])
def test_a_driver_that_refuses_is_not_the_solutions_fault(worker, monkeypatch, writer):
    found = worker()
    monkeypatch.setattr(late_inputs, "prepare_late_copy", writer)
    assert found.call_with_late_inputs({"slot": 0, "source": 1, "captured": False}) == {
        "driver_error": "no PTX here"
    }
