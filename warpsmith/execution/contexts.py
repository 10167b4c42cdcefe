"""Contexts: machines that judge, by name, from the user's own settings and from the project's."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, model_validator

from warpsmith import files
from warpsmith import project as projects
from warpsmith.core.base import Slug
from warpsmith.core.text import describe_error
from warpsmith.errors import Misuse
from warpsmith.execution.slurm_settings import SlurmSettings
from warpsmith.project import Project
from warpsmith.user_state import user_config_folder

LOCAL = "local"
"""Name of the context that is this machine; it needs no settings."""


def _require_printable(text: str) -> str:
    if not text.isprintable():  # a terminal would show another text than the one that counts
        raise ValueError("has a character that is not printable")
    return text


Printable = Annotated[str, Field(min_length=1), AfterValidator(_require_printable)]
"""Text of one line."""

PERSONAL = ("ssh_config", "variables")
"""Keys that only the user may set: a project that somebody shares could run a program or take secrets by them."""

_TABLE = "contexts"
_NAME = TypeAdapter(Slug)


class Context(SlurmSettings):
    """Another machine, reached by SSH, by Slurm, or by Slurm on a host that SSH reaches."""

    ssh: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_\[][A-Za-z0-9_.@:%\[\]-]*$")
    """Host as `ssh` takes it: a name, `user@host`, or an alias of the user's ssh_config. With `slurm`, the login
    node whose Slurm commands run; without it then, those of this machine."""
    workdir: Printable = "~/warpsmith"
    """Folder there for the lab and the jobs; it is created."""
    python: Printable = "python3"
    """Python there, with the packages that judging needs."""
    grace: int = Field(default=120, ge=5, le=86400)
    """Seconds after which a job ends there if this machine no longer asks for it."""
    ssh_config: Printable | None = None
    """Configuration file for `ssh` in place of the user's; only in the user's own settings."""
    variables: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], ...] = ()
    """Environment variables that go there; no others do. Only in the user's own settings."""

    @property
    def way(self) -> str:
        """Way to the machine in two to four words."""
        return f"ssh {self.ssh}" if not self.slurm else f"Slurm by ssh {self.ssh}" if self.ssh else "Slurm"

    @model_validator(mode="after")
    def _has_a_way(self) -> Self:
        if not self.slurm:
            if self.ssh is None:
                raise ValueError("the key `ssh` is missing, or `slurm = true`")
            if stray := sorted(self.model_fields_set & (SlurmSettings.model_fields.keys() - {"slurm"})):
                raise ValueError(f"`{stray[0]}` is for a context with `slurm = true`")
        if self.ssh_config and self.ssh is None:
            raise ValueError("`ssh_config` is for a context with `ssh`")
        return self


@dataclass(frozen=True)
class NamedContext:
    """Context with its name and the file that has it."""

    name: str
    """Name of the context."""
    context: Context
    """Settings of the context."""
    origin: Literal["yours", "shared"]
    """`yours`: from the user's own settings; `shared`: from the project's."""
    file: Path
    """File of the settings."""


def user_contexts_file() -> Path:
    """Return the file of the user's own contexts; it need not exist."""
    return user_config_folder() / "contexts.toml"


def require_trust(entry: NamedContext) -> None:
    """Check that the user has agreed to a shared context, as it is now: it runs a program on a machine of theirs.

    Raises:
        Misuse: the user has not.
    """
    if entry.origin == "shared" and _digest(entry) not in _trusted_digests():
        context = entry.context
        deed = f"logs in to {context.ssh} as you" if context.ssh else "uses Slurm as you"
        deed += f", asks for an allocation ({' '.join(context.sbatch_options)})" if context.slurm else ""
        raise Misuse(
            f"`{entry.name}` comes with the project, in {entry.file}: it {deed} and runs"
            f" `{context.python}` there, in {context.workdir}. `warpsmith context trust {entry.name}` allows it."
        )


