from __future__ import annotations

import mmap
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from stack_kit import stack_bytes

from warpsmith.lab.workers.calls import small_stack

SIZE = 1 << 19
FRAME = """
int touch(void) {
  volatile char room[1 << 20];
  room[0] = 7;
  return room[0];
}
"""
PROGRAM = f"""
import ctypes, mmap, sys
from warpsmith.lab.workers.calls import small_stack

touch = ctypes.CDLL(sys.argv[1]).touch
small_stack.call_on_stack(int, {SIZE})
buffers = [mmap.mmap(-1, 8 << 20) for _ in range(8)]
print(small_stack.call_on_stack(touch, int(sys.argv[2])), flush=True)
"""
"""Whoever keeps a stack for the next thread has it above buffers."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("frame")
    (folder / "frame.c").write_text(FRAME)
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", "frame.so", "frame.c"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "frame.so"


def test_a_call_has_its_own_thread_and_stack() -> None:
    assert small_stack.call_on_stack(stack_bytes, SIZE) == SIZE
    assert small_stack.call_on_stack(threading.get_ident, SIZE) != threading.get_ident()


def test_what_a_call_raises_reaches_its_caller() -> None:
    def fail() -> None:
        raise ValueError("seven")

    with pytest.raises(ValueError, match="seven"):
        small_stack.call_on_stack(fail, SIZE)


def test_memory_is_free_again() -> None:
    def mapped_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE

    small_stack.call_on_stack(int, SIZE)
    before = mapped_bytes()
    for _ in range(20):
        small_stack.call_on_stack(int, SIZE)
    assert mapped_bytes() - before < small_stack.GUARD


@pytest.mark.parametrize(("size", "expected"), [(SIZE, (-signal.SIGSEGV, "")), (4 << 20, (0, "7\n"))])
def test_a_frame_that_steps_over_a_page_ends_the_process(
    library: Path, size: int, expected: tuple[int, str]
) -> None:
    command = [sys.executable, "-c", PROGRAM, str(library), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == expected
