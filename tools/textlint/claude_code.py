"""Facts about plugins in Claude Code 2.1.329: tools, and the fields of skills and agents.

`claude plugin validate` checks manifests and hooks, but ignores unknown fields and tools of skills and agents.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

TOOLS = frozenset((
    "Agent", "AskUserQuestion", "Bash", "CronCreate", "CronDelete", "CronList", "Edit", "EnterWorktree",
    "ExitWorktree", "Glob", "Grep", "ListAgents", "Monitor", "NotebookEdit", "Read", "ReportFindings",
    "ScheduleWakeup", "SendMessage", "Skill", "Task", "TaskStop", "ToolSearch", "WebFetch", "WebSearch",
    "Workflow", "Write",
))  # fmt: skip
"""Names of the tools; those of MCP servers begin with `mcp__`."""

IGNORED_IN_AGENTS = ("permissionMode", "hooks", "mcpServers", "initialPrompt")
"""Fields that work in a project's agents and have no effect in a plugin's."""

_Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
_Description = Annotated[str, Field(pattern=r"^[^<>]+$", max_length=250)]
_Words = Annotated[list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


class _StrictMatter(BaseModel):
    """Front matter in which unknown fields are errors, and `yes` is not a boolean."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SkillMatter(_StrictMatter):
    """Front matter of a SKILL.md."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))
    name: _Name
    description: _Description
    when_to_use: str | None = Field(None, alias="when_to_use")
    argument_hint: str | None = None
    arguments: _Words | None = None
    disable_model_invocation: bool = False
    user_invocable: bool = True
    allowed_tools: _Words | None = None
    disallowed_tools: _Words | None = None
    model: str | None = None
    effort: str | None = None
    hooks: dict[str, Any] | None = None
    context: Literal["fork"] | None = None
    agent: str | None = None
    background: bool | None = None
    paths: _Words | None = None
    shell: Literal["bash", "powershell"] | None = None
    metadata: dict[str, Any] | None = None
    license: str | None = None
    compatibility: str | None = None


class AgentMatter(_StrictMatter):
    """Front matter of a plugin's agent; this repository requires `model`, `maxTurns` and `tools`."""

    model_config = ConfigDict(alias_generator=to_camel)
    name: _Name
    description: _Description
    tools: _Words
    disallowed_tools: _Words | None = None
    model: Annotated[str, Field(pattern=r"^(opus|sonnet|haiku|fable|inherit|claude-[a-z0-9.-]+)$")]
    max_turns: Annotated[int, Field(gt=0)]
    skills: _Words | None = None
    memory: Literal["user", "project", "local"] | None = None
    background: bool | None = None
    effort: str | None = None
    isolation: Literal["worktree"] | None = None
    color: str | None = None
