"""What Claude Code 2.1.329 knows of plugins: fields, tools, hook events, graders. Most else it passes over."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel
from pydantic.alias_generators import to_camel

TOOLS = frozenset((
    "Agent", "AskUserQuestion", "Bash", "CronCreate", "CronDelete", "CronList", "Edit", "EnterWorktree",
    "ExitWorktree", "Glob", "Grep", "ListAgents", "Monitor", "NotebookEdit", "Read", "ReportFindings",
    "ScheduleWakeup", "SendMessage", "Skill", "Task", "TaskStop", "ToolSearch", "WebFetch", "WebSearch",
    "Workflow", "Write",
))  # fmt: skip
"""The tools' names; those of MCP servers begin with `mcp__`."""

IGNORED_IN_AGENTS = ("permissionMode", "hooks", "mcpServers", "initialPrompt")
"""Fields that work in a project's agents and do nothing in a plugin's."""

Event = Literal[
    "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Notification", "UserPromptSubmit",
    "UserPromptExpansion", "SessionStart", "SessionEnd", "Stop", "StopFailure", "SubagentStart", "SubagentStop",
    "PreCompact", "PostCompact", "PreModelSwitch", "PostModelSwitch", "PermissionRequest", "PermissionDenied",
    "Setup", "TeammateIdle", "TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult", "ConfigChange",
    "WorktreeCreate", "WorktreeRemove", "InstructionsLoaded", "CwdChanged", "FileChanged", "DirectoryAdded",
    "MessageDisplay",
]  # fmt: skip

Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)]
Description = Annotated[str, Field(pattern=r"^[^<>]+$", max_length=250)]
Words = Annotated[list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]
"""A list, or one text with commas."""


class _Closed(BaseModel):
    """Unknown fields are errors, and `yes` is no boolean."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SkillMatter(_Closed):
    """The front matter of a SKILL.md."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))
    name: Name
    description: Description
    when_to_use: str | None = Field(None, alias="when_to_use")
    argument_hint: str | None = None
    arguments: Words | None = None
    disable_model_invocation: bool = False
    user_invocable: bool = True
    allowed_tools: Words | None = None
    disallowed_tools: Words | None = None
    model: str | None = None
    effort: str | None = None
    hooks: dict[str, Any] | None = None
    context: Literal["fork"] | None = None
    agent: str | None = None
    background: bool | None = None
    paths: Words | None = None
    shell: Literal["bash", "powershell"] | None = None
    metadata: dict[str, Any] | None = None
    license: str | None = None
    compatibility: str | None = None


class AgentMatter(_Closed):
    """The front matter of a plugin's agent; `model`, `maxTurns` and `tools` are this repository's own demand."""

    model_config = ConfigDict(alias_generator=to_camel)
    name: Name
    description: Description
    tools: Words
    disallowed_tools: Words | None = None
    model: Annotated[str, Field(pattern=r"^(opus|sonnet|haiku|fable|inherit|claude-[a-z0-9.-]+)$")]
    max_turns: Annotated[int, Field(gt=0)]
    skills: Words | None = None
    memory: Literal["user", "project", "local"] | None = None
    background: bool | None = None
    effort: str | None = None
    isolation: Literal["worktree"] | None = None
    color: str | None = None


class Hook(_Closed):
    """One hook; what it may hold beside these depends on its type."""

    model_config = ConfigDict(extra="allow")
    type: Literal["command", "prompt", "agent", "http", "mcp_tool"]
    timeout: Annotated[float, Field(gt=0)]
    command: str | None = None


class HookGroup(_Closed):
    """The hooks that one matcher starts."""

    matcher: str | None = None
    hooks: list[Hook]


class HooksFile(_Closed):
    """hooks/hooks.json."""

    description: str | None = None
    hooks: dict[Event, list[HookGroup]]


class EvalPrompt(_Closed):
    """The front matter of an eval's prompt.md."""

    schema_version: str | None = None
    name: str | None = None
    description: str | None = None
    tags: list[str] | None = None
    plugins: list[str] | None = None
    runs: Annotated[int, Field(gt=0, le=50)] | None = None
    expected_outcome: str | None = None
    model: str | None = None
    max_turns: Annotated[int, Field(gt=0, le=200)] | None = None
    timeout_seconds: Annotated[int, Field(gt=0, le=3600)] | None = None
    allowed_tools: list[str] | None = None
    disallowed_tools: list[str] | None = None
    artifact_publish: bool | None = None
    append_system_prompt: str | None = None
    env: dict[str, str] | None = None


class _Grader(_Closed):
    """What every grader may hold."""

    name: str | None = None
    weight: Annotated[float, Field(gt=0)] = 1
    arm: Literal["with-only", "both"] | None = None


class ToolCall(_Closed):
    """A call of a tool, by name and input."""

    tool: str
    input_match: str | None = None


Target = Literal["trace", "last_message", "files", "mock_calls"] | dict[str, str]
Text = Annotated[str, Field(min_length=1)]


class RegexGrader(_Grader):
    """Looks for a pattern, which may also be the page's text."""

    type: Literal["regex"]
    pattern: Text
    target: Target = "last_message"
    flags: Annotated[str, Field(pattern=r"^[dgimsuvy]*$")] = ""
    match: Annotated[str, Field(pattern=r"^(contains|not_contains|count:\d+)$")] = "contains"


class ToolOrderGrader(_Grader):
    """One tool before another."""

    type: Literal["tool_order"]
    before: str | ToolCall
    after: str | ToolCall


class ToolUsedGrader(_Grader):
    """How often a tool was called."""

    type: Literal["tool_used"]
    tool: str
    input_match: str | None = None
    min: Annotated[int, Field(ge=0)] | None = None
    max: Annotated[int, Field(ge=0)] | None = None


class FileGrader(_Grader):
    """Whether a file is there."""

    type: Literal["file_exists"]
    path: str
    exists: bool = True


class ModelGrader(_Grader):
    """Asks a model; the page's text is the criteria."""

    type: Literal["llm"]
    criteria: Text
    focus: Target = "last_message"


class BaselineGrader(_Grader):
    """Asks a model to compare with an earlier answer."""

    type: Literal["baseline"]
    baseline_file: str
    criteria: Text


_Graders = RegexGrader | ToolOrderGrader | ToolUsedGrader | FileGrader | ModelGrader | BaselineGrader


class Grader(RootModel[Annotated[_Graders, Field(discriminator="type")]]):
    """The front matter of a grader, with the page's text where that is its pattern or its criteria."""
