"""Routing: agents that do a task, in order. Facts about languages come from the languages themselves."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warpsmith.errors import Misuse
from warpsmith.languages import support

if TYPE_CHECKING:  # a hook asks for PROGRAM_TASKS at every tool use
    from warpsmith.languages.base import Language

KERNEL_TASKS = ("write", "optimize", "baseline")

AGENT_TASKS = {
    "profile": ("profiler", "measure the version and say what limits it"),
    "review": ("reviewer", "look for cheats, and say if the gain will hold in use"),
}
"""Tasks that one agent does in every language."""

PROGRAM_TASKS = {
    "program": ("program-specialist", "make the one edit that an open trial is about"),
    "cuda_graph": (
        "cuda-graph-specialist",
        "capture the step in a CUDA graph, or the modules that allow it",
    ),
    "distributed": ("distributed-specialist", "hide or spare communication, and give ranks equal work"),
    "parallelism": (
        "distributed-specialist",
        "shard parameters, gradients and optimizer state as memory demands",
    ),
}
"""Tasks on whole programs, each with its agent and its work. An agent edits only within a trial."""

TASKS = (*KERNEL_TASKS, *AGENT_TASKS, *PROGRAM_TASKS)

ARCHITECTURE_NAMES = {
    "ampere": "sm_80",
    "ada": "sm_89",
    "hopper": "sm_90",
    "blackwell": "sm_100",
    "cdna3": "gfx942",
    "cdna4": "gfx950",
}
"""Names of architectures that users write."""

UNKNOWN_KERNEL = "unknown"
"""Stands for a kernel in a language that nobody named."""

_TRIAL = (
    "It edits within a trial: `warpsmith program apply ENTRY FILE --step STEP` opens one; a script as it is "
    "takes --command in place of both, and so do several ranks."
)


@dataclass(frozen=True)
class RouteStep:
    """One step of a route."""

    agent: str
    """The agent that does it."""
    language: str | None
    """Its language; None for a task that is the same in every language."""
    todo: str
    """The agent's work."""
    available: bool
    """True if the plugin has the agent."""
    fallback: str
    """Advice if it does not."""


@dataclass(frozen=True)
class Route:
    """Agents that do a task, in order."""

    steps: tuple[RouteStep, ...]
    """Steps, one after the other."""
    notes: tuple[str, ...]
    """Remarks for the user."""


@dataclass(frozen=True)
class RouteRequest:
    """A user's request, in the lab's own names."""

    task: str | None = None
    """One of `TASKS`; None: `optimize` if there is a kernel, else `write`."""
    language: str | None = None
    """The language that the user asks for; None: no preference."""
    architecture: str | None = None
    """`cpu`, `sm_90`, `gfx942`; None: unknown."""
    kernel: str | None = None
    """The existing kernel's language, or `UNKNOWN_KERNEL`; None: there is no kernel."""


def plan_route(request: RouteRequest, agents: Collection[str], languages: Sequence[Language]) -> Route:
    """Return the agents that do a task, in order.

    Args:
        request: the user's request.
        agents: agents that the plugin has.
        languages: languages of the lab, those first that are proposed unasked, the best one first.

    Raises:
        Misuse: neither language nor architecture is known, or the kernel's language is needed and unknown.
    """
    task = request.task or ("optimize" if request.kernel else "write")
    if task in AGENT_TASKS:
        agent, todo = AGENT_TASKS[task]
        return Route((RouteStep(agent, None, todo, agent in agents, "follow its skill yourself"),), ())
    if task in PROGRAM_TASKS:
        agent, todo = PROGRAM_TASKS[task]
        step = RouteStep(agent, None, todo, agent in agents, "follow skill `edit-program` yourself")
        return Route((step,), (_TRIAL,))
    by_name = {language.name: language for language in languages}
    language, alternatives = _choose(request, agents, by_name)
    notes = [f"{other.title} would do as well: {_availability(other, agents)}." for other in alternatives]
    notes = [*_warnings(request.architecture, by_name.get(request.language or ""), language, languages), *notes]
    kernel = request.language if request.kernel == UNKNOWN_KERNEL else request.kernel
    steps = []
    source = by_name.get(language.written_in or "")
    if source is not None and kernel not in (source.name, language.name):
        steps.append(_step(source, task, kernel, by_name, agents))
        kernel = source.name
    steps.append(_step(language, task, kernel, by_name, agents))
    return Route(tuple(steps), tuple(notes))


