"""Python's garbage collector, of which a command that lives for seconds needs little."""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """Collect rarely: imports make tens of thousands of objects that stay, and each collection looks at them."""
    gc.set_threshold(100_000)


def skip_last_collection() -> None:
    """Keep the interpreter from a last look at every object as it ends: a second, where PyTorch is imported."""
    gc.freeze()
