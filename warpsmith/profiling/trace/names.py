"""Names in a trace: short names that group a kernel's variants, families of kernels, and ranges of steps."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from warpsmith.profiling.trace.models import Family

SCRIPT_KEY = "warpsmith_script"
"""Top-level key of a Chrome trace that holds the name of its script."""

STEP = re.compile(r"(profiler|train(?:ing)?[ _])?step[ _#:]*\d*", re.IGNORECASE)
"""Pattern of ranges that are steps: `step`, `step 3`, `train_step`, `ProfilerStep#3`."""

SHORT_NAME_LENGTH = 48
"""Largest number of characters of a short name."""

HOST_COPIES = ("Memcpy HtoD", "Memcpy DtoH")
"""Short names of copies between host and device."""

_OPERATORS = ("aten::", "autograd::", "torch::", "c10d::", "_c10d")
_WRAPPERS = {
    "elementwise": re.compile(r"elementwise"),
    "reduce": re.compile(r"reduce_kernel$|DeviceReduce"),
    "foreach": re.compile(r"multi_tensor_apply"),
    "cutlass": re.compile(r"\b(cutlass::)?(Kernel2?|device_kernel)$"),
}
"""Kernels whose name says how they iterate; the operation is in their template arguments."""

_OPERATION = re.compile(r"(?:launch_|cutlass_|Flash|Gemm)\w+|\w*(?:[Ff]unctor|_kernel|Kernel|Ops)\w*|\w+_cuda\b")
_GENERIC = re.compile(r"(?:gpu_kernel|opmath_)\w*|\w*(?:elementwise|multi_tensor)\w*|[AB]?(?:Unary|Binary)Functor")
_NONDESCRIPT = re.compile(r"(global|device)?_?kernel_?\d*", re.IGNORECASE)
_TILE = re.compile(r"_(?:tilesize|MT\d|\d+x\d).*")

_ELEMENTWISE_OPS = (
    "add|sub|mul|div|neg|abs|exp|log|log1p|sqrt|rsqrt|pow|reciprocal|sin|cos|tanh|sigmoid|relu|gelu|silu|elu|"
    "leaky_relu|hardtanh|hardswish|softplus|threshold|clamp|clamp_min|clamp_max|where|masked_fill|fill|zero|copy|"
    "lerp|addcmul|addcdiv|square|sign|floor|ceil|round|maximum|minimum|eq|ne|lt|le|gt|ge|logical_[a-z]+|"
    "bitwise_[a-z]+|bernoulli|uniform|normal|random|dropout|native_dropout|nan_to_num|erf|mse_loss"
)
_COMMUNICATION = "nccl|rccl|^_?c10d|^gloo:|all_?reduce|reduce_?scatter|all_?gather"
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
"""The first pattern that matches the short name decides the family."""


@lru_cache(maxsize=65536)
def short_kernel_name(name: str) -> str:
    """Return one name for a kernel's variants: no return type, arguments, namespaces or tile sizes."""
    if name.startswith(("Memcpy", "Memset", "CopyHost", "CopyDevice")):
        return f"Memcpy {copy_kind(name)[0]}" if "Memset" not in name else "Memset"
    name = name.replace("autograd::engine::evaluate_function: ", "autograd: ")
    path, template = _split(name.replace("(anonymous namespace)::", ""))
    if not path or " " in path or path.startswith(_OPERATORS):
        return name[:SHORT_NAME_LENGTH]
    *above, last = path.split("::")
    for label, wrapper in _WRAPPERS.items():
        if wrapper.search(last if label != "cutlass" else path):
            return _wrapped_name(label, template, last)[:SHORT_NAME_LENGTH]
    if above and _NONDESCRIPT.fullmatch(last):
        last = f"{above[-1]}::{last}"
    return (_TILE.sub("", last) or last)[:SHORT_NAME_LENGTH]


@lru_cache(maxsize=65536)
def kernel_family(name: str) -> Family:
    """Return the family of a kernel from its full name; `other` if the name does not tell."""
    words = short_kernel_name(name)
    if words.startswith("Mem"):
        return "memset" if words == "Memset" else "copy"
    return next((kind for kind, pattern in _FAMILIES if pattern.search(words.lower())), "other")


def copy_kind(name: str) -> tuple[str, bool | None]:
    """Return kind and memory of `Memcpy HtoD (Pageable ->
    Device)`: `HtoD`, and whether the host memory is pageable."""
    words = re.sub(r"(Host|Device)To(Host|Device)", lambda match: f"{match[1][0]}to{match[2][0]}", name)
    kind = re.search(r"[A-Z]to[A-Z]", words)
    memory = re.search(r"Pageable|Pinned", name)
    return (kind[0] if kind else words), (memory[0] == "Pageable" if memory else None)


def _wrapped_name(label: str, template: str, last: str) -> str:
    """Return a wrapper's name with its operation: `elementwise
    CUDAFunctor_add`; for CUTLASS only the inner name."""
    operation = next((word for word in _OPERATION.findall(template) if not _GENERIC.fullmatch(word)), "")
    if label == "cutlass":
        inner = _TILE.sub("", operation) or last
        return inner if "cutlass" in inner else f"cutlass {inner}"
    return f"{label} {operation}" if operation else last


def _split(name: str) -> tuple[str, str]:
    """Split a name into the qualified name without return type and arguments, and the text in angle brackets."""
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