def parse_task(text: str, entries: Mapping[str, str] | None = None) -> str:
    """Return the task that a user means, by its name or by an entry on whole programs; raises Misuse.

    `entries` maps such entries to the tasks that they declare.
    """
    names = {_key(entry): task for entry, task in (entries or {}).items()}
    return _look_up("task", text, names | {_key(name): name for name in TASKS}, TASKS)


def parse_language(text: str, languages: Sequence[Language]) -> str:
    """Return the language that a user means; raises Misuse."""
    names = {
        key: language.name
        for language in languages
        for key in (_key(language.name), _key(language.title), *language.aliases)
    }
    titles = sorted(f"{language.name} ({language.title})" for language in languages)
    return _look_up("language", text, names, titles)


def parse_architecture(text: str, languages: Sequence[Language]) -> str:
    """Return the architecture of a user's word or a hardware page: `sm_90`, `gfx942`, `cpu`; raises Misuse."""
    key = text.strip().casefold().rstrip("+")
    sm = re.fullmatch(r"(?:sm|compute)_?([0-9]{2,3})[a-z]?", key)
    name = f"sm_{sm[1]}" if sm else ARCHITECTURE_NAMES.get(key, key)
    if not any(support.runs_on(language, name) for language in languages):
        patterns = {pattern for language in languages for pattern in language.architectures}
        oldest = min((pattern for pattern in patterns if pattern.endswith("+")), key=lambda name: int(name[3:-1]))
        names = sorted(pattern for pattern in patterns if pattern == oldest or not pattern.endswith("+"))
        readable = [pattern.replace("+", " and newer") for pattern in names]
        raise Misuse(f"Unknown architecture `{text}`; known: {', '.join((*readable, *ARCHITECTURE_NAMES))}.")
    return name


def _choose(
    request: RouteRequest, agents: Collection[str], languages: Mapping[str, Language]
) -> tuple[Language, list[Language]]:
    """Return the language to write, and others that are proposed for the architecture.

    Where the language that was asked for does not run, the nearest one is written.
    """
    kernel, architecture = request.kernel, request.architecture
    current = languages.get(kernel or "")
    if request.language is not None and support.runs_on(languages[request.language], architecture):
        return languages[request.language], []
    if kernel == UNKNOWN_KERNEL and request.language is None:
        raise Misuse("`--kernel exists` does not say which language it is in; name its file, or give --language.")
    if architecture is None and kernel is None:
        raise Misuse(
            "Give one of --language, --target, --arch and --kernel FILE; `warpsmith hardware` lists targets."
        )
    if current is not None and support.runs_on(current, architecture):
        return current, []
    proposed = support.list_fitting(architecture, languages.values())
    first = next((language for language in proposed if language.agent in agents), proposed[0])
    return first, [language for language in proposed if language is not first]


def _step(
    language: Language, task: str, kernel: str | None, languages: Mapping[str, Language], agents: Collection[str]
) -> RouteStep:
    """Return the step in which a language's agent writes a version, from a kernel if there is one."""
    todo = _todo(language, task, kernel, languages)
    return RouteStep(language.agent, language.name, todo, language.agent in agents, language.fallback)


def _todo(language: Language, task: str, kernel: str | None, languages: Mapping[str, Language]) -> str:
    """Describe the work on a kernel in a language."""
    other = languages.get(kernel or "")
    if other and other is not language:
        return f"write {language.product}, from the existing one in {other.title}"
    if task == "baseline":
        return f"write {language.product}: correct first, simple before fast"
    return f"improve the existing kernel, {language.product}" if kernel else f"write {language.product}"


def _warnings(
    architecture: str | None, requested: Language | None, language: Language, languages: Collection[Language]
) -> list[str]:
    warnings = []
    if architecture and requested is not None and requested is not language:
        warnings.append(support.describe_nearest(requested, architecture, languages))
    if remark := language.remark():
        warnings.append(remark)
    if architecture and architecture.startswith(support.AMD_PREFIX):
        warnings.append(support.amd_advice(architecture))
    return warnings


def _availability(language: Language, agents: Collection[str]) -> str:
    return f"`--language {language.name}`" if language.agent in agents else "not there yet"


def _key(text: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", text.casefold())


def _look_up(kind: str, text: str, names: Mapping[str, str], readable: Collection[str]) -> str:
    name = names.get(_key(text))
    if name is None:
        raise Misuse(f"Unknown {kind} `{text}`; known: {', '.join(readable)}.")
    return name
