"""Session of one Claude Code agent in a cell's folder, whose device requests run here while it waits."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from warpsmith import files
from warpsmith.core.text import Tell
from warpsmith.driver.claude import process as claude_process
from warpsmith.driver.claude.reply import AgentReply
from warpsmith.uplift import device, layout, submission
from warpsmith.uplift.models import Cell, Effort, KernelClaim

if TYPE_CHECKING:
    from claude_agent_sdk import ClaudeAgentOptions

PROMPT = "Your task is brief.md in this folder. Work only in this folder."
"""Whole prompt of an agent, the same in all arms."""

TOOLS = ("Read", "Write", "Edit", "Glob", "Grep", "Bash")
"""Tools of an agent, the same in all arms."""

_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class SessionSettings:
    """Settings that all cells of a comparison share."""

    model: str | None = None
    """Model; None: the default of Claude Code."""
    max_usd: float | None = None
    """Most dollars of one cell; None: no limit."""


def run_cell(cell: Cell, folder: Path, results: Path, settings: SessionSettings, tell: Tell) -> AgentReply:
    """Lay out a cell, let an agent work in it, and keep what it leaves; an agent without a kernel scores 0.

    Args:
        cell: the task.
        folder: new folder of the agent.
        results: folder of the submissions.
        settings: settings of the comparison.
        tell: takes lines of progress.

    Raises:
        MachineLacks: the SDK or the CLI is missing.
        Misuse: the folder exists, or there is no such operator.
    """
    layout.lay_out_cell(cell, folder)
    tell(f"{cell.name}: begins")
    reply = AgentReply()
    start = time.monotonic()
    with claude_process.launcher() as cli:
        options = _options(cell, folder, settings, cli)
        options.stderr = reply.stderr.append
        asyncio.run(_converse(cell, folder, options, reply))
    reply.seconds = time.monotonic() - start
    _complete(folder, reply)
    submission.keep_submission(folder, _effort(folder, reply), results)
    return reply


async def _converse(cell: Cell, folder: Path, options: ClaudeAgentOptions, reply: AgentReply) -> None:
    """Hand over the task and collect messages until the agent is done or its minutes are over."""
    from claude_agent_sdk import AssistantMessage, ClaudeSDKClient, ClaudeSDKError, ResultMessage

    budget = cell.budget
    over = asyncio.Event()
    server = asyncio.create_task(_serve_device(folder, over))
    try:
        # A device call does not count, so that the limit is the longest that they can take together.
        async with (
            asyncio.timeout(budget.minutes * 60 + budget.calls * budget.call_seconds),
            ClaudeSDKClient(options) as client,
        ):
            await client.query(PROMPT)
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage):
                    reply.messages[message.message_id or str(len(reply.messages))] = message
                elif isinstance(message, ResultMessage):
                    reply.result = message
    except ClaudeSDKError as error:
        reply.fault = str(error)
    except TimeoutError:
        reply.fault = f"The {budget.minutes} minutes were over"
    finally:
        over.set()
        await server


async def _serve_device(folder: Path, over: asyncio.Event) -> None:
    """Run the agent's device requests as they come."""
    while not over.is_set():
        if device.pending_cells([folder]):
            await asyncio.to_thread(device.run_request, folder)
        await asyncio.sleep(_POLL_SECONDS)


def _options(cell: Cell, folder: Path, settings: SessionSettings, cli: Path) -> ClaudeAgentOptions:
    from claude_agent_sdk import ClaudeAgentOptions

    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    if cell.arm.startswith("plugin"):
        paths.insert(0, str(folder.resolve() / "bin"))
    return ClaudeAgentOptions(
        cwd=folder,
        cli_path=cli,
        model=settings.model,
        permission_mode="dontAsk",
        tools=list(TOOLS),
        allowed_tools=list(TOOLS),
        max_budget_usd=settings.max_usd,
        setting_sources=[],  # nothing of the user's own instructions and plugins reaches an arm
        env={"WARPSMITH_PYTHON": sys.executable, "PATH": os.pathsep.join(filter(None, paths))},
    )


def _complete(folder: Path, reply: AgentReply) -> None:
    """Write an empty kernel and a claim in place of those that are missing or no claim, with the reason."""
    reason = "" if reply.ending == "done" else reply.complaint
    if not list((folder / "submission").glob("kernel.*")):
        files.write_file(folder / "submission" / "kernel.py", "# The agent submitted no kernel.\n")
        reason = f"no kernel. {reason}".strip()
    claim = folder / layout.CLAIM
    try:
        KernelClaim.model_validate_json(claim.read_bytes())
    except (OSError, ValidationError):
        files.write_file(claim, KernelClaim(correct=False, speedup=0, notes=reason).model_dump_json() + "\n")


def _effort(folder: Path, reply: AgentReply) -> Effort:
    calls = device.read_calls(folder)
    spend = reply.spend("DESIGN", "uplift")
    tokens = spend.input_tokens + spend.cache_write_tokens + spend.cache_read_tokens + spend.output_tokens
    return Effort(
        designer=", ".join(spend.models) or "unknown",
        device_calls=len(calls),
        device_seconds=round(fsum(call.seconds for call in calls), 2),
        tokens=tokens,
        turns=spend.turns,
        wall_seconds=round(reply.seconds, 1),
    )
