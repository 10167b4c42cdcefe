"""Routing: which specialist does a task, in which language, in which order. One table, one pure function."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from warpsmith.errors import Misuse


@dataclass(frozen=True)
class Specialist:
    """One row: who writes what, and where it runs."""

    agent: str
    """The agent."""
    language: str
    """Its language, as the lab names it."""
    called: str
    """What people call the language."""
    aliases: tuple[str, ...]
    """How else users write it, in small letters without spaces and signs."""
    architectures: tuple[str, ...]
    """Where it runs: `cpu`, `sm_80+` (and newer), `gfx942`."""
    needs_kernel: bool
    """Whether it only improves a kernel that another specialist wrote."""
    makes: str
    """What comes out."""
    instead: str
    """What to do where it is not there."""


_TRIAL = "It edits within a trial: `warpsmith program apply ENTRY FILE --step STEP` opens one."
_TRITON = "ask for Triton, `--language triton`"

SPECIALISTS = (
    Specialist(
        "cpp-specialist", "cpp", "C++", ("c++", "cplusplus", "openmp"), ("cpu",), False,
        "a C++ kernel with OpenMP and intrinsics", "stay with PyTorch",
    ),
    Specialist(
        "triton-specialist", "triton", "Triton", ("openaitriton",), ("sm_80+", "gfx942", "gfx950"), False,
        "a Triton kernel", "stay with PyTorch and `torch.compile`",
    ),
    Specialist(
        "tileir-specialist", "tileir", "TileIR", ("nvtriton", "enabletile", "enabletile1", "tritontileir"),
        ("sm_100+",), True,
        "a Triton kernel on the TileIR back end",
        "stay on Triton's own back end, with warpsmith:triton-specialist (`--language triton`)",
    ),
    Specialist(
        "cutedsl-specialist", "cutedsl", "CuTe DSL", ("cute", "cutlassdsl"), ("sm_80+",), False,
        "a CuTe DSL kernel (GEMM from sm_100 on)", _TRITON,
    ),
    Specialist(
        "cutile-specialist", "cutile", "cuTile", ("cutiledsl", "cudatile"), ("sm_80+",), False,
        "a cuTile kernel", _TRITON,
    ),
    Specialist(
        "cuda-specialist", "cuda", "CUDA C++", ("cudacpp", "cudac++"), ("sm_80+",), False,
        "a CUDA C++ kernel", _TRITON,
    ),
    Specialist(
        "hip-specialist", "hip", "HIP", ("hipc++", "ck", "composablekernel"), ("gfx942", "gfx950"), False,
        "a HIP kernel", _TRITON,
    ),
    Specialist(
        "flydsl-specialist", "flydsl", "FlyDSL", ("fly",), ("gfx942", "gfx950"), False,
        "a FlyDSL kernel", _TRITON,
    ),
)  # fmt: skip
"""Who writes kernels. A row whose agent is not shipped, or whose language the lab lacks, is not there yet."""

BY_LANGUAGE = {row.language: row for row in SPECIALISTS}

PREFERRED = (
    ("cpu", ("cpp",)),
    ("sm_100+", ("triton",)),
    ("sm_80+", ("triton", "cutedsl")),
    ("gfx942", ("hip", "flydsl", "triton")),
    ("gfx950", ("hip", "flydsl", "triton")),
)
"""Where no language is asked for: architecture to languages, the first one that is there is taken."""

KERNEL_TASKS = ("write", "optimize", "baseline")

AGENT_TASKS = {
    "profile": ("profiler", "measure the version and say what limits it"),
    "review": ("reviewer", "look for cheats, and say whether the gain will be there in use"),
}
"""Tasks that one agent does in every language."""

PROGRAM_TASKS = {
    "program": ("program-specialist", "make the one edit that an open trial is about"),
    "cuda_graph": ("cuda-graph-specialist", "capture the step in a CUDA graph, or the modules of it that can be"),
    "distributed": ("program-specialist", "hide or bucket communication that no kernel hides"),
    "parallelism": ("program-specialist", "shard parameters, gradients and optimizer state as memory demands"),
}
"""Tasks on whole programs: who edits, and what; each edit within a trial."""

OWN_TASK = {
    "cuda-graphs-for-launch-bound": "cuda_graph",
    "gradient-bucketing-overlap": "distributed",
    "sharded-parallelism": "parallelism",
}
"""Knowledge entries on whole programs whose task is not `program`."""

TASKS = (*KERNEL_TASKS, *AGENT_TASKS, *PROGRAM_TASKS)

ARCHITECTURES = {
    "ampere": "sm_80",
    "ada": "sm_89",
    "hopper": "sm_90",
    "blackwell": "sm_100",
    "cdna3": "gfx942",
    "cdna4": "gfx950",
}
"""Names of architectures that users write."""

UNKNOWN_KERNEL = "unknown"
"""There is a kernel, and nobody said in which language."""

_SOURCES = (
    (("cu", "cuh"), "", "cuda"),
    (("hip",), "", "hip"),
    (("cpp", "cc", "cxx", "c", "h", "hpp"), r"hip/hip_runtime\.h", "hip"),
    (("cpp", "cc", "cxx", "c", "h", "hpp"), r"\b__global__\b", "cuda"),
    (("cpp", "cc", "cxx", "c", "h", "hpp"), "", "cpp"),
    (("py",), r"^\s*(import|from)\s+nvtriton\b|\bENABLE_TILE\b", "tileir"),
    (("py",), r"^\s*(import|from)\s+triton\b", "triton"),
    (("py",), r"^\s*import\s+cutlass\.cute\b|^\s*from\s+cutlass(\.cute)?\s+import\b", "cutedsl"),
    (("py",), r"^\s*(import|from)\s+cuda\.core\b", "cuda"),
    (("py",), r"^\s*import\s+cuda\.tile\b|^\s*from\s+cuda(\.tile)?\s+import\b", "cutile"),
    (("py",), r"^\s*(import|from)\s+flydsl\b", "flydsl"),
)
"""Endings and what the text holds to the language; the first that fits is it."""


@dataclass(frozen=True)
class Step:
    """One step of a route."""

    agent: str
    """Who."""
    language: str | None
    """In which language; None where it is the same in every one."""
    todo: str
    """What."""
    here: bool
    """Whether the agent and its language are there."""
    instead: str
    """What to do where they are not."""


@dataclass(frozen=True)
class Route:
    """Who does a task, in order."""

    steps: tuple[Step, ...]
    """One after the other."""
    notes: tuple[str, ...]
    """What to mind."""


@dataclass(frozen=True)
class Request:
    """What is asked for, in the lab's own names."""

    task: str | None = None
    """One of `TASKS`; None: `optimize` where there is a kernel, else `write`."""
    language: str | None = None
    """The language that the user asks for; None: no preference."""
    architecture: str | None = None
    """`cpu`, `sm_90`, `gfx942`; None: unknown."""
    kernel: str | None = None
    """The language of the kernel that there is; `UNKNOWN_KERNEL`; None: there is none."""


