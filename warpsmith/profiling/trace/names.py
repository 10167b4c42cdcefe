"""Names in a trace: short ones that group a kernel's variants, what a kernel does, which ranges are steps."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith.profiling.trace.models import Family

SCRIPT_KEY = "warpsmith_script"
"""Top-level key under which a Chrome trace names the script that it is of."""

STEP = re.compile(r"(profiler|train(?:ing)?[ _])?step[ _#:]*\d*", re.IGNORECASE)
"""Names of ranges that are steps: `step`, `step 3`, `train_step`, `ProfilerStep#3`."""

LONGEST = 48
"""Characters of a short name."""

HOST_COPIES = ("Memcpy HtoD", "Memcpy DtoH")
"""Short names of copies between host and device."""

_OPERATORS = ("aten::", "autograd::", "torch::", "c10d::")
_WRAPPERS = {
    "elementwise": re.compile(r"elementwise"),
    "reduce": re.compile(r"reduce_kernel$|DeviceReduce"),
    "foreach": re.compile(r"multi_tensor_apply"),
    "cutlass": re.compile(r"\b(cutlass::)?(Kernel2?|device_kernel)$"),
}
"""Kernels whose name says how they iterate; what they compute stands in their template's arguments."""

_TELLING = re.compile(r"(?:launch_|cutlass_|Flash|Gemm)\w+|\w*(?:[Ff]unctor|_kernel|Kernel|Ops)\w*|\w+_cuda\b")
_GENERIC = re.compile(r"(?:gpu_kernel|opmath_)\w*|\w*(?:elementwise|multi_tensor)\w*|[AB]?(?:Unary|Binary)Functor")
_VAGUE = re.compile(r"(global|device)?_?kernel_?\d*", re.IGNORECASE)
_TILE = re.compile(r"_(?:tilesize|MT\d|\d+x\d).*")

_ELEMENTWISE_OPS = (
    "add|sub|mul|div|neg|abs|exp|log|log1p|sqrt|rsqrt|pow|reciprocal|sin|cos|tanh|sigmoid|relu|gelu|silu|elu|"
    "leaky_relu|hardtanh|hardswish|softplus|threshold|clamp|clamp_min|clamp_max|where|masked_fill|fill|zero|copy|"
    "lerp|addcmul|addcdiv|square|sign|floor|ceil|round|maximum|minimum|eq|ne|lt|le|gt|ge|logical_[a-z]+|"
    "bitwise_[a-z]+|bernoulli|uniform|normal|random|dropout|native_dropout|nan_to_num|erf|mse_loss"
)
_COMMUNICATION = "nccl|rccl|^c10d::|^gloo:|all_?reduce|reduce_?scatter|all_?gather"
_OPTIMIZER = "^foreach|^aten::_foreach|^aten::_fused_(?:adam|sgd)|multi_tensor|fused_?adam"
_NORMALISATION = r"norm(?!al)|rowwisemoments|^bn_|gammabeta"
_MATRIX = "gemm|gemv|cutlass|cublas|nvjet|xmma|wgmma|matmul|^cijk_|splitk|^dot_kernel"
_MATRIX_OPS = "addmm|mm|bmm|baddbmm|linear|addmv|mv|dot|einsum"
_REDUCTION_OPS = "sum|mean|amax|amin|max|min|argmax|argmin|var|std|prod|cumsum"
_INDEXING = "index|gather|scatter|embedding|catarray|permute|transpose|sort|topk|^aten::(?:cat|stack)$"

_FAMILIES: tuple[tuple[Family, re.Pattern[str]], ...] = (
    ("communication", re.compile(_COMMUNICATION)),
    ("attention", re.compile(r"flash|fmha|attention|sdpa|\bmha")),
    ("optimizer", re.compile(_OPTIMIZER)),
    ("softmax", re.compile("softmax")),
    ("normalisation", re.compile(_NORMALISATION)),
    ("convolution", re.compile("conv|winograd|wgrad|dgrad|fprop|scudnn")),
    ("matrix-product", re.compile(rf"{_MATRIX}|^aten::(?:{_MATRIX_OPS})_?$")),
    ("elementwise", re.compile(rf"elementwise|pointwise|^triton_poi|^aten::({_ELEMENTWISE_OPS})_?(_backward)?$")),
    ("reduction", re.compile(rf"reduce|^triton_(?:red|per)|^aten::(?:{_REDUCTION_OPS})$")),
    ("indexing", re.compile(_INDEXING)),
)
"""The first that is found in the short name decides."""


@lru_cache(maxsize=65536)
def short(name: str) -> str:
    """One name for a kernel's variants: no return type, arguments, namespaces or tile sizes."""
    if name.startswith(("Memcpy", "Memset", "CopyHost", "CopyDevice")):
        return f"Memcpy {copied(name)[0]}" if "Memset" not in name else "Memset"
    name = name.replace("autograd::engine::evaluate_function: ", "autograd: ")
    path, template = _split(name.replace("(anonymous namespace)::", ""))
    if not path or " " in path or path.startswith(_OPERATORS):
        return name[:LONGEST]
    *above, last = path.split("::")
    for label, wrapper in _WRAPPERS.items():
        if wrapper.search(last if label != "cutlass" else path):
            return _told(label, template, last)[:LONGEST]
    if above and _VAGUE.fullmatch(last):
        last = f"{above[-1]}::{last}"
    return (_TILE.sub("", last) or last)[:LONGEST]


@lru_cache(maxsize=65536)
def family(name: str) -> Family:
    """What a kernel with this full name does; `other` where its name does not tell."""
    words = short(name)
    if words.startswith("Mem"):
        return "memset" if words == "Memset" else "copy"
    return next((kind for kind, pattern in _FAMILIES if pattern.search(words.lower())), "other")


def copied(name: str) -> tuple[str, bool | None]:
    """`HtoD` and whether the host's memory is pageable, of `Memcpy HtoD (Pageable -> Device)`."""
    words = re.sub(r"(Host|Device)To(Host|Device)", lambda found: f"{found[1][0]}to{found[2][0]}", name)
    kind = re.search(r"[A-Z]to[A-Z]", words)
    memory = re.search(r"Pageable|Pinned", name)
    return (kind[0] if kind else words), (memory[0] == "Pageable" if memory else None)


def _told(label: str, template: str, last: str) -> str:
    """`elementwise CUDAFunctor_add`; for CUTLASS the inner name, which says more than the wrapper."""
    telling = next((word for word in _TELLING.findall(template) if not _GENERIC.fullmatch(word)), "")
    if label == "cutlass":
        told = _TILE.sub("", telling) or last
        return told if "cutlass" in told else f"cutlass {told}"
    return f"{label} {telling}" if telling else last


def _split(name: str) -> tuple[str, str]:
    """The qualified name without return type and arguments, and everything between its angle brackets."""
    path, template, depth = "", "", 0
    for char in name:
        depth -= char == ">"
        if depth == 0 and char == "(":
            break
        if depth > 0:
            template += char
        elif char not in "<>":
            path += char
        depth += char == "<"
    typed = name.startswith(("void ", "std::"))
    return (path.split() or [""])[-1] if typed else path.strip(), template
