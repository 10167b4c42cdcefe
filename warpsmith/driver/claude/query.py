"""One question to one agent: a fresh Claude Code session of least power, and what became of it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith.core.spend import AgentPhase
from warpsmith.driver.claude import process as claude_process
from warpsmith.driver.claude.agents import Agent
from warpsmith.driver.claude.heard import Heard

if TYPE_CHECKING:
    from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient

    from warpsmith.core.base import Model

ANSWER = "StructuredOutput"
"""The tool by which Claude Code takes an answer of a given form; an agent that names its tools must name it."""

PATIENCE = 10.0
"""Seconds that an interrupted session may take to say what it cost."""

_TELLING = ("command", "file_path", "pattern", "skill")
"""Arguments of a tool by which people see what it does."""


@dataclass(frozen=True)
class Question:
    """What an agent is asked, and what it may do to answer."""

    phase: AgentPhase
    """The phase that asks."""
    agent: Agent
    """Who is asked."""
    prompt: str
    """What."""
    tools: tuple[str, ...]
    """The tools that it is shown; those that its page does not name are left out."""
    rules: tuple[str, ...]
    """What it may do with them, as Claude Code's permission rules; all else is denied."""
    max_turns: int
    """Answers of the model after which it ends."""
    form: type[Model] | None = None
    """The form of its answer; None: free text."""


@dataclass(frozen=True)
class Session:
    """What all questions of a run share."""

    root: Path
    """The project's root: where agents work."""
    plugin: Path
    """The plugin's folder."""
    campaign: str
    """The campaign's name."""
    model: str | None = None
    """The model for all agents; None: each agent's own."""


def ask(session: Session, question: Question, budget: float | None, tell: Callable[[str], None]) -> Heard:
    """Ask, and listen to the end; Ctrl-C ends the session, not this function.

    Args:
        session: what all questions share.
        question: what is asked.
        budget: dollars that it may cost; None: no limit.
        tell: takes one line about what the agent does.

    Raises:
        MachineLacks: the SDK or the CLI is missing.
    """
    heard = Heard()
    began = time.monotonic()
    with claude_process.launcher() as cli:
        options = _options(session, question, budget, cli)
        options.stderr = heard.stderr.append
        with suppress(asyncio.CancelledError):
            asyncio.run(_listen(options, question, heard, tell))
    heard.seconds = time.monotonic() - began
    return heard


async def _listen(
    options: ClaudeAgentOptions, question: Question, heard: Heard, tell: Callable[[str], None]
) -> None:
    from claude_agent_sdk import AssistantMessage, ClaudeSDKClient, ClaudeSDKError, ResultMessage

    try:
        async with ClaudeSDKClient(options) as client:
            with _interruptible(client, heard):
                await client.query(question.prompt)
                async for message in client.receive_response():
                    if isinstance(message, AssistantMessage):
                        heard.messages[message.message_id or str(len(heard.messages))] = message
                        _follow(message, question, tell)
                    elif isinstance(message, ResultMessage):
                        heard.result = message
    except ClaudeSDKError as error:
        heard.fault = str(error)


@contextmanager
def _interruptible(client: ClaudeSDKClient, heard: Heard) -> Iterator[None]:
    """Ctrl-C asks the session to end and tell what it cost; a second one, or its silence, ends it at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    asked: list[asyncio.Task[None]] = []

    def interrupt() -> None:
        if heard.interrupted and task:
            task.cancel()
        heard.interrupted = True
        asked.append(loop.create_task(_interrupt(client)))
        if task:
            loop.call_later(PATIENCE, task.cancel)

    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def _interrupt(client: ClaudeSDKClient) -> None:
    from claude_agent_sdk import ClaudeSDKError

    with suppress(ClaudeSDKError):
        await client.interrupt()


def _options(session: Session, question: Question, budget: float | None, cli: Path) -> ClaudeAgentOptions:
    from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions

    agent = question.agent
    tools = [tool for tool in agent.tools if tool in question.tools] + ([ANSWER] if question.form else [])
    return ClaudeAgentOptions(
        cwd=session.root,
        cli_path=cli,
        plugins=[{"type": "local", "path": str(session.plugin)}],
        # The plugin's own agent by its own name, with its skills and the tool for its answer added.
        agents={
            agent.address: AgentDefinition(
                description=agent.description,
                prompt=agent.prompt,
                tools=tools,
                model=None if session.model else agent.model,
            )
        },
        extra_args={"agent": agent.address},
        model=session.model,
        permission_mode="dontAsk",
        allowed_tools=list(question.rules),
        max_turns=question.max_turns,
        max_budget_usd=budget,
        output_format={"type": "json_schema", "schema": question.form.model_json_schema()}
        if question.form
        else None,
        env=_environment(session),
    )


def _environment(session: Session) -> dict[str, str]:
    """Beside what is inherited: `warpsmith` in an agent's shell is this one, and means this campaign."""
    here = str(Path(sys.executable).parent)
    return {
        "WARPSMITH_PYTHON": sys.executable,
        "WARPSMITH_CAMPAIGN": session.campaign,
        "PATH": os.pathsep.join(filter(None, (here, os.environ.get("PATH")))),
    }


def _follow(message: AssistantMessage, question: Question, tell: Callable[[str], None]) -> None:
    from claude_agent_sdk import ToolUseBlock

    for block in message.content:
        if isinstance(block, ToolUseBlock) and block.name != ANSWER:
            what = next((str(block.input[key]) for key in _TELLING if key in block.input), "")
            tell(f"{question.phase}  {question.agent.name}: {block.name} {' '.join(what.split())[:80]}")
