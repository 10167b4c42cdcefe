"""Features of architectures that a kernel may depend on: which ones a target lacks, and which a version uses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from warpsmith.profiling.assembly.models import CompiledKernel

_HOPPER = ("sm_90a", "sm_100", "sm_120")
_NVIDIA = ("sm_80", "sm_89", *_HOPPER)


class ArchitectureFeature(NamedTuple):
    """Something that not every architecture has."""

    name: str
    """Its name."""
    architectures: tuple[str, ...]
    """Architectures that have it."""
    source: str = ""
    """Regular expression of its use in a version's source; empty if only the machine code shows it."""
    code: str = ""
    """Regular expression of its use in the kinds of instruction; empty if only the source shows it."""
    instead: str = ""
    """Consequence of its absence."""
    instead_on: Mapping[str, str] = {}
    """Consequence on single architectures, where that differs."""


_FEATURES = (
    ArchitectureFeature(
        "wgmma",
        ("sm_90a",),
        code=r"[HQI]GMMA\b",
        instead="products use the target's own matrix instructions, with other tile sizes",
    ),
    ArchitectureFeature(
        "TMA",
        _HOPPER,
        source=r"tensor_descriptor|TensorDescriptor",
        code=r"UTMA(?:LDG|STG|REDG)",
        instead="Triton turns descriptors into plain loads and stores",
    ),
    ArchitectureFeature(
        "clusters",
        _HOPPER,
        source=r"num_ctas\s*[=:]\s*(?!1\b)\w",
        instead="the launch is refused: a path with one block a cluster is needed",
    ),
    ArchitectureFeature(
        "programmatic dependent launch",
        _HOPPER,
        source=r"launch_pdl|gdc_wait|gdc_launch_dependents",
        instead="its instructions are refused: a path without the early start is needed",
    ),
    ArchitectureFeature(
        "PTX",
        _NVIDIA,
        source=r"inline_asm_elementwise|inline_asm\b",
        instead="inline assembly must be written for the target, or left out",
    ),
    ArchitectureFeature(
        "wide asynchronous copies to shared memory by default",
        _NVIDIA,
        code=r"LDGSTS|LDGDEPBAR",
        instead="Triton passes tiles through registers",
        instead_on={
            "gfx950": "the chip has them, but this compiler passes tiles through registers unless"
            " TRITON_HIP_USE_ASYNC_COPY=1 is set"
        },
    ),
    ArchitectureFeature(
        "fp8 products",
        ("sm_89", *_HOPPER, "gfx950"),
        code=r"QG?MMA\b|f8f6f4",
        instead="Triton multiplies in fp16",
        instead_on={
            "gfx942": "Triton multiplies in fp16, at half the rate that the chip has for its own fp8 kinds"
        },
    ),
    ArchitectureFeature(
        "TF32 products by default",
        (*_NVIDIA, "gfx942"),
        code=r"TF32\b|_xf32",
        instead="float32 products stay in float32: slower, and exact where NVIDIA's default rounds to 10 bits",
    ),
    ArchitectureFeature(
        "fp8 e4m3fn",
        ("sm_89", *_HOPPER, "gfx950"),
        source=r"float8_e4m3fn\b|float8e4nv\b",
        instead="Triton refuses the type",
        instead_on={
            "gfx942": "conversions are emulated by many instructions; its own kind is e4m3fnuz, in which the same"
            " bits mean other values, so another library there may misread the results"
        },
    ),
    ArchitectureFeature(
        "fp8 e5m2",
        ("sm_89", *_HOPPER, "gfx950"),
        source=r"float8_e5m2\b|float8e5\b",
        instead="conversions are emulated",
    ),
)


_NOTHING = "nothing takes its place: code that names it is refused"


def missing_features(origin: str, arch: str) -> tuple[str, ...]:
    """Return the features that the architecture of origin has and a target lacks."""
    return tuple(feature.name for feature in _lost(origin, arch))


def feature_losses(
    origin: str, arch: str, source: str, kernels: Sequence[CompiledKernel], *, replaced: bool = True
) -> tuple[str, ...]:
    """Return the features that a version uses and a target lacks, each with what happens instead.

    Args:
        origin: architecture that the version was written for.
        arch: architecture of the target.
        source: text of the version's file, or of all that speaks of its types.
        kernels: the version compiled for its origin.
        replaced: whether the language puts something in the place of what a target lacks.
    """
    kinds = " ".join(count.kind for kernel in kernels for count in kernel.counts)
    return tuple(
        f"{feature.name}: {feature.instead_on.get(arch, feature.instead) if replaced else _NOTHING}"
        for feature in _lost(origin, arch)
        if (feature.source and re.search(feature.source, source))
        or (feature.code and re.search(feature.code, kinds))
    )


def _lost(origin: str, arch: str) -> list[ArchitectureFeature]:
    return [
        feature for feature in _FEATURES if origin in feature.architectures and arch not in feature.architectures
    ]
