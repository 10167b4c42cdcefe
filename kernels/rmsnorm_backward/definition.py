"""The backward pass of RMSNorm over the last axis: gradients of the input and of the weight.

Training code saves 1 / rms(x) of every row in the forward pass, in float32, and so do PyTorch, Liger, QuACK and
cuDNN: it is an input here, and drawn apart from x, so that a version that computes its own is wrong.
"""

import torch

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload


def at(
    rows: int, cols: int, set: str = "representative", dtype: str = "bfloat16", residual: bool = False
) -> Workload:
    short = {"bfloat16": "bf16", "float32": "fp32"}[dtype]
    return Workload(
        name=f"{rows}x{cols}-{short}{'-residual' if residual else ''}",
        axes={"rows": rows, "cols": cols, "residual": int(residual)},
        dtype=dtype,
        set=set,
    )


definition = Definition(
    name="rmsnorm_backward",
    description="dx = rstd * (g - n * mean(g * n)), dw = sum(dy * n) over rows, where n = x * rstd, g = dy * weight",
    op_type="norm",
    axes={
        "rows": "tokens; tokens times heads for a norm of queries and keys",
        "cols": "hidden size, or a head's",
        "residual": 0,  # what a workload says instead: 1, where a second gradient flows into x past the norm
    },
    inputs={
        "x": TensorSpec(shape=("rows", "cols"), description="the forward pass's input"),
        "dy": TensorSpec(shape=("rows", "cols"), description="gradient of the forward pass's output"),
        "weight": TensorSpec(shape=("cols",), role="weight"),
        "rstd": TensorSpec(
            shape=("rows",),
            dtype="float32",
            distribution="uniform",
            description="1 / rms, saved by the forward pass",
        ),
        "dresidual": TensorSpec(
            shape=("residual * rows", "cols"), description="gradient that is added to dx; no rows: there is none"
        ),
    },
    outputs={"dx": TensorSpec(shape=("rows", "cols")), "dw": TensorSpec(shape=("cols",))},
    deterministic=True,  # a training run must be repeatable: no sum may depend on who comes first
    tolerance={"dx": Tolerance(reduction="cols"), "dw": Tolerance(reduction="rows")},
    flops="9 * rows * cols",
    workloads=(
        at(16384, 4096),
        at(8192, 8192),
        at(131072, 128),  # a norm of queries and keys: 4096 tokens, 32 heads of 128
        at(4096, 16384, "full"),
        at(8192, 5120, "full"),
        at(2048, 4096, "full"),
        at(1, 3000, "odd"),
        at(3, 5120, "odd", residual=True),
        at(13, 7176, "odd"),
        at(2501, 136, "odd"),
        at(1, 1, "odd", "float32"),
        at(3, 3000, "odd", "float32"),
        at(5, 5120, "odd", "float32", residual=True),
        at(2, 16384, "odd", "float32"),
        at(21, 1023, "odd", "float32", residual=True),
        at(203, 128, "odd", "float32"),
        at(1001, 96, "odd", "float32"),
    ),
)


def reference(
    x: torch.Tensor, dy: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor, dresidual: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    n, g = x.float() * rstd[:, None], dy.float() * weight.float()
    dx = rstd[:, None] * (g - n * (g * n).mean(-1, keepdim=True))
    if dresidual.shape[0]:
        dx = dx + dresidual.float()
    return dx.to(x.dtype), (dy.float() * n).sum(0).to(weight.dtype)


def magnitude(
    x: torch.Tensor, dy: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor, dresidual: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both sums cancel, and so does the difference between a gradient and its part along x."""
    n, g = (x * rstd[:, None]).abs(), (dy * weight).abs()
    dx = rstd[:, None] * (g + n * (g * n).mean(-1, keepdim=True))
    if dresidual.shape[0]:
        dx = dx + dresidual.abs()
    return dx, (dy.abs() * n).sum(0)


def aten(
    x: torch.Tensor, dy: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor, dresidual: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """What PyTorch's autograd calls."""
    _no_residual("PyTorch's operator", dresidual)
    backward = torch.ops.aten._fused_rms_norm_backward
    dx, dw = backward(dy, x, [x.shape[-1]], rstd[:, None], weight, [True, True])
    return dx, dw


def liger(
    x: torch.Tensor, dy: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor, dresidual: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """All in float32, as for Gemma: casting as for Llama rounds n, and misses the bound of dw. Not in place, since
    dy is the caller's: then Liger clears dx before it writes it."""
    try:
        from liger_kernel.ops.fused_add_rms_norm import fused_add_rms_norm_backward
        from liger_kernel.ops.rms_norm import rms_norm_backward
        from liger_kernel.ops.utils import calculate_settings
    except ImportError as error:
        raise ImportError("Liger is not installed: pip install liger-kernel==0.8.5.") from error
    gemma = 1
    block, warps = calculate_settings(x.shape[-1])
    if dresidual.shape[0]:
        dx, _, dw = fused_add_rms_norm_backward(dy, dresidual, x, weight, rstd, 0.0, gemma, block, warps, 2, False)
    else:
        dx, dw = rms_norm_backward(dy, x, weight, rstd, 0.0, gemma, block, warps, False, None)
    return dx, dw


def quack(
    x: torch.Tensor, dy: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor, dresidual: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """CuTe DSL, with asynchronous copies; the sum over blocks is PyTorch's."""
    try:
        from quack.rmsnorm import rmsnorm_bwd
    except ImportError as error:
        raise ImportError("QuACK is not installed: pip install quack-kernels==0.6.5.") from error
    dx, dw, *_ = rmsnorm_bwd(x, weight, dy, rstd, dresidual_out=dresidual if dresidual.shape[0] else None)
    return dx, dw


def cudnn(
    x: torch.Tensor, dy: torch.Tensor, weight: torch.Tensor, rstd: torch.Tensor, dresidual: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """cuDNN's own engine, through the operator that its frontend registers with PyTorch."""
    try:
        import cudnn.ops.norm.rmsnorm  # noqa: F401 - registers the operator
    except ImportError as error:
        raise ImportError(
            "cuDNN's frontend is not installed: pip install nvidia-cudnn-frontend==1.32.0."
        ) from error
    _no_residual("cuDNN", dresidual)
    rows, cols = x.shape
    tokens, channels = (rows, cols, 1, 1), (1, cols, 1, 1)
    dx, dw, _ = torch.ops.cudnn.rmsnorm_bwd(
        dy.view(tokens), x.view(tokens), weight.view(channels), rstd.view(rows, 1, 1, 1)
    )
    return dx.view(rows, cols), dw.view(cols)


def _no_residual(who: str, dresidual: torch.Tensor) -> None:
    if dresidual.shape[0]:
        raise NotImplementedError(f"{who} adds no residual gradient; race it at the other workloads.")


peers = {"aten": aten, "liger": liger, "quack": quack, "cudnn": cudnn}
