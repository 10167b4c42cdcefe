"""Forks the processes of programs from one that has imported PyTorch: starting each anew takes seconds."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from typing import IO

from warpsmith.lab.workers.channel import Channel, ChannelClosed, Message


class Forked:
    """What the runner needs of a process: as `subprocess.Popen` has it."""

    def __init__(self, host: Channel, pid: int) -> None:
        self.pid = pid
        self._host, self._handle, self._code = host, os.pidfd_open(pid), None

    def wait(self, timeout: float | None = None) -> int:
        if self._code is None:
            if not select.select([self._handle], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("a forked program", timeout or 0.0)
            self._host.send({"reap": self.pid})
            self._code = os.waitstatus_to_exitcode(self._host.receive()[0]["status"])
            os.close(self._handle)
        return self._code


class Host:
    """The process that forks."""

    def __init__(self) -> None:
        self._channel, theirs = Channel.pair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())], pass_fds=(theirs.fileno(),)
            )

    def spawn(self, channel: int, output: IO[bytes] | int, env: Mapping[str, str]) -> Forked:
        """Stand in for `runner.spawn_server`."""
        shown = output if isinstance(output, int) else output.fileno()
        self._channel.send({"env": dict(env)}, (channel, shown))
        select.select([self._channel._socket], [], [], 60.0)  # it may still be importing
        return Forked(self._channel, self._channel.receive()[0]["pid"])

    def close(self) -> None:
        self._channel.close()
        self._process.wait()


def main() -> None:
    """Fork and reap as the test says, until it hangs up."""
    import torch
    import torch._dynamo  # PyTorch's optimizers import it

    from warpsmith.program.process import gather, serve, values  # noqa: F401

    torch.set_num_threads(1)  # no thread is there when it forks
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    with contextlib.suppress(ChannelClosed):
        while True:
            message, files = channel.receive(files=2)
            if "reap" in message:
                channel.send({"status": os.waitpid(message["reap"], 0)[1]})
            elif pid := os.fork():
                for file in files:
                    os.close(file)
                channel.send({"pid": pid})
            else:
                channel.close()
                _serve(message, *files, serve.main)


def _serve(message: Message, ours: int, output: int, main) -> None:
    os.setsid()
    for standard in (1, 2):
        os.dup2(output, standard)
    os.close(output)
    os.environ.clear()
    os.environ.update(message["env"])
    sys.argv[:] = ["serve", str(ours)]
    try:
        main()
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
