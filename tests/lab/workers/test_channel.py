from __future__ import annotations

import os
import socket
import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpsmith.core import gate_rules
from warpsmith.lab.workers.channel import Channel, ChannelClosed


@pytest.fixture
def ends():
    ours, theirs = Channel.pair()
    yield ours, theirs
    ours.close()
    theirs.close()


def test_messages_and_files_travel(ends):
    ours, theirs = ends
    there = Channel(theirs)
    read, write = os.pipe()
    ours.send({"spawn": "é" * 5_000}, (write,))
    message, (copy,) = there.receive(files=2)
    assert message == {"spawn": "é" * 5_000}
    os.write(copy, b"through")
    assert os.read(read, 10) == b"through"
    for file in (read, write, copy):
        os.close(file)
    there.send({"ok": True})
    assert ours.ready(1)
    assert ours.receive() == ({"ok": True}, [])


def test_a_closed_end_is_told(ends):
    ours, theirs = ends
    theirs.close()
    with pytest.raises(ChannelClosed):
        ours.receive()
    with pytest.raises(ChannelClosed):
        ours.send({"do": "call"})


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("<I", 1 << 30),
        struct.pack("<I", 4) + b"nope",
        struct.pack("<I", 2) + b"[]",
        struct.pack("<I", 3) + b"\xff\xfe\xfd",
        struct.pack("<I", 11) + b'{"a":"\xed\xa0\x80"}',  # half a surrogate pair
        b"\x01",
        struct.pack("<I", 5_000) + b"[" * 5_000,  # deeper than the parser goes
    ],
)
def test_what_is_no_message_is_refused(ends, data):
    ours, theirs = ends
    theirs.sendall(data)
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(ChannelClosed):
        ours.receive()


def test_no_half_of_a_surrogate_pair_comes_in(ends):
    ours, theirs = ends
    Channel(theirs).send({"error": "\ud800 odd", "\udcff": ["\ud83d", "\U0001f600", "\\u0041"]})
    assert ours.receive() == ({"error": "? odd", "?": ["?", "\U0001f600", "\\u0041"]}, [])


def test_half_a_message_does_not_hold_the_grader(monkeypatch):
    monkeypatch.setattr(gate_rules, "MESSAGE_STALL_SECONDS", 0.2)
    ours, theirs = Channel.pair()
    theirs.sendall(struct.pack("<I", 100) + b"half")
    started = time.monotonic()
    with pytest.raises(ChannelClosed):
        ours.receive()
    assert time.monotonic() - started < 60  # it would wait for ever
    ours.close()
    theirs.close()


def test_waiting_ends_at_the_deadline_and_watches_meanwhile(ends):
    ours, theirs = ends
    watched = []
    assert not ours.wait(time.monotonic() + 0.1, 0.02, lambda: watched.append(1))
    assert watched
    theirs.sendall(b"x")
    assert ours.wait(time.monotonic() + 5, 0.02, lambda: None)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
framed = st.binary(max_size=64).map(lambda data: struct.pack("<I", len(data)) + data)
pieces = st.one_of(st.binary(max_size=64), framed, st.tuples(framed, st.binary(max_size=8)).map(b"".join))


@settings(derandomize=True, deadline=None, max_examples=150)
@given(pieces)
def test_whatever_is_sent_is_a_message_or_a_hang_up(data):
    ours, theirs = Channel.pair()
    with theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        try:
            message, files = ours.receive()
            assert isinstance(message, dict)
            assert files == []
        except ChannelClosed:
            pass
    ours.close()


@settings(derandomize=True, deadline=None, max_examples=50)
@given(st.dictionaries(st.text(), json_values, max_size=4))
def test_messages_arrive_as_they_were_sent(message):
    ours, theirs = Channel.pair()
    there = Channel(theirs)
    ours.send(message)
    assert there.receive() == (message, [])
    ours.close()
    there.close()
