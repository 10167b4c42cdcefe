"""Test for repo mode: the kernel of one sample in Triton's interpreter, against PyTorch in float32."""

import pytest
import torch
from flash_colsum.kernel_noncausal import _flash_colsum_non_batched


@pytest.mark.parametrize("cls", [-1, 1, 5, 130, 999])
@pytest.mark.parametrize("shape", [(1, 2, 256, 64), (1, 1, 128, 40)])
def test_against_pytorch(shape: tuple[int, ...], cls: int) -> None:
    """Hold the kernel within the bound of float16; tokens are multiples of its block of 128."""
    torch.manual_seed(0)
    query, key = torch.randn(shape).half(), torch.randn(shape).half()
    scale = shape[-1] ** -0.5
    weights = torch.softmax(query.float() @ key.float().transpose(-2, -1) * scale, -1)
    rows = weights if cls == -1 else weights[:, :, :cls]
    found = _flash_colsum_non_batched(query, key, scale, cls)
    assert torch.allclose(found.float(), rows.mean(dim=(1, 2)), atol=1e-3, rtol=1e-3)
