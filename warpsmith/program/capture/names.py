"""Names of PyTorch, Python and numpy that matter to a CUDA graph, with the rule that each falls under."""

from __future__ import annotations

from warpsmith.program.capture.models import Certainty

ON_DEVICE = ("device", "mask")
"""Kinds of values that are tensors on the device."""

METHODS = {
    "item": "host-read", "tolist": "to-host", "numpy": "to-host", "cpu": "to-host", "nonzero": "data-shape",
    "argwhere": "data-shape", "masked_select": "data-shape", "unique": "data-shape", "bincount": "data-shape",
    "unique_consecutive": "data-shape", "equal": "host-read", "allclose": "host-read", "is_nonzero": "truth",
    "cholesky": "error-check", "inverse": "error-check",
}  # fmt: skip
"""Methods that block where they are a tensor's on the device."""

TELLING = {"item", "tolist", "numpy", "cpu", "nonzero", "masked_select"}
"""Methods that hardly anything but a tensor has."""

FUNCTIONS = {
    "torch.nonzero": "data-shape", "torch.argwhere": "data-shape", "torch.masked_select": "data-shape",
    "torch.unique": "data-shape", "torch.unique_consecutive": "data-shape", "torch.bincount": "data-shape",
    "torch.equal": "host-read", "torch.allclose": "host-read", "torch.is_nonzero": "truth",
    "torch.testing.assert_close": "host-read",
    "torch.inverse": "error-check", "torch.cholesky": "error-check",
    **{f"torch.linalg.{name}": "error-check" for name in
       ("cholesky", "inv", "solve", "eigh", "eigvalsh", "svd", "svdvals", "lstsq", "det", "slogdet", "pinv")},
    "math.sqrt": "host-read", "math.log": "host-read", "math.exp": "host-read", "math.isnan": "host-read",
    "math.isfinite": "host-read", "math.isinf": "host-read",
    "numpy.asarray": "to-host", "numpy.array": "to-host", "numpy.mean": "to-host",
}  # fmt: skip
"""Functions that block where they are given a tensor on the device."""

COLLECTIVES = {
    "all_reduce", "all_gather", "all_gather_into_tensor", "reduce_scatter", "reduce_scatter_tensor", "broadcast",
    "reduce", "scatter", "gather", "all_to_all", "all_to_all_single", "send", "recv", "isend", "irecv",
    "batch_isend_irecv",
}  # fmt: skip
"""Functions of torch.distributed that move tensors."""

ALWAYS: tuple[tuple[str, str, Certainty], ...] = (
    ("torch.cuda.synchronize", "synchronize", "certain"),
    ("torch.accelerator.synchronize", "synchronize", "certain"),
    ("torch.cuda.empty_cache", "allocator", "likely"),
    ("torch.cuda.graph", "graphed", "likely"),
    ("torch.cuda.CUDAGraph", "graphed", "likely"),
    ("torch.cuda.make_graphed_callables", "graphed", "likely"),
    ("torch.cuda.manual_seed", "seed", "likely"),
    ("torch.manual_seed", "seed", "likely"),
    ("torch.seed", "seed", "likely"),
    ("torch.random.", "seed", "likely"),
    ("torch.cuda.get_rng_state", "seed", "likely"),
    ("torch.cuda.set_rng_state", "seed", "likely"),
    ("torch.get_rng_state", "seed", "look"),
    ("torch.cuda.stream", "stream", "look"),
    ("torch.cuda.Stream", "stream", "look"),
    ("torch.cuda.Event", "stream", "look"),
    ("torch.compile", "compiled", "likely"),
    ("random.", "python-random", "likely"),
    ("numpy.random.", "python-random", "likely"),
    ("time.sleep", "clock", "look"),
    ("time.", "clock", "look"),
    ("datetime.", "clock", "look"),
    ("logging.", "output", "look"),
)
"""Names outside of the user's files that matter whatever they are given; the first that fits."""
