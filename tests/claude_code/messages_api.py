"""A scripted stand-in for the Messages API on loopback; standard library only.

A script is a list of actors, the most particular first. An actor is a name, a predicate over the request and a
list of turns. A request goes to the first actor that accepts it and is answered with that actor's next turn: a
list of content blocks, or a function of the request that returns one, so that a scripted model can read what a
tool really printed and pass it on.

A request that no actor wants, or for which the actor has no turn left, is answered with a text turn (an HTTP
error would be retried) and noted in `errors`; `played_out()` asserts that there were none and that every turn
was used.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Block = dict[str, Any]
_ids = itertools.count(1)


def text(words: str) -> Block:
    """A text block."""
    return {"type": "text", "text": words}


def tool(tool_name: str, **tool_input: Any) -> Block:
    """A tool call."""
    return {"type": "tool_use", "id": f"toolu_fake_{next(_ids):06d}", "name": tool_name, "input": tool_input}


def bash(command: str) -> Block:
    """A call of the Bash tool."""
    return tool("Bash", command=command, description="as scripted")


def http_error(status: int, kind: str = "overloaded_error", **headers: str) -> Block:
    """As a turn's only block: answer with an HTTP error instead."""
    return {"type": "http_error", "status": status, "kind": kind, "headers": headers}


def cut() -> Block:
    """As a turn's only block: begin a stream and close the connection in the middle."""
    return {"type": "cut"}


@dataclass
class Call:
    """One request as it arrived."""

    n: int
    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    actor: str | None = None

    @property
    def agent_id(self) -> str | None:
        """Which subagent asks; None for the main thread."""
        return self.headers.get("x-claude-code-agent-id")

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.body.get("model", ""))

    @property
    def system(self) -> str:
        """The system prompt."""
        return _flat(self.body.get("system"))

    @property
    def tools(self) -> list[str]:
        """Names of the tools on offer."""
        return [t.get("name", "?") for t in self.body.get("tools") or []]

    @property
    def said(self) -> str:
        """Every text and tool result in the messages, whoever said it."""
        return "\n".join(t for m in self.body.get("messages") or [] for t in _texts(m["content"]))

    def said_by(self, role: str) -> str:
        """Every text of one role."""
        return "\n".join(
            t for m in self.body.get("messages") or [] if m["role"] == role for t in _texts(m["content"])
        )

    @property
    def results(self) -> list[tuple[bool, str]]:
        """(is_error, text) of every tool result, the oldest first."""
        return [
            (bool(b.get("is_error")), _flat(b.get("content")))
            for m in self.body.get("messages") or []
            if isinstance(m["content"], list)
            for b in m["content"]
            if b["type"] == "tool_result"
        ]

    @property
    def last(self) -> str:
        """The newest tool result."""
        return self.results[-1][1]


def _flat(content: Any) -> str:
    if not content:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(b.get("text", f"[{b.get('type')}]") for b in content)


def _texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for block in content:
        if block["type"] == "text":
            yield block["text"]
        elif block["type"] == "tool_result":
            yield _flat(block.get("content"))


def saying(marker: str) -> Callable[[Call], bool]:
    """Accepts a request whose system prompt holds `marker`, a line of its agents/*.md."""
    return lambda call: marker in call.system


def anyone(_: Call) -> bool:
    """Accepts every request."""
    return True


Turn = Sequence[Block] | Callable[[Call], Sequence[Block]]


@dataclass
class Actor:
    """Who answers which requests with what."""

    name: str
    when: Callable[[Call], bool]
    turns: list[Turn]
    loop: bool = False
    """Play the last turn for ever."""
    at: int = 0


