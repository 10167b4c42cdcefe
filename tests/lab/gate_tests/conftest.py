"""Memory that an attack may take in these tests: to fill half of a machine costs a core many seconds."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from warpsmith.core import gate_rules

LIMIT_BYTES = 3 << 30
"""Memory limit of a worker, far above what any control needs."""


@pytest.fixture(scope="session", autouse=True)
def low_memory_limit() -> Iterator[None]:
    """Limit workers to `LIMIT_BYTES` where half of the machine's memory is more."""
    with pytest.MonkeyPatch.context() as patch:
        divisor = psutil.virtual_memory().total // LIMIT_BYTES
        patch.setattr(gate_rules, "MEMORY_DIVISOR", max(gate_rules.MEMORY_DIVISOR, divisor))
        yield