def route(request: Request, agents: Collection[str], languages: Collection[str]) -> Route:
    """Who does it, in order.

    Args:
        request: what is asked for.
        agents: the agents that are shipped.
        languages: the languages that the lab has.

    Raises:
        Misuse: neither language nor architecture is known, or the kernel's language is needed and is not.
    """
    task = request.task or ("optimize" if request.kernel else "write")
    if task in AGENT_TASKS:
        agent, todo = AGENT_TASKS[task]
        return Route((Step(agent, None, todo, agent in agents, "follow its skill yourself"),), ())
    if task in PROGRAM_TASKS:
        agent, todo = PROGRAM_TASKS[task]
        return Route(
            (Step(agent, None, todo, agent in agents, "follow skill `edit-program` yourself"),), (_TRIAL,)
        )
    here = {row.language for row in SPECIALISTS if row.agent in agents and row.language in languages}
    chosen, notes = _languages(request, task, here)
    steps = [_step(row, task, request.kernel, here) for row in map(BY_LANGUAGE.__getitem__, chosen)]
    return Route(tuple(steps), (*notes, *_warnings(request, chosen)))


def task(text: str, entries: Collection[str] = ()) -> str:
    """The task that a user means, by its name or by one of the entries on whole programs; raises Misuse."""
    known = {_key(entry): OWN_TASK.get(entry, "program") for entry in entries}
    return _named("task", text, known | {_key(name): name for name in TASKS}, TASKS)


def language(text: str) -> str:
    """The language that a user means; raises Misuse."""
    known = {
        key: row.language for row in SPECIALISTS for key in (_key(row.language), _key(row.called), *row.aliases)
    }
    return _named("language", text, known, [f"{row.language} ({row.called})" for row in SPECIALISTS])


def architecture(text: str) -> str:
    """The architecture that a user or a hardware page means, as `sm_90`, `gfx942` or `cpu`; raises Misuse."""
    key = text.strip().casefold().rstrip("+")
    sm = re.fullmatch(r"(?:sm|compute)_?([0-9]{2,3})[a-z]?", key)
    found = f"sm_{sm[1]}" if sm else ARCHITECTURES.get(key, key)
    if not any(_runs(found, place) for place, _ in PREFERRED):
        known = ("cpu", "sm_80 and newer", "gfx942", "gfx950", *ARCHITECTURES)
        raise Misuse(f"Unknown architecture `{text}`; known: {', '.join(known)}.")
    return found