@dataclass
class MessagesAPI:
    """The server; use it as a context manager."""

    actors: list[Actor]
    log: list[Call] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def calls(self, actor: str | None = None) -> list[Call]:
        """The requests that an actor answered; all of them without a name."""
        return [c for c in self.log if c.actor not in (None, "probe") and actor in (None, c.actor)]

    def played_out(self) -> None:
        """Assert that the script was played to its end, and no further."""
        left = {a.name: f"{a.at} of {len(a.turns)}" for a in self.actors if not a.loop and a.at < len(a.turns)}
        assert (self.errors, left) == ([], {}), "the script was not played as written"

    def answer(self, call: Call) -> list[Block]:
        """The next turn for a request."""
        with self._lock:
            if call.body.get("max_tokens") == 1:  # the CLI asks whether a model exists
                call.actor = "probe"
                return [text("ok")]
            actor = next((a for a in self.actors if a.when(call)), None)
            if actor is None:
                self.errors.append(f"no actor wants: …{call.said[-300:]}")
                return [text("SCRIPT: no actor wants this")]
            call.actor = actor.name
            if actor.at >= len(actor.turns) and not actor.loop:
                self.errors.append(f"{actor.name} has no turn {actor.at + 1}: …{call.said[-300:]}")
                return [text(f"SCRIPT: {actor.name} has no turn left")]
            turn = actor.turns[min(actor.at, len(actor.turns) - 1)]
            actor.at += 1
            try:
                return list(turn(call) if callable(turn) else turn)
            except Exception as error:
                self.errors.append(f"{actor.name}, turn {actor.at}: {error!r}; last said …{call.said[-300:]}")
                return [text("SCRIPT: the turn failed")]

    def keep(self, handler: BaseHTTPRequestHandler) -> Call:
        """Read a request and log it."""
        raw = handler.rfile.read(int(handler.headers.get("content-length") or 0))
        headers = {k.lower(): v for k, v in handler.headers.items()}
        with self._lock:
            body = json.loads(raw) if raw else {}
            call = Call(len(self.log), handler.command, handler.path.split("?")[0], headers, body)
            self.log.append(call)
        return call


def _usage(call: Call, blocks: list[Block]) -> dict[str, int]:
    # Deterministic and plausible: four bytes a token. Budgets and compaction read it.
    size, answer = len(json.dumps(call.body)) // 4, max(1, len(json.dumps(blocks)) // 4)
    return {
        "input_tokens": size,
        "output_tokens": answer,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }


def _message(call: Call, blocks: list[Block]) -> dict[str, Any]:
    stop = "tool_use" if any(b["type"] == "tool_use" for b in blocks) else "end_turn"
    return {
        "id": f"msg_fake_{call.n:06d}", "type": "message", "role": "assistant", "model": call.model,
        "content": blocks, "stop_reason": stop, "stop_sequence": None, "usage": _usage(call, blocks),
    }  # fmt: skip


def _events(call: Call, blocks: list[Block]) -> Iterator[dict[str, Any]]:
    message = _message(call, blocks)
    begun = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    for i, block in enumerate(blocks):
        if block["type"] == "tool_use":
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            start = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        yield {"type": "content_block_start", "index": i, "content_block": start}
        yield {"type": "content_block_delta", "index": i, "delta": delta}
        yield {"type": "content_block_stop", "index": i}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _handler(api: MessagesAPI) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def _json(self, status: int, data: Any, headers: dict[str, str] | None = None) -> None:
            raw = json.dumps(data).encode()
            self.send_response(status)
            own = {"content-type": "application/json", "content-length": str(len(raw))}
            for k, v in {**own, **(headers or {})}.items():
                self.send_header(k, v)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(raw)

        def _error(self, status: int, kind: str, headers: dict[str, str] | None = None) -> None:
            self._json(status, {"type": "error", "error": {"type": kind, "message": f"fake {kind}"}}, headers)

        def do_HEAD(self) -> None:
            api.keep(self)
            self._json(200, {})

        def do_GET(self) -> None:
            api.keep(self)
            self._error(404, "not_found_error")

        def do_POST(self) -> None:
            call = api.keep(self)
            if call.path == "/v1/messages/count_tokens":
                self._json(200, {"input_tokens": len(json.dumps(call.body)) // 4})
            elif call.path != "/v1/messages":
                self._error(404, "not_found_error")
            else:
                self._turn(call, api.answer(call))

        def _turn(self, call: Call, blocks: list[Block]) -> None:
            first = blocks[0] if blocks else text("")
            if first["type"] == "http_error":
                self._error(first["status"], first["kind"], first["headers"])
                return
            broken = first["type"] == "cut"
            blocks = [text("a stream that is cut")] if broken else blocks
            if not call.body.get("stream"):
                self._json(200, _message(call, blocks))
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for event in itertools.islice(_events(call, blocks), 3 if broken else None):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            self.close_connection = True

    return Handler
