"""CUDA graph check of a step: the source read, steps watched, and on a GPU captures tried; put together."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from warpsmith.errors import WarpsmithError
from warpsmith.program.capture import static
from warpsmith.program.capture import trial as graph_trial
from warpsmith.program.capture.models import LEVELS, Blocker, GraphCheck, GraphModule, Seen, Trial, Verdict
from warpsmith.program.capture.rules import RULES, Finding
from warpsmith.program.process.runner import TIMEOUT, Runner
from warpsmith.program.process.step import Program

STEPS = 4
"""Steps that are watched."""

WARM = 2
"""Steps before them: the first may still set things up."""

_WATCHED = {
    "host-read", "truth", "print", "to-host", "data-shape", "error-check", "changing-shape", "growing",
    "new-address", "changing-number",
}  # fmt: skip
"""Kinds that steps show wherever they run."""

_VALUES = {"changing-shape", "changing-number", "changing-path", "growing", "learning-rate"}
"""Kinds of which a run tells more than the source."""

_FAMILIES = {"changing-shape": "changing-number"}
"""Kinds that are one and the same at a line: the number is the size, or where it is used."""

_SURE = ("certain", "likely", "look")
_CODE = 100


def check(
    program: Program,
    *,
    run: bool = True,
    trial: bool = True,
    steps: int = STEPS,
    timeout: float = TIMEOUT,
    log: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> GraphCheck:
    """Say whether the program's step can be a CUDA graph, and what stands in the way.

    Without `run` only the source is read; without `trial`, or without a GPU, nothing is captured. `timeout` in
    seconds, for each request to the program; `log`: where its output goes, by default to stderr. What fails after
    the watched steps is a note, and the verdict rests on them.

    Raises:
        WarpsmithError: the program is no Python, has no such step, or its step fails, as `Runner` says.
    """
    tell("reading the source")
    reading = static.read(program)
    found: dict[Seen, Sequence[Finding]] = {"source": reading.findings}
    facts: Mapping[str, Any] = {}
    modules, whole, trials = _classes(reading), None, None
    notes: list[str] = []
    if run:
        tell("watching steps")
        facts, seen, modules = _watched(program, steps, timeout, log)
        found["run on gpu" if facts["gpu"] else "run on cpu"] = seen
    if trial and "run on gpu" in found:
        tell("capturing the step")
        trials = graph_trial.Trials(program, _folders(program), timeout, log)
        try:
            whole, failed = trials.whole()
            found["capture"] = [failed] if failed else []
        except WarpsmithError as error:
            trials = None
            notes = [f"eager steps that replays would be held against fail in a process of their own: {error}"]
    blockers = settled(merged(found, program.folder), whole, moving=trials is None or trials.moving)
    fine = not any(one.counts for one in blockers) and (whole is None or whole.good)
    bad = against(blockers, modules, reading, program.folder)
    covered = graph_trial.expected(modules, bad)
    tried: list[Trial] = []
    if trials and not fine:
        tell("capturing modules")
        frozen = against([one for one in blockers if one.effect == "freezes"], modules, reading, program.folder)
        covered, tried, notes = graph_trial.parts(trials, modules, frozen)
    verdict: Verdict = "captures whole" if fine else "partly" if covered else "not at all"
    level = next(level for level in reversed(LEVELS) if level in found)
    return GraphCheck(
        program=program.label,
        step=program.step,
        device=facts.get("device", ""),
        torch=facts.get("torch", ""),
        level=level,
        files=tuple(_relative(path, program.folder) for path in reading.files),
        steps=steps if run else 0,
        blockers=tuple(blockers),
        verdict=verdict,
        covered=tuple(covered) if verdict == "partly" else (),
        whole=whole,
        parts=tuple(tried),
        notes=(*_limits(level, facts), *(trials.notes if trials else ()), *notes),
    )


def merged(found: Mapping[Seen, Sequence[Finding]], folder: Path) -> list[Blocker]:
    """One blocker a line and kind, the surest first; what a run should have shown and did not is less sure."""
    keyed = _keyed(found)
    ran = {finding.kind for level in LEVELS[1:] for finding in found.get(level, ())}
    watched = _WATCHED if any(level in found for level in LEVELS[1:]) else set()
    absent = watched - (ran & {"new-address"})  # that is read at another line than it is set
    blockers = [_blocker(kind, levels, folder, absent) for (*_, kind), levels in keyed.items()]
    return sorted(blockers, key=lambda one: (_SURE.index(one.certainty), one.effect, one.file, one.line))


def _keyed(found: Mapping[Seen, Sequence[Finding]]) -> dict[tuple[str, int, str], dict[Seen, Finding]]:
    """Findings by file, line and kind."""
    keyed: dict[tuple[str, int, str], dict[Seen, Finding]] = {}
    for level in LEVELS:
        for finding in found.get(level, ()):
            key = (finding.file, finding.line, _FAMILIES.get(finding.kind, finding.kind))
            if level == "capture":  # what it failed at may have a name already
                key = next((one for one in keyed if one[:2] == key[:2] and RULES[one[2]].effect == "blocks"), key)
            keyed.setdefault(key, {})[level] = finding
    for file, line, _ in [key for key in keyed if key[2] == "data-shape"]:
        keyed.pop((file, line, "changing-number"), None)  # no news: its size varies
    return keyed


def against(
    blockers: Iterable[Blocker], modules: Sequence[GraphModule], reading: static.Reading, folder: Path
) -> set[str]:
    """Modules that a blocker which counts is in: whose forward was running there, or whose class has that line."""
    owners = {(_relative(Path(file), folder), line): owner for (file, line), owner in reading.owners.items()}
    found = set()
    for blocker in blockers:
        if blocker.counts:
            owner = owners.get((blocker.file, blocker.line))
            found |= {blocker.module} - {""} | {module.name for module in modules if module.kind == owner}
    return found


def settled(blockers: Sequence[Blocker], whole: Trial | None, *, moving: bool = True) -> list[Blocker]:
    """What did not stop a capture is only for somebody to see.

    So is what was thought to freeze where replays gave the eager values; not where it is certain: a learning rate
    that is baked in shows in a few steps hardly or not at all. Nor where inputs kept their content (not `moving`):
    what is frozen is equal then.
    """

    def spared(one: Blocker) -> bool:
        if whole is None or not whole.captured:
            return False
        return one.effect == "blocks" or (moving and bool(whole.equal) and one.certainty != "certain")

    told = [one.model_copy(update={"certainty": "look"}) if spared(one) else one for one in blockers]
    return sorted(told, key=lambda one: _SURE.index(one.certainty))


def _classes(reading: static.Reading) -> list[GraphModule]:
    """The user's module classes, for want of the modules that a run would show."""
    return [GraphModule(name=name, kind=name, calls=1, share=0.0, alike=name) for name in reading.modules]