def trust_context(entry: NamedContext) -> None:
    """Record that the user agrees to a shared context, until its settings change."""
    digests = sorted({*_trusted_digests(), _digest(entry)})
    files.write_file(_trust_file(), json.dumps(digests, indent=2) + "\n")


def _trust_file() -> Path:
    return user_config_folder() / "trusted-contexts.json"


def _trusted_digests() -> frozenset[str]:
    try:
        return frozenset(json.loads(_trust_file().read_text(encoding="utf-8")))
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, TypeError) as error:
        raise Misuse(
            f"{_trust_file()} does not parse: {error}; remove it, and trust shared contexts again."
        ) from error


def _digest(entry: NamedContext) -> str:
    settings = [str(entry.file.resolve()), entry.name, entry.context.model_dump(mode="json")]
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def check_context_name(name: str) -> str:
    """Return the name of a context to add; raises Misuse if it cannot be one."""
    try:
        _NAME.validate_python(name)
    except ValidationError as error:
        raise Misuse(
            f"`{name}` is no name of a context: write small letters, digits, `-`, `_` and `.`."
        ) from error
    if name == LOCAL:
        raise Misuse(f"`{LOCAL}` is this machine and needs no settings; choose another name.")
    return name


def list_contexts(project: Project) -> dict[str, NamedContext]:
    """Return the contexts by name, without `local`; the user's own comes before a shared one of the same name.

    Raises:
        Misuse: the settings do not parse, or a context is wrong.
    """
    return {entry.name: entry for entry in sorted(list_all_contexts(project), key=lambda entry: entry.name)}


def list_all_contexts(project: Project) -> list[NamedContext]:
    """List the shared contexts, then the user's own, which may have the same names; raises as `list_contexts`."""
    own = user_contexts_file()
    shared_file, shared = projects.read_settings_table(project.root, _TABLE)
    tables: tuple[tuple[Literal["yours", "shared"], Path, Any], ...] = (
        ("shared", shared_file, shared),
        ("yours", own, _read_tables(own)),
    )
    entries = []
    for origin, file, table in tables:
        if not isinstance(table or {}, Mapping):
            raise Misuse(f"{file}: `{_TABLE}` must be a table of contexts by name; correct it.")
        for name, settings in (table or {}).items():
            entries.append(NamedContext(name, _context(file, name, settings, origin), origin, file))
    return entries


def find_context(project: Project, name: str) -> NamedContext:
    """Return a context by its name; raises Misuse if there is none."""
    contexts = list_contexts(project)
    if name not in contexts:
        names = ", ".join((LOCAL, *contexts))
        raise Misuse(f"There is no context `{name}`; known: {names}. `warpsmith context add {name}` adds it.")
    return contexts[name]


def chosen_context(project: Project, name: str | None) -> str | None:
    """Return the name of the context that a command chose, or None for this machine; raises Misuse."""
    return None if name in (None, LOCAL) else find_context(project, str(name)).name


def _read_tables(file: Path) -> Any:  # noqa: ANN401 - whatever a user wrote
    if not file.is_file():
        return None
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise Misuse(f"{file} does not parse: {error}; fix the file.") from error
    if unknown := sorted(set(content) - {_TABLE}):
        raise Misuse(f"{file} has the unknown key `{unknown[0]}`; every context is a table `[{_TABLE}.NAME]`.")
    return content.get(_TABLE)


def _context(file: Path, name: str, settings: object, origin: str) -> Context:
    location = f"{file}, [{_TABLE}.{name}]"
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", name) or name == LOCAL:
        raise Misuse(f"{location}: `{name}` cannot be the name of a context; rename it.")
    try:
        context = Context.model_validate(settings)
    except ValidationError as error:
        raise Misuse(
            f"{location}: {describe_error(error)}; correct it (docs/contexts.md lists every key)."
        ) from error
    personal = [key for key in PERSONAL if key in context.model_fields_set]
    if origin == "shared" and personal:
        raise Misuse(
            f"{location}: `{personal[0]}` may stand only in your own {user_contexts_file()}; remove it here."
        )
    return context
