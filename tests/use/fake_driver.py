"""Fake CUDA driver whose kernels run on the processor, and the version that launches them."""

from __future__ import annotations

import ctypes
import random
import subprocess
from pathlib import Path

import torch

from warpsmith.languages.shared.cxx_compiler import find_cxx_compiler

DEFINITION = """\
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Workload

definition = Definition(
    name="{name}", description="y = 2 * scale * x",
    axes={{"rows": "rows", "cols": "columns"}},
    inputs={{"x": TensorSpec(shape=("rows", "cols")), "scale": ScalarSpec(value=3.0)}},
    outputs={{"y": TensorSpec(shape=("rows", "cols"))}},
    flops="rows * cols",
    workloads=(Workload(name="small", axes={{"rows": 4, "cols": 8}}),),
)

def reference(x, scale):
    return 2 * scale * x

def backward(x, scale, dy):
    return 2 * scale * dy
"""


class LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("padding", ctypes.c_int), ("value", ctypes.c_int * 16)]


class LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("extents", ctypes.c_uint * 6), ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)), ("count", ctypes.c_uint),
    ]  # fmt: skip


def build_fake_driver(path: Path) -> None:
    command = [*(find_cxx_compiler() or ["c++"]), "-std=c++17", "-w", "-O0", "-shared", "-fPIC"]
    subprocess.run([*command, str(Path(__file__).with_suffix(".cpp")), "-o", str(path)], check=True)


class FakeDriver:
    """The library, and launches of its kernels as versions make them."""

    def __init__(self, path: Path) -> None:
        self.library = library = ctypes.CDLL(str(path))
        library.fake_kernel.restype = ctypes.c_void_p
        library.fake_kernel.argtypes = [ctypes.c_int, ctypes.c_float]
        library.fake_memory.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.kernel = library.fake_kernel(0, 2.0)
        self.other_kernel = library.fake_kernel(1, 2.0)

    @property
    def launches(self) -> int:
        return self.library.fake_launches()

    def call(self, name):
        self.library.fake_call(name.encode())

    def last_launch(self):
        grid, value = ctypes.c_uint(), ctypes.c_int()
        kind = self.library.fake_attribute(ctypes.byref(grid), ctypes.byref(value))
        return kind, value.value, grid.value

    def launch(self, x, y, scale=1.0, kernel=None, grid=1, attribute=None, stream=0, plain=False):
        """Launch y = 2 * scale * x. `x` and `y` are tensors or addresses."""
        addresses = [value.data_ptr() if isinstance(value, torch.Tensor) else value for value in (x, y)]
        count = y.numel() if isinstance(y, torch.Tensor) else 1
        values = [*map(ctypes.c_void_p, addresses), ctypes.c_int(count), ctypes.c_float(scale)]
        pointers = (ctypes.c_void_p * 4)(*(ctypes.addressof(value) for value in values))
        function = ctypes.c_void_p(kernel or self.kernel)
        if plain:
            assert self.library.cuLaunchKernel(function, grid, 32, 0, ctypes.c_void_p(stream), pointers) == 0
            return
        config = LaunchConfig((ctypes.c_uint * 6)(grid, 1, 1, 32, 1, 1), 0, stream, None, 0)
        if attribute:
            kind, value = attribute
            garbage = [random.randrange(1 << 30) for _ in range(13)]  # as of a struct on the stack
            config.attributes = ctypes.pointer(
                LaunchAttribute(kind, 7, (ctypes.c_int * 16)(value, 1, 1, *garbage))
            )
            config.count = 1
        assert self.library.cuLaunchKernelEx(ctypes.byref(config), function, pointers, None) == 0
