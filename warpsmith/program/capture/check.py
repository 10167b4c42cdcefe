"""CUDA graph check of a step: watch steps, attempt captures on a GPU, and reach a verdict."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from warpsmith.core.text import Tell
from warpsmith.errors import Misuse, WarpsmithError
from warpsmith.program.capture.attempt import CaptureAttempts, expect_modules, try_parts
from warpsmith.program.capture.models import (
    EVIDENCE_LEVELS,
    Blocker,
    CaptureAttempt,
    EvidenceLevel,
    GraphCheck,
    Verdict,
)
from warpsmith.program.capture.rules import RULES, Observation
from warpsmith.program.capture.watched_steps import STEPS, WatchedSteps, user_folders, watch_program
from warpsmith.program.models import ProgramFacts
from warpsmith.program.process.program import Program
from warpsmith.program.process.runner import TIMEOUT, Runner

_CERTAINTIES = ("certain", "likely", "look")
_CODE_LENGTH = 100

Evidence = tuple[EvidenceLevel, Observation]


def check_graph(
    program: Program,
    *,
    attempt: bool = True,
    steps: int = STEPS,
    timeout: float = TIMEOUT,
    log: Path | None = None,
    tell: Tell = lambda _: None,
) -> GraphCheck:
    """Check whether the program's step can be a CUDA graph, and list what stands in the way.

    Without `attempt`, or if the program uses no GPU, nothing is captured. If eager steps of the capture attempts
    fail, a note says so and the verdict rests on the watched steps.

    Args:
        program: the program and its step.
        attempt: attempt captures on a GPU.
        steps: number of steps to watch.
        timeout: seconds for each request to the program.
        log: file for the program's output, by default stderr.
        tell: called with each stage of the check.

    Raises:
        WarpsmithError: the program is not Python, has no such step, or its step fails, as `Runner` says.
    """
    _require_python(program.path)
    tell("watching steps")
    facts, watched = _watch(program, steps, timeout, log)
    level: EvidenceLevel = "run on gpu" if facts.gpu else "run on cpu"
    evidence: list[Evidence] = [(level, observation) for observation in watched.observations]
    attempts, whole = None, None
    notes: list[str] = []
    if attempt and facts.gpu:
        tell("capturing the step")
        attempts = CaptureAttempts(program, user_folders(program), timeout, log)
        try:
            whole, failure = attempts.try_step()
            level = "capture"
            evidence += [(level, failure)] if failure else []
        except WarpsmithError as error:
            attempts = None
            notes = [f"the eager steps for a comparison with replays fail in a process of their own: {error}"]
    moving = attempts is None or attempts.moving
    blockers = settle_blockers(merge_evidence(evidence, program.folder), whole, moving=moving)
    fine = not any(blocker.counts for blocker in blockers) and (whole is None or whole.succeeded)
    covered = expect_modules(watched.modules, blocked_modules(blockers))
    parts: list[CaptureAttempt] = []
    if attempts and not fine:
        tell("capturing modules")
        frozen = blocked_modules(blocker for blocker in blockers if blocker.effect == "freezes")
        covered, parts, notes = try_parts(attempts, watched.modules, frozen)
    verdict: Verdict = "captures whole" if fine else "partly" if covered else "not at all"
    return GraphCheck(
        program=program.label,
        step=program.step,
        device=facts.device,
        torch=facts.torch,
        level=level,
        files=tuple(_relative(path, program.folder) for path in watched.files),
        steps=steps,
        blockers=tuple(blockers),
        verdict=verdict,
        covered=tuple(covered) if verdict == "partly" else (),
        whole=whole,
        parts=tuple(parts),
        notes=(*_list_limits(level, facts), *(attempts.notes if attempts else ()), *notes),
    )


def merge_evidence(evidence: Iterable[Evidence], folder: Path) -> list[Blocker]:
    """Merge all evidence of one kind at one line into a blocker; the most certain blockers come first.

    A changing size is merged with the changing number at its line, which is the size or its cause. A size that
    depends on data explains a changing number. A failed capture confirms what is known to block at its line.
    """
    merged: dict[tuple[str, int, str], dict[EvidenceLevel, Observation]] = {}
    for level, observation in evidence:
        kind = "changing-number" if observation.kind == "changing-shape" else observation.kind
        line = (observation.file, observation.line)
        if level == "capture":
            blocking = (key[2] for key in merged if key[:2] == line and RULES[key[2]].effect == "blocks")
            kind = next(blocking, kind)
        merged.setdefault((*line, kind), {})[level] = observation
    for file, number, kind in list(merged):
        if kind == "data-shape":
            merged.pop((file, number, "changing-number"), None)
    blockers = [_make_blocker(levels, folder) for levels in merged.values()]
    return sorted(
        blockers,
        key=lambda blocker: (_CERTAINTIES.index(blocker.certainty), blocker.effect, blocker.file, blocker.line),
    )


def blocked_modules(blockers: Iterable[Blocker]) -> set[str]:
    """Return the paths of modules whose forward contains a blocker that counts."""
    return {blocker.module for blocker in blockers if blocker.counts and blocker.module}


def settle_blockers(
    blockers: Sequence[Blocker], whole: CaptureAttempt | None, *, moving: bool = True
) -> list[Blocker]:
    """Reduce blockers that a successful capture of the whole step disproves to `look`.

    A capture that succeeds disproves what blocks. Replays that give the eager values disprove what freezes, with
    two exceptions: blockers that are certain stay, because a learning rate that is baked in hardly shows in a few
    steps; and with inputs that kept their content (not `moving`) frozen values are equal anyway.
    """

    def is_disproved(blocker: Blocker) -> bool:
        if whole is None or not whole.captured:
            return False
        return blocker.effect == "blocks" or (moving and bool(whole.equal) and blocker.certainty != "certain")

    settled = [
        blocker.model_copy(update={"certainty": "look"}) if is_disproved(blocker) else blocker
        for blocker in blockers
    ]
    return sorted(settled, key=lambda blocker: _CERTAINTIES.index(blocker.certainty))


def _require_python(path: Path) -> None:
    """Raise Misuse if a program's file cannot be read or is not Python."""
    try:
        compile(path.read_text(), path, "exec", dont_inherit=True)
    except OSError as error:
        raise Misuse(f"{path} cannot be read: {error.strerror}.") from error
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise Misuse(f"{path}{line} is not valid Python: {error}") from error