def _watched(
    program: Program, steps: int, timeout: float, log: Path | None
) -> tuple[Mapping[str, Any], list[Finding], list[GraphModule]]:
    with Runner(program, timeout=timeout, log=log) as runner:
        runner.start()
        answer = runner.call("graph_observe", folders=_folders(program), steps=steps, warm=WARM)
        facts = runner.facts()
    findings = [Finding(**each) for each in answer["findings"]]
    return facts.model_dump(), findings, [GraphModule.model_validate(each) for each in answer["modules"]]


def _blocker(kind: str, levels: Mapping[Seen, Finding], folder: Path, absent: Collection[str]) -> Blocker:
    seen = tuple(level for level in LEVELS if level in levels)
    kind = levels[seen[-1]].kind if kind in _FAMILIES.values() else kind
    strongest, first = levels[seen[-1]], levels[seen[0]]
    chosen = strongest if kind in _VALUES else first
    certainty = min((levels[level].certainty for level in seen), key=_SURE.index)
    what = chosen.what
    if seen == ("source",) and certainty == "likely" and kind in absent:
        certainty, what = "look", f"{what}; not in the watched steps"
    rule = RULES[kind]
    return Blocker(
        kind=kind,
        effect=rule.effect,
        certainty=certainty,
        what=what,
        file=_relative(Path(strongest.file), folder),
        line=strongest.line,
        function=next((levels[level].function for level in seen if levels[level].function), ""),
        code=linecache.getline(strongest.file, strongest.line).strip()[:_CODE],
        why=rule.why,
        mend=rule.mend,
        seen=seen,
        module=next((levels[level].module for level in seen if levels[level].module), ""),
    )


def _limits(level: Seen, facts: Mapping[str, Any]) -> Iterator[str]:
    if facts.get("compiled"):
        yield f"torch.compile is called ({', '.join(facts['compiled'])}); the watched steps ran without it"
    if level == "source":
        yield "the source was read, nothing was run: shares of the time and what varies are not known"
    elif level == "run on cpu":
        why = "the program uses no GPU though there is one" if facts.get("gpu_at_hand") else "there is no GPU here"
        yield f"{why}: what would be on the device is inferred from steps on the CPU, nothing was captured"
    elif level == "run on gpu":
        yield "no capture was tried"


def _folders(program: Program) -> list[str]:
    return sorted({str(program.folder), str(program.path.parent)})


def _relative(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
