"""Messages between the grader and its workers: length-prefixed JSON over a socket, and open files.

The grader never unpickles what a worker says.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Callable
from select import select
from typing import Any

Message = dict[str, Any]

_HEADER = struct.Struct("<I")
_LONGEST = 1 << 20
_STALL_SECONDS = 10.0


class ChannelClosed(Exception):
    """The other side is gone."""


class Channel:
    """One end of a socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    @classmethod
    def pair(cls) -> tuple[Channel, socket.socket]:
        """Our end, and the socket that the other process will wrap."""
        ours, theirs = socket.socketpair()
        ours.settimeout(_STALL_SECONDS)  # a worker may send half a message and stop
        return cls(ours), theirs

    def send(self, message: Message, files: tuple[int, ...] = ()) -> None:
        """Send one message, with open file descriptors beside it; raises Closed where the other side is gone."""
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
            Closed: the other side is gone, or sent something that is no message.
        """
        try:
            header, descriptors, _, _ = socket.recv_fds(self._socket, _HEADER.size, files)
            (size,) = _HEADER.unpack(header)
            if size > _LONGEST:
                raise ChannelClosed("a message longer than any of ours")
            message = _parse_message(self._exactly(size).decode())
        except (OSError, struct.error, ValueError, RecursionError) as error:
            raise ChannelClosed from error
        if not isinstance(message, dict):
            raise ChannelClosed("not a message")
        return message, descriptors

    def ready(self, seconds: float) -> bool:
        """Whether something can be received within `seconds`."""
        return bool(select([self._socket], [], [], seconds)[0])

    def spin(self, seconds: float) -> None:
        """Wait for something to receive for so long, without sleeping."""
        until = time.monotonic() + seconds
        while not self.ready(0.0) and time.monotonic() < until:
            pass

    def wait(self, deadline: float, every: float, meanwhile: Callable[[], None]) -> bool:
        """Wait until `deadline` (monotonic), calling `meanwhile` each `every` seconds; False: too late."""
        while not self.ready(max(0.0, min(every, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
            meanwhile()
        return True

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def _exactly(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise ChannelClosed
            parts += part
        return parts


def _parse_message(text: str) -> Any:  # noqa: ANN401 - what the other side sent
    """The message, `?` for each half of a surrogate pair: no record could hold that."""
    message = json.loads(text)
    if "\\u" not in text:
        return message
    return json.loads(json.dumps(message, ensure_ascii=False).encode(errors="replace"))
