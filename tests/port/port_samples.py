"""A record of a port."""

from __future__ import annotations

from warpsmith.port.models import PortRecord

OWN = {"num_warps": 32, "num_stages": 2, "registers": 58, "spill_bytes": 0, "shared_bytes": 128}


def make_port(**changes: object) -> PortRecord:
    """A version that was accepted on an H200, with a kernel that needs other constants on gfx942."""
    kernel = {
        "name": "stream_kernel",
        "workloads": ("512x131072", "8x131072"),
        "variant": "x_ptr *bf16, num_warps 32",
        "own": {**OWN, "resident_warps": 32, "limit": "registers", "load_bits": 128},
        "instructions": 710,
        "counts": ({"group": "tensor cores", "kind": "HGMMA.64x64x16", "count": 4},),
    }
    too_large = {**OWN, "resident_warps": 0, "limit": "threads of a block", "obstacle": "has 2048 threads"}
    fitting = {**OWN, "num_warps": 16, "resident_warps": 32, "limit": "registers"}
    outdated = ("num_warps 16: 32 of 32 resident warps instead of 0",)
    moved = {**kernel, "own": too_large, "changed": (fitting,), "counts": (), "advice": outdated}
    record = {
        "definition": "softmax",
        "definition_sha256": "1" * 64,
        "solution": "triton/v7",
        "solution_sha256": "2" * 64,
        "accepted_on": "h200",
        "lab_sha256": "3" * 64,
        "libraries": {"triton": "3.7.1"},
        "made": "2026-11-26 18:00",
        "numerics": {"state": "correct", "workloads": ("1x1", "2x2"), "skipped": 7},
        "origin": {
            "target": "h200",
            "arch": "sm_90a",
            "warp_size": 32,
            "most_warps": 64,
            "outcome": "transfers",
            "kernels": (kernel,),
        },
        "targets": (
            {
                "target": "mi300x",
                "arch": "gfx942",
                "warp_size": 64,
                "most_warps": 32,
                "outcome": "needs other constants",
                "kernels": (moved,),
                "lacks": ("wgmma", "TMA"),
                "losses": ("wgmma: products use other instructions",),
                "notes": ("stream_kernel: most global loads move 32 bits",),
            },
            {
                "arch": "sm_80",
                "warp_size": 32,
                "outcome": "does not compile",
                "error": "type fp8e4nv not supported | in *this* architecture",
            },
        ),
    }
    return PortRecord.model_validate({**record, **changes})