def _watch(program: Program, steps: int, timeout: float, log: Path | None) -> tuple[ProgramFacts, WatchedSteps]:
    with Runner(program, timeout=timeout, log=log) as runner:
        runner.start()
        watched = watch_program(runner, steps)
        return runner.facts(), watched


def _make_blocker(levels: dict[EvidenceLevel, Observation], folder: Path) -> Blocker:
    """Make one blocker of the observations of one kind at one line."""
    present = tuple(level for level in EVIDENCE_LEVELS if level in levels)
    weakest, strongest = levels[present[0]], levels[present[-1]]
    rule = RULES[weakest.kind]
    return Blocker(
        kind=weakest.kind,
        effect=rule.effect,
        certainty=min((item.certainty for item in levels.values()), key=_CERTAINTIES.index),
        what=weakest.description,
        file=_relative(Path(strongest.file), folder),
        line=strongest.line,
        function=weakest.function or strongest.function,
        code=linecache.getline(strongest.file, strongest.line).strip()[:_CODE_LENGTH],
        why=rule.why,
        mend=rule.mend,
        seen=present,
        module=weakest.module or strongest.module,
    )


def _list_limits(level: EvidenceLevel, facts: ProgramFacts) -> Iterator[str]:
    """Yield notes on what the check could not see."""
    if facts.compiled:
        yield f"torch.compile is called ({', '.join(facts.compiled)}); the watched steps ran without it"
    if level == "run on cpu":
        reason = "the program does not use the GPU" if facts.gpu_at_hand else "there is no GPU here"
        yield f"{reason}: tensors on the device are inferred from steps on the CPU, and nothing was captured"
    elif level == "run on gpu":
        yield "no capture was attempted"


def _relative(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)
