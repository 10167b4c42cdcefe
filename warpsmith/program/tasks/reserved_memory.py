"""Task: the peak of the program's memory since its last steps began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpsmith.program.process import gather

if TYPE_CHECKING:
    from warpsmith.program.process.loaded_program import LoadedProgram


def main(_program: LoadedProgram) -> int:
    """Return the peak of bytes that PyTorch's allocator reserved; without a GPU, of resident bytes."""
    import torch

    if gather.gpu_initialized():
        return int(torch.cuda.max_memory_reserved(gather.main_gpu()))
    return int(gather.gather_memory()["memory_peak"])