def written_in(path: str, text: str) -> str:
    """The language of a kernel's file: by its folder where it is one of the lab's versions, else by its text.

    Raises:
        Misuse: neither says it.
    """
    version = re.search(r"(?:^|/)([a-z0-9_]+)/v[0-9]+\.\w+$", path)
    if version and version[1] in BY_LANGUAGE:
        return version[1]
    ending = path.rpartition(".")[2].casefold()
    for endings, pattern, found in _SOURCES:
        if ending in endings and re.search(pattern, text, re.MULTILINE):
            return found
    raise Misuse(f"{path} does not say in which language its kernel is; give --language and `--kernel exists`.")


def _languages(request: Request, task: str, here: Collection[str]) -> tuple[list[str], list[str]]:
    """The languages to go through in order, and what to say about the choice."""
    asked, kernel, place = request.language, request.kernel, request.architecture
    if asked is None and kernel == UNKNOWN_KERNEL:
        raise Misuse("`--kernel exists` does not say in which language it is; name its file, or give --language.")
    if asked is None and place is None and kernel is None:
        raise Misuse(
            "Give one of --language, --target, --arch and --kernel FILE; `warpsmith hardware` lists targets."
        )
    notes = []
    first = asked
    if first is None and kernel is not None and _fits(kernel, place):
        first = kernel
    if first is None:
        first, others = _preferred(place or "", here)
        notes += [f"{BY_LANGUAGE[other].called} would do as well: {_where(other, here)}." for other in others]
    onwards = asked is None and first == "triton" and place is not None and _runs(place, "sm_100+")
    tile = first == "tileir" or onwards
    if not tile or task == "baseline":
        if tile:
            notes.append("The baseline is plain Triton; the TileIR back end comes after it.")
        return ["triton" if first == "tileir" else first], notes
    if place is not None and not _fits("tileir", place):
        return ["triton"], [*notes, f"TileIR needs sm_100 or newer, not {place}: Triton's own back end it is."]
    # TileIR is Triton on another back end; its specialist does not write kernels.
    written = kernel in ("triton", "tileir") or (asked == "tileir" and kernel == UNKNOWN_KERNEL)
    return ["tileir"] if written else ["triton", "tileir"], notes


def _preferred(place: str, here: Collection[str]) -> tuple[str, list[str]]:
    choices = next(names for wanted, names in PREFERRED if _runs(place, wanted))
    first = next((name for name in choices if name in here), choices[0])
    return first, [name for name in choices if name != first]


def _step(row: Specialist, task: str, kernel: str | None, here: Collection[str]) -> Step:
    other = BY_LANGUAGE.get(kernel or "")
    if row.needs_kernel:
        todo = f"take the Triton kernel to the {row.called} back end"
    elif other and other.language != row.language:
        todo = f"write {row.makes}, from the {other.called} one that there is"
    elif task == "baseline":
        todo = f"write {row.makes}: correct first, simple before fast"
    else:
        todo = "improve the kernel that there is, " if kernel else "write "
        todo += row.makes
    return Step(row.agent, row.language, todo, row.language in here, row.instead)


def _warnings(request: Request, chosen: list[str]) -> list[str]:
    place = request.architecture
    found = []
    if place and place.startswith("gfx"):
        found.append("The lab does not run on AMD devices yet: what is written for them is not judged.")
    for name in chosen:
        if place and not _fits(name, place):
            choices = next(names for wanted, names in PREFERRED if _runs(place, wanted))
            better = " or ".join(BY_LANGUAGE[choice].called for choice in choices)
            found.append(f"{BY_LANGUAGE[name].called} does not run on {place}; take {better} there.")
    return found


def _where(name: str, here: Collection[str]) -> str:
    return f"`--language {name}`" if name in here else "not there yet"


def _fits(name: str, place: str | None) -> bool:
    """Whether a language runs on an architecture; an unknown one is no hindrance."""
    return place is None or any(_runs(place, wanted) for wanted in BY_LANGUAGE[name].architectures)


def _runs(place: str, wanted: str) -> bool:
    """Whether an architecture is the wanted one, or newer where that ends in `+`."""
    if not wanted.endswith("+"):
        return place == wanted
    number = re.fullmatch(r"sm_([0-9]+)", place)
    return number is not None and int(number[1]) >= int(wanted[3:-1])


def _key(text: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", text.casefold())


def _named(what: str, text: str, known: Mapping[str, str], names: Collection[str]) -> str:
    found = known.get(_key(text))
    if found is None:
        raise Misuse(f"Unknown {what} `{text}`; known: {', '.join(names)}.")
    return found
