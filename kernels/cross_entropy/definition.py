"""Cross-entropy of rows of logits with its gradient: what a language model's loss needs of each token.

    loss = lse - logits[target] + z_loss * lse^2;  dlogits = softmax * (1 + 2 * z_loss * lse) - one_hot(target)

lse is the logarithm of the sum of exponentials. Both results are of each row alone, without a mean: that of the
batch is a sum of `rows` numbers, and its factor belongs to whoever takes it. A row with a negative target, such as
PyTorch's -100, is ignored: its loss and its gradient are 0, whatever its logits are. About one row of a call is.

Training code often writes dlogits over logits. Versions return it as a tensor of its own, as inputs stay as they
are: the bytes are the same.
"""

import torch

from warpsmith import Peer
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload


def at(
    rows: int,
    cols: int,
    set: str = "representative",
    dtype: str = "bfloat16",
    z_loss: float = 0.0,
    distribution: str = "normal",
) -> Workload:
    short = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[dtype]
    more = f"{'-z' if z_loss else ''}{'' if distribution == 'normal' else '-' + distribution}"
    return Workload(
        name=f"{rows}x{cols}-{short}{more}",
        axes={"rows": rows, "cols": cols},
        dtype=dtype,
        set=set,
        scalars={"z_loss": z_loss},
        distribution=distribution,
    )


definition = Definition(
    name="cross_entropy",
    description="loss = lse - logits[target] + z_loss * lse^2 of each row, and its gradient; negative targets: 0",
    op_type="loss",
    axes={"rows": "tokens", "cols": "vocabulary"},
    inputs={
        "logits": TensorSpec(shape=("rows", "cols")),
        "targets": TensorSpec(
            shape=("rows",),
            dtype="int64",
            distribution="integers:0 - 1 - cols // rows:cols",
            description="the right token of each row; negative: the row is ignored",
        ),
        "z_loss": ScalarSpec(value=0.0, between=(0.0, 0.01), description="weight of lse^2"),
    },
    outputs={
        "loss": TensorSpec(shape=("rows",), dtype="float32"),
        "dlogits": TensorSpec(shape=("rows", "cols")),
    },
    deterministic=True,  # a training run must be repeatable
    tolerance=Tolerance(reduction="cols"),
    flops="8 * rows * cols",
    constraints=("targets < cols",),
    workloads=(
        at(8192, 131072),  # Llama 3 and gpt-oss are near it
        at(4096, 152064),  # Qwen
        at(16384, 32768),  # Mistral
        at(2048, 50257, "full", z_loss=1e-4),  # GPT-2: rows begin at any multiple of two bytes
        at(16384, 8192, "full"),
        at(512, 262144, "full"),  # Gemma 3: 512 KB a row
        at(1, 1, "odd"),
        at(3, 1000, "odd", z_loss=1e-2),
        at(5, 8195, "odd", z_loss=1e-4),
        at(7, 32768, "odd"),
        at(2, 50257, "odd", z_loss=1e-4),
        at(3, 151936, "odd"),
        at(1, 300007, "odd"),
        at(5, 20001, "odd", "float16", z_loss=1e-2),
        at(37, 130, "odd", "float32", z_loss=1e-4),
        at(3, 4097, "odd", "float32", z_loss=1e-2),
        at(259, 515, "odd", "float32"),
        at(2, 100003, "odd", "float32"),
        # Tokens that must not be said: parts of a row hold nothing but minus infinity.
        at(9, 3000, "odd", "float32", 1e-4, "masked"),
        at(3, 100008, "odd", distribution="masked"),
    ),
)


def reference(logits: torch.Tensor, targets: torch.Tensor, z_loss: float) -> tuple[torch.Tensor, torch.Tensor]:
    x, known = logits.float(), targets[:, None] >= 0
    lse = torch.logsumexp(x, -1, keepdim=True)
    label = x.gather(1, targets[:, None].clamp(min=0))
    loss = torch.where(known, lse - label + z_loss * lse.square(), 0.0).squeeze(1)
    is_label = torch.arange(x.shape[1], device=x.device) == targets[:, None]
    grad = torch.softmax(x, -1) * (1 + 2 * z_loss * lse)  # exp(x - lse) is off where lse is much larger than 1
    grad = torch.where(known, torch.where(is_label, grad - 1, grad), 0.0)
    return loss, grad.to(logits.dtype)


def _shares(logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each row's softmax, and the size of what is rounded on the way to its lse, which is (rows, 1)."""
    x = logits.float()
    top = x.amax(-1, keepdim=True)
    below = (top - x).nan_to_num(posinf=0.0)
    shares = torch.exp(x - top)
    total = shares.sum(-1, keepdim=True)
    shares /= total
    return shares, 1 + top.abs() + total.log() + (shares * below).sum(-1, keepdim=True)


def magnitude(logits: torch.Tensor, targets: torch.Tensor, z_loss: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The differences cancel; the lse has an error of its own, which its square and its factor multiply."""
    shares, size = _shares(logits)
    label = logits.float().gather(1, targets[:, None].clamp(min=0)).abs()
    loss = torch.where(targets[:, None] >= 0, label + size * (1 + 2 * z_loss * size), 0.0)
    shares *= 1 + 2 * z_loss * size
    is_label = torch.arange(logits.shape[1], device=logits.device) == targets[:, None]
    return loss.squeeze(1), shares + is_label


def extra(logits: torch.Tensor, targets: torch.Tensor, z_loss: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Rounding x - max(x) moves the exponential by as many roundoffs as the difference is large."""
    x = logits.float()
    below = (x.amax(-1, keepdim=True) - x).nan_to_num_(posinf=0.0)
    return torch.zeros_like(x[:, 0]), below.mul_(4)


def _with_one_ignored_value(targets: torch.Tensor) -> torch.Tensor:
    """Negative targets as libraries know them."""
    return torch.where(targets < 0, -100, targets)


def liger(logits: torch.Tensor, targets: torch.Tensor, z_loss: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Liger's forward pass, which leaves the gradient where the logits were."""
    try:
        from liger_kernel.ops.cross_entropy import cross_entropy_forward
    except ImportError as error:
        raise ImportError("Liger is not installed: pip install liger-kernel==0.8.5.") from error
    x = logits.detach().requires_grad_()
    loss, *_, grad = cross_entropy_forward(
        x, _with_one_ignored_value(targets), None, -100, z_loss, 0.0, "none", None, False
    )
    return loss.float(), grad.detach()


def quack(logits: torch.Tensor, targets: torch.Tensor, z_loss: float) -> tuple[torch.Tensor, torch.Tensor]:
    """CuTe DSL; a cluster of blocks holds a row in shared memory."""
    try:
        from quack.cross_entropy import cross_entropy_fwd
    except ImportError as error:
        raise ImportError("QuACK is not installed: pip install quack-kernels==0.6.5.") from error
    if z_loss:
        raise NotImplementedError("QuACK has no z-loss; race it at the workloads without.")
    loss, grad = cross_entropy_fwd(logits, _with_one_ignored_value(targets), return_dx=True)
    return loss, grad


peers = {
    "liger": Peer(liger, consumes=("logits",), differs="its gradient replaces the logits; its loss has 16 bits"),
    "quack": Peer(quack, differs="negative targets become -100 by a launch of PyTorch's"),
}
