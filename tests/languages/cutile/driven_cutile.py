"""Program that loads a cuTile version as a worker does, over a driver whose functions do nothing: `python FILE`
with a source, sizes such as `64x4096`, and whether to compile ahead; prints what was compiled, in JSON.

cuTile's own launch runs, so its signatures are those of a GPU. What is compiled is for Hopper.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import threading
import time
from functools import partial
from pathlib import Path

os.environ["CUDA_TILE_CACHE_DIR"] = str(Path(sys.argv[1]).parent / "cuda_tile_cache_dir")

from warpsmith.languages.base import Build
from warpsmith.languages.cutile import fake_device as cutile_fake_device
from warpsmith.languages.cutile.language import LANGUAGE
from warpsmith.languages.shared.fake_device import fake_device

pointer = ctypes.c_void_p
CAPABILITY = {75: 9, 76: 0}
"""Numbers of the driver's attributes, and compute capability 9.0."""


def writes(value):
    """Return a function of the driver that writes a number to where its first argument points."""

    def function(address, *_):
        ctypes.c_int.from_address(address).value = value
        return 0

    return ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer, pointer, pointer)(function)


def read_attribute(address, which, *_):
    ctypes.c_int.from_address(address).value = CAPABILITY.get(which or 0, 1)
    return 0


driver = {
    b"cuDriverGetVersion": writes(13000),
    b"cuDeviceGetCount": writes(1),
    b"cuDeviceGet": writes(0),
    b"cuCtxGetDevice": writes(0),
    b"cuDeviceGetAttribute": ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer, pointer, pointer)(read_attribute),
}


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(pointer))
def find_function(name, result):
    result[0] = ctypes.cast(driver.get(name, cutile_fake_device._succeed), pointer).value
    return 0


def main(source: Path, sizes: list[str], ahead: bool) -> None:
    import torch

    address = pointer(ctypes.cast(find_function, pointer).value)
    cutile_fake_device._finder_address = address
    sys.modules[cutile_fake_device._LIBCUDA] = cutile_fake_device._driver()
    torch._C._to_dlpack = cutile_fake_device._with_cuda_device(torch._C._to_dlpack)
    compiler = importlib.import_module("cuda.tile._compile")
    run_tileiras, running, most, total = compiler.compile_cubin, [], [], []
    lock = threading.Lock()

    def counted(*args, **kwargs):
        with lock:
            running.append(0)
            most.append(len(running))
            total.append(0)
        try:
            return run_tileiras(*args, **kwargs)
        finally:
            with lock:
                running.pop()

    compiler.compile_cubin = counted
    with fake_device("sm_90a", {}):
        torch.cuda.current_stream = lambda *_: 0
        run = LANGUAGE.load(Build(source, source, ()), None)
        shapes = [tuple(map(int, size.split("x"))) for size in sizes]
        calls = [partial(run, torch.zeros(shape, dtype=torch.bfloat16)) for shape in shapes]
        began = time.monotonic()
        kernels = LANGUAGE.compile_ahead(calls, 4) if ahead else [call() for call in calls] and 0
        answer = {"kernels": kernels, "tileiras": len(total), "at_once": max(most, default=0)}
        answer["reports"] = [report.kernel for report in LANGUAGE.resources(run)]
    json.dump(answer | {"seconds": time.monotonic() - began}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[3:], sys.argv[2] == "ahead")
