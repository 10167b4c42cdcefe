"""Messages between the grader and its workers: length-prefixed JSON over a socket, and open files.

The grader never unpickles anything that a worker sends.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable
from select import select
from typing import Any

from warpsmith.core import gate_rules

Message = dict[str, Any]

_HEADER = struct.Struct("<I")


class ChannelClosed(Exception):
    """The process at the other end has closed the channel."""


class Channel:
    """One end of a socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    @classmethod
    def pair(cls) -> tuple[Channel, socket.socket]:
        """Return our end of a new channel, and the socket that the other process will wrap."""
        own_end, worker_end = socket.socketpair()
        own_end.settimeout(gate_rules.MESSAGE_STALL_SECONDS)  # A worker may send half a message and stop.
        return cls(own_end), worker_end

    def send(self, message: Message, files: tuple[int, ...] = ()) -> None:
        """Send one message together with open file descriptors.

        Raises:
            ChannelClosed: the other side is gone.
        """
        data = json.dumps(message).encode()
        try:
            if files:
                socket.send_fds(self._socket, [_HEADER.pack(len(data))], list(files))
                self._socket.sendall(data)
            else:
                self._socket.sendall(_HEADER.pack(len(data)) + data)
        except OSError as error:
            raise ChannelClosed from error

    def receive(self, files: int = 0) -> tuple[Message, list[int]]:
        """Wait for one message and up to `files` descriptors.

        Raises:
            ChannelClosed: the other side is gone, or sent something that is not a message.
        """
        try:
            header, descriptors, _, _ = socket.recv_fds(self._socket, _HEADER.size, files)
            (size,) = _HEADER.unpack(header)
            if size > gate_rules.MESSAGE_BYTES:
                raise ChannelClosed("the message is longer than any that we send")
            message = _parse_message(self._exactly(size).decode())
        except (OSError, struct.error, ValueError, RecursionError) as error:
            raise ChannelClosed from error
        if not isinstance(message, dict):
            raise ChannelClosed("the message is not a JSON object")
        return message, descriptors

    def fileno(self) -> int:
        """Return the number of the socket, for `select` over several channels."""
        return self._socket.fileno()

    def ready(self, seconds: float) -> bool:
        """Return whether something can be received within `seconds`."""
        return bool(select([self._socket], [], [], seconds)[0])

    def spin(self, seconds: float) -> None:
        """Wait without sleeping, for up to `seconds`, until something can be received."""
        until = time.monotonic() + seconds
        while not self.ready(0.0) and time.monotonic() < until:
            pass

    def wait(self, deadline: float, every: float, meanwhile: Callable[[], None]) -> bool:
        """Wait until `deadline` (monotonic clock) for a message and call `meanwhile` every `every` seconds.

        Returns False if the deadline passes.
        """
        while not self.ready(max(0.0, min(every, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
            meanwhile()
        return True

    def close(self) -> None:
        """Close this end of the channel."""
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise ChannelClosed
            parts += part
        return parts


def _parse_message(text: str) -> Any:  # noqa: ANN401 - the other side may send any JSON
    """Parse a message and replace each half of a surrogate pair by `?`, since no record could hold it."""
    message = json.loads(text)
    if "\\u" not in text:
        return message
    return json.loads(json.dumps(message, ensure_ascii=False).encode(errors="replace"))
