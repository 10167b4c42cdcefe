"""Start gate: a page that the grader, all ranks and their GPUs see. GPUs wait there until the grader opens it."""

from __future__ import annotations

import ctypes
import mmap
import os
import time

GATE_SECONDS = 0.1
"""Seconds for which the gate stays shut for a rank that has not issued all calls. Chosen: a version that waits for
its GPU in a call cannot issue the next one, and others issue a block in some milliseconds."""

PAGE_BYTES = mmap.PAGESIZE

_STRIDE = 16
"""Words from one rank's to the next one's, which are apart by a cache line."""


class GatePage:
    """The page as one process sees it: words of 32 bits. Word 0 is the number of the last block that may begin."""

    def __init__(self, file: int) -> None:
        """Map the page from a file that all processes share."""
        self._memory = mmap.mmap(file, PAGE_BYTES)
        self._words = memoryview(self._memory).cast("i")

    @property
    def address(self) -> int:
        """Address of the page in this process."""
        return ctypes.addressof(ctypes.c_char.from_buffer(self._memory))

    @property
    def opened(self) -> int:
        """Number of the last block that may begin."""
        return self._words[0]

    def open_block(self, block: int) -> None:
        """Let a block begin on all GPUs."""
        self._words[0] = block

    def report_arrival(self, rank: int, block: int) -> None:
        """Say that this rank's GPU waits at the gate."""
        self._words[_STRIDE * (rank + 1)] = block

    def report_issue(self, rank: int, block: int) -> None:
        """Say that this rank has issued all calls of a block."""
        self._words[_STRIDE * (rank + 1) + 1] = block

    def arrived(self, rank: int, block: int) -> bool:
        """Return whether a rank's GPU waits for this block."""
        return self._words[_STRIDE * (rank + 1)] == block

    def issued(self, rank: int, block: int) -> bool:
        """Return whether a rank has issued all calls of this block."""
        return self._words[_STRIDE * (rank + 1) + 1] == block


class StartGate:
    """The gate as the grader works it, block after block."""

    def __init__(self, ranks: int) -> None:
        self._ranks, self._block, self._since = ranks, 0, 0.0
        self.file = os.memfd_create("warpsmith-gate", os.MFD_CLOEXEC)
        """File of the page, for the ranks."""
        os.ftruncate(self.file, PAGE_BYTES)
        self._page = GatePage(self.file)
        self.ahead = True
        """True if all ranks had issued all calls of the last block when it began."""

    def close(self) -> None:
        """Close the file; the ranks have their own."""
        os.close(self.file)

    def shut(self) -> int:
        """Shut the gate and return the number of the next block."""
        self._block, self._since = self._block + 1, 0.0
        return self._block

    @property
    def is_open(self) -> bool:
        """True if the last block may begin."""
        return self._page.opened >= self._block

    def look(self) -> None:
        """Open the gate if all ranks are there, and have issued their calls or had their time for it."""
        ranks, page, block = range(self._ranks), self._page, self._block
        if not all(page.arrived(rank, block) for rank in ranks):
            return
        self._since = self._since or time.monotonic()
        self.ahead = all(page.issued(rank, block) for rank in ranks)
        if self.ahead or time.monotonic() - self._since > GATE_SECONDS:
            page.open_block(block)
