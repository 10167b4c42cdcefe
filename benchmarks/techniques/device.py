"""Kernels of this folder on a device: compile with NVRTC, launch with attributes, time in CUDA graphs."""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from cuda.bindings import driver, nvrtc

HERE = Path(__file__).resolve().parent
REPLAYS = 40
"""Timed replays of a graph; the times are of one call, that is a replay's over the calls in the graph."""

DEFAULT_SHARED = 48 << 10
"""Bytes of dynamic shared memory that a kernel may have without asking for more."""


@cache
def compile_source(name: str, arch: str = "sm_90a") -> bytes:
    """Return the cubin of `name`.cu; raise RuntimeError with the compiler's lines."""
    header = (HERE / "bits.h").read_bytes()
    code = (HERE / f"{name}.cu").read_bytes()
    _, program = nvrtc.nvrtcCreateProgram(code, f"{name}.cu".encode(), 1, [header], [b"bits.h"])
    options = [f"--gpu-architecture={arch}".encode(), b"--std=c++17"]
    (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
        _, size = nvrtc.nvrtcGetProgramLogSize(program)
        log = b" " * size
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(f"{name}.cu does not compile: {log.decode()}")
    _, size = nvrtc.nvrtcGetCUBINSize(program)
    cubin = b" " * size
    nvrtc.nvrtcGetCUBIN(program, cubin)
    return cubin


def check_status(answer: tuple[Any, ...]) -> Any:  # noqa: ANN401 - the driver's own types
    """Return the value of a driver call; raise RuntimeError if the call failed."""
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(str(answer[0]))
    return answer[1] if len(answer) > 1 else None


class KernelFile:
    """The kernels of one .cu file, on the current stream of PyTorch."""

    def __init__(self, name: str) -> None:
        """Compile and load."""
        torch.zeros(1, device="cuda")
        self._module = check_status(driver.cuModuleLoadData(compile_source(name)))

    def call(
        self,
        name: str,
        grid: int | tuple[int, int],
        block: int,
        *arguments: torch.Tensor | int,
        shared: int = 0,
        cluster: int = 0,
        early: bool = False,
    ) -> Callable[[], None]:
        """Return a function that launches a kernel; integers are int32, `early` allows an early start."""
        kernel = check_status(driver.cuModuleGetFunction(self._module, name.encode()))
        values = [
            ctypes.c_void_p(one.data_ptr()) if isinstance(one, torch.Tensor) else ctypes.c_int(one)
            for one in arguments
        ]
        pointers = (ctypes.c_void_p * max(1, len(values)))(*map(ctypes.addressof, values))
        x, y = (grid, 1) if isinstance(grid, int) else grid
        attributes = []
        if cluster:
            attribute = driver.CUlaunchAttribute()
            attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            attribute.value.clusterDim.x = cluster
            attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1
            attributes.append(attribute)
        if early:
            attribute = driver.CUlaunchAttribute()
            attribute.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            attribute.value.programmaticStreamSerializationAllowed = 1
            attributes.append(attribute)
        config = driver.CUlaunchConfig()
        config.gridDimX, config.gridDimY, config.gridDimZ = x, y, 1
        config.blockDimX, config.blockDimY, config.blockDimZ = block, 1, 1
        config.sharedMemBytes = shared
        if shared > DEFAULT_SHARED:
            attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            check_status(driver.cuFuncSetAttribute(kernel, attribute, shared))
        config.attrs = attributes
        config.numAttrs = len(attributes)

        def launch(keep: object = (values, arguments)) -> None:
            config.hStream = driver.CUstream(torch.cuda.current_stream().cuda_stream)
            check_status(driver.cuLaunchKernelEx(config, kernel, ctypes.addressof(pointers), 0))

        return launch


def chain(*calls: Callable[[], object]) -> Callable[[], None]:
    """Return a function that makes the calls in order."""

    def run() -> None:
        for call in calls:
            call()

    return run


def graph_times(calls: Sequence[Callable[[], object]], repeat: int = 1) -> list[float]:
    """Return the microseconds of one call, a value a replay of a graph of all calls, `repeat` times."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in list(calls) * repeat:
            call()
    for _ in range(5):
        graph.replay()
    return [time / (len(calls) * repeat) for time in event_times(graph.replay)]


def event_times(call: Callable[[], object], replays: int = REPLAYS) -> list[float]:
    """Return the microseconds of each call between two events."""
    pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(replays)]
    for start, end in pairs:
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return [1000 * start.elapsed_time(end) for start, end in pairs]


def quartiles(times: Sequence[float]) -> tuple[float, float, float]:
    """Return the median, the lower and the upper quartile."""
    low, middle, high = statistics.quantiles(times, n=4)
    return middle, low, high
