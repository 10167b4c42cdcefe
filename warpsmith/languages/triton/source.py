"""Starting file of a Triton version."""

from __future__ import annotations

from warpsmith.core.definition import Definition
from warpsmith.languages.shared.signature import python_stub


def triton_template(definition: Definition) -> str:
    """Return a starting file whose `run` raises NotImplementedError until it is written."""
    stub = python_stub(definition)
    return f'''"""{definition.name}: {definition.description}"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, x, mask=mask)


{stub.head}
    raise NotImplementedError("Write the kernel: launch it here and {stub.duty}.")
'''
