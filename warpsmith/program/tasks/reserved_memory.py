"""Task: the memory that the program held at most since its last steps began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.program.process import gather

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(_child: LoadedProgram) -> int:
    """Bytes of the device that PyTorch's allocator held, fragments included; without a GPU, resident ones."""
    import torch

    if gather.gpu_initialized():
        return int(torch.cuda.max_memory_reserved())
    return int(gather.gather_memory()["memory_peak"])
