"""Ask one agent one question in a new Claude Code session that has the fewest permissions."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from warpsmith import termination
from warpsmith.core.spend import AgentPhase
from warpsmith.driver.claude import process as claude_process
from warpsmith.driver.claude.agents import Agent
from warpsmith.driver.claude.reply import AgentReply

if TYPE_CHECKING:
    from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient

    from warpsmith.core.base import Model
    from warpsmith.core.text import Tell

ANSWER = "StructuredOutput"
"""Claude Code's tool for an answer that fits a schema; an agent that lists its tools must list it."""

PATIENCE = 10.0
"""Seconds that an interrupted session may take to report its cost."""

_SHOWN_ARGUMENTS = ("command", "file_path", "pattern", "skill")
"""Arguments of a tool that are shown to people, the first one that it has."""


@dataclass(frozen=True)
class Question:
    """Question to an agent, with the tools that it may use to answer."""

    phase: AgentPhase
    """Phase of the round."""
    agent: Agent
    """The agent."""
    prompt: str
    """Text of the question."""
    tools: tuple[str, ...]
    """Tools that it sees; those that its page does not list are left out."""
    rules: tuple[str, ...]
    """Claude Code's permission rules; anything else is denied."""
    max_turns: int
    """Most turns of the model."""
    schema: type[Model] | None = None
    """Model of its answer; None: free text."""


@dataclass(frozen=True)
class RunSettings:
    """Settings that all questions of a run share."""

    root: Path
    """Root of the project, where agents work."""
    plugin: Path
    """Folder of the plugin."""
    campaign: str
    """Name of the campaign."""
    model: str | None = None
    """Model of all agents; None: the model that each agent's page names."""


def ask_agent(settings: RunSettings, question: Question, budget: float | None, tell: Tell) -> AgentReply:
    """Ask an agent and wait for its reply. Ctrl-C ends the session, not this function.

    Args:
        settings: settings of the run.
        question: the question.
        budget: most dollars that it may cost; None: no limit.
        tell: receives one line for each tool that the agent uses.

    Raises:
        MachineLacks: the SDK or the CLI is missing.
    """
    reply = AgentReply()
    start = time.monotonic()
    with claude_process.launcher() as cli:
        options = _options(settings, question, budget, cli)
        options.stderr = reply.stderr.append
        with suppress(asyncio.CancelledError):
            asyncio.run(_listen(options, question, reply, tell))
    reply.seconds = time.monotonic() - start
    return reply


async def _listen(options: ClaudeAgentOptions, question: Question, reply: AgentReply, tell: Tell) -> None:
    from claude_agent_sdk import AssistantMessage, ClaudeSDKClient, ClaudeSDKError, ResultMessage

    try:
        async with ClaudeSDKClient(options) as client:
            with _interruptible(client, reply):
                await client.query(question.prompt)
                async for message in client.receive_response():
                    if isinstance(message, AssistantMessage):
                        reply.messages[message.message_id or str(len(reply.messages))] = message
                        _tell_tools(message, question, tell)
                    elif isinstance(message, ResultMessage):
                        reply.result = message
    except ClaudeSDKError as error:
        reply.fault = str(error)


@contextmanager
def _interruptible(client: ClaudeSDKClient, reply: AgentReply) -> Iterator[None]:
    """Ask the session to end and report its cost on Ctrl-C and SIGTERM; a second one, or a timeout, ends it at
    once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    interrupts: list[asyncio.Task[None]] = []

    def interrupt() -> None:
        if reply.interrupted and task:
            task.cancel()
        reply.interrupted = True
        interrupts.append(loop.create_task(_interrupt(client)))
        if task:
            loop.call_later(PATIENCE, task.cancel)

    def terminate(number: int) -> None:
        if termination.note_signal(number):
            interrupt()

    with termination.restored_handlers() as ends:
        loop.add_signal_handler(signal.SIGINT, interrupt)
        for number in ends:
            loop.add_signal_handler(number, terminate, number)
        try:
            yield
        finally:
            for number in (signal.SIGINT, *ends):
                loop.remove_signal_handler(number)


async def _interrupt(client: ClaudeSDKClient) -> None:
    from claude_agent_sdk import ClaudeSDKError

    with suppress(ClaudeSDKError):
        await client.interrupt()


def _options(settings: RunSettings, question: Question, budget: float | None, cli: Path) -> ClaudeAgentOptions:
    from claude_agent_sdk import AgentDefinition, ClaudeAgentOptions

    agent = question.agent
    tools = [tool for tool in agent.tools if tool in question.tools] + ([ANSWER] if question.schema else [])
    return ClaudeAgentOptions(
        cwd=settings.root,
        cli_path=cli,
        plugins=[{"type": "local", "path": str(settings.plugin)}],
        # The plugin's agent under its own name, with its skills and the tool for its answer added.
        agents={
            agent.address: AgentDefinition(
                description=agent.description,
                prompt=agent.prompt,
                tools=tools,
                model=None if settings.model else agent.model,
            )
        },
        extra_args={"agent": agent.address},
        model=settings.model,
        permission_mode="dontAsk",
        allowed_tools=list(question.rules),
        max_turns=question.max_turns,
        max_budget_usd=budget,
        output_format={"type": "json_schema", "schema": question.schema.model_json_schema()}
        if question.schema
        else None,
        env=_environment(settings),
    )


def _environment(settings: RunSettings) -> dict[str, str]:
    """Variables that make `warpsmith` in an agent's shell this installation and this campaign."""
    folder = str(Path(sys.executable).parent)
    return {
        "WARPSMITH_PYTHON": sys.executable,
        "WARPSMITH_CAMPAIGN": settings.campaign,
        "PATH": os.pathsep.join(filter(None, (folder, os.environ.get("PATH")))),
    }


def _tell_tools(message: AssistantMessage, question: Question, tell: Tell) -> None:
    from claude_agent_sdk import ToolUseBlock

    for block in message.content:
        if isinstance(block, ToolUseBlock) and block.name != ANSWER:
            argument = next((str(block.input[key]) for key in _SHOWN_ARGUMENTS if key in block.input), "")
            tell(f"{question.phase}  {question.agent.name}: {block.name} {' '.join(argument.split())[:80]}")
