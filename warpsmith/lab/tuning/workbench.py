"""Workbench: many variants built, checked and timed side by side within seconds; nothing here is a verdict."""

from __future__ import annotations

import functools
import itertools
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from warpsmith import files, languages
from warpsmith.core.base import Model
from warpsmith.core.definition import Workload
from warpsmith.core.evaluation import BASELINES, BEST, NULL, REFERENCE, Aggregate, Interval, Resources
from warpsmith.errors import MachineFailed, MachineLacks, Misuse
from warpsmith.lab.gate.request import Candidate
from warpsmith.lab.grading import odd
from warpsmith.lab.operator.definition_file import DefinitionFile
from warpsmith.lab.timing import statistics
from warpsmith.lab.timing.arenas import count_slots, lay_out
from warpsmith.lab.timing.sides import SideSource
from warpsmith.lab.timing.timing import TimingBudget
from warpsmith.lab.tuning import machine_code
from warpsmith.lab.tuning.compile_ahead import compile_meanwhile
from warpsmith.lab.tuning.screen import BLOCK_SECONDS, Screen
from warpsmith.lab.tuning.stopwatch import Stopwatch
from warpsmith.lab.tuning.variants import Variant
from warpsmith.lab.workers import compiled_cache
from warpsmith.lab.workers.side import Limits
from warpsmith.lab.workers.worker_host import WorkerHost
from warpsmith.languages.base import Build, BuildFailed
from warpsmith.temporary import TemporaryFolder

WIDTH = {"cpu": 3, "cuda": 16}
"""Variants of one batch at most, by device: each needs a process and memory."""

CONTEXT_BYTES = 1 << 30
"""Device memory that a process takes before it allocates anything. Chosen, above what a context takes."""

AWKWARD = 3
"""Odd workloads at which every variant is checked."""

CALL_SECONDS = (5.0, 20.0)
"""Least and greatest time limit of one call, the first with its compilation; a variant that takes longer hangs."""

_CALL_SHARE = 1 / 6
"""Share of the whole time that one call may take, between these bounds."""

FINALISTS = 3
"""Variants of the last stage: halving ends with them."""

_PATIENCE = Limits(seconds=120.0)
"""Limits of `torch.compile`, whose first calls compile."""

_STAGES = 4
_ROUNDS, _MOST_ROUNDS = 6, 20
_STAGE_SECONDS = {"cpu": 0.3, "cuda": 0.05}


class VariantResult(Model):
    """Result of one variant at one stage; a line of the scratch log."""

    variant: str
    """File and settings."""
    state: Literal["not built", "same code", "wrong", "correct", "timed", "not run"]
    """Outcome; `correct` if its language cannot be timed on this device."""
    message: str = ""
    """Reason why it was neither timed nor correct: the first wrong element, the compiler's first error."""
    stage: int = 0
    """Stage of the halving, from 0; later stages take more samples."""
    seconds: dict[str, float] = {}
    """Workload to median seconds of a call."""
    speedup: float | None = None
    """Geometric mean of the paired speedups over the anchor."""
    interval: Interval | None = None
    """95 % interval of the speedup."""
    resources: tuple[Resources, ...] = ()
    """Registers, spills and shared memory, from the compiler's report."""


@dataclass(frozen=True)
class Bench:
    """Everything that a workbench works with."""

    file: DefinitionFile
    """Definition of the operator."""
    kind: str
    """Kind of the target, `cpu` or `gpu`."""
    variants: Sequence[Variant]
    """Variants, the most promising first."""
    workloads: Sequence[Workload]
    """Workloads that are checked and timed."""
    hidden: Sequence[Path] = ()
    """Folders that no variant may read."""
    best: Candidate | None = None
    """Version that the variants are compared with; None: the reference."""
    seconds: float = 60.0
    """Wall time of everything; a screen that runs is finished."""
    baselines: bool = False
    """True if the fastest variant is timed beside the reference and `torch.compile` at the end."""

    @property
    def device(self) -> str:
        """Device of PyTorch, `cpu` or `cuda`."""
        return "cuda" if self.kind == "gpu" else "cpu"

    @property
    def limits(self) -> Limits:
        """Time and memory of one variant, so that one that hangs leaves time for the others."""
        least, most = CALL_SECONDS
        return Limits(seconds=min(most, max(least, self.seconds * _CALL_SHARE)))

    @property
    def anchor(self) -> str:
        """Side that is timed next to all variants."""
        return BEST if self.best else REFERENCE

    @property
    def anchor_title(self) -> str:
        """Anchor as messages name it."""
        return f"The best version, {self.best.language}/{self.best.version}," if self.best else "The reference"


class Workbench:
    """One run over the variants: build all, screen all, then halve with more samples until one is fastest."""

    def __init__(self, bench: Bench) -> None:
        """Hold the variants; nothing is built yet.

        Raises:
            MachineLacks: the language of a variant cannot run here.
            Misuse: a file's name does not end as its language's versions do.
        """
        self.bench = bench
        self.results: dict[str, VariantResult] = {}
        """Variant to its last result."""
        self.anchor_seconds: dict[str, float] = {}
        """Workload to the anchor's median seconds in the last stage."""
        self.null_seconds: dict[str, float] = {}
        """Workload to the null kernel's median seconds in the last stage."""
        self.baselines: tuple[Aggregate, ...] = ()
        """Speedups of the fastest variant over the reference and `torch.compile`, if they were asked for."""
        self.baseline_seconds: dict[str, dict[str, float]] = {}
        """Baseline to its median seconds by workload."""
        self.stopwatch = Stopwatch()
        """Seconds of each step."""
        for variant in bench.variants:
            language = languages.get(variant.language)
            if lacks := language.missing(bench.kind):
                raise MachineLacks(lacks)
            if variant.file.suffix != language.suffix:
                raise Misuse(f"{variant.file}: a {language.name} version ends in `{language.suffix}`.")
        self._variants = {variant.name: variant for variant in bench.variants}
        self._started = time.monotonic()
        self._builds: dict[str, Build] = {}
        self._codes: dict[str, str] = {}
        self._batch_seconds = 0.0
        self._screen: Screen | None = None
        self._compiling: subprocess.Popen[bytes] | None = None
        declared = bench.file.definition.select("odd") or odd.derive_odd_workloads(bench.file)
        self.awkward = _pick_awkward(declared, bench.file)
        """Odd workloads that are checked."""

    def run(
        self, host: WorkerHost | None = None, before_baselines: Callable[[], None] = lambda: None
    ) -> Iterator[VariantResult]:
        """Yield each result as soon as it is known.

        Args:
            host: a worker host that was started with `start_host`; by default one of its own.
            before_baselines: called once the variants are ranked, before the baselines are timed.

        Raises:
            MachineFailed: the anchor or the worker host fails, or the best version does not build any more.
        """
        bench = self.bench
        with ExitStack() as stack:
            if host is None:
                host = stack.enter_context(start_host(bench.kind, bench.variants, bench.hidden))
            folder = Path(stack.enter_context(TemporaryFolder("try")))
            if bench.baselines:
                self._compiling = stack.enter_context(compile_meanwhile(bench.file, bench.workloads, bench.device))
            stack.callback(self._close_screen)
            for result in itertools.chain(self._build(host, folder), self._screen_all(host)):
                self.results[result.variant] = result
                yield result
            before_baselines()
            if bench.baselines and (ranked := self.ranked()):
                self._wait_for_compilation()
                self._time_baselines(host, ranked[0].variant)

    def ranked(self) -> list[VariantResult]:
        """List the timed variants: those of the last stage first, the fastest of each stage first."""
        timed = [result for result in self.results.values() if result.speedup is not None]
        return sorted(timed, key=lambda result: (-result.stage, -(result.speedup or 0.0)))

    def variant(self, name: str) -> Variant:
        """Return the variant of a name."""
        return self._variants[name]

    def _is_timed(self, variant: Variant) -> bool:
        return is_timed(self.bench.kind, variant)

    def _build(self, host: WorkerHost, folder: Path) -> Iterator[VariantResult]:
        """Build all variants and the best version concurrently; yield those that are no use.

        Meanwhile the first batch's workers start, and on a GPU create their contexts.
        """
        with self.stopwatch.measure("build"):
            yield from self._build_all(host, folder)

    def _build_all(self, host: WorkerHost, folder: Path) -> Iterator[VariantResult]:
        best = self.bench.best
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            if best:
                text = best.path.read_text(encoding="utf-8")
                try:
                    self._builds[BEST] = self._build_text(folder / "best", best.path, best.language, text)
                except BuildFailed as error:
                    raise MachineFailed(f"{self.bench.anchor_title} does not build any more: {error}") from error
            tasks = {
                pool.submit(self._build_text, folder / str(index), v.file, v.language, v.text): v.name
                for index, v in enumerate(self.bench.variants)
            }
            if self.bench.device != "cpu":
                batch = self.bench.variants[: self._width]
                host.restock(len(batch) + (best is not None), 1 + (best is None))
            for task in as_completed(tasks):
                name = tasks[task]
                try:
                    build = task.result()
                except BuildFailed as error:
                    yield VariantResult(variant=name, state="not built", message=_compiler_errors(error))
                    continue
                if twin := self._find_twin(name, build):
                    yield VariantResult(variant=name, state="same code", message=f"the same code as {twin}")
                    continue
                self._builds[name] = build

    def _build_text(self, folder: Path, path: Path, language: str, text: str) -> Build:
        source = folder / path.name
        files.write_file(source, text)
        return languages.get(language).build(source, self.bench.file.definition, folder)

    def _find_twin(self, name: str, build: Build) -> str | None:
        """Return the variant with the same machine code; None if there is none, or if it compiles when called."""
        code = machine_code.code_digest([build.artifact]) if build.artifact != build.source else None
        if code is None:
            return None
        twin = self._codes.setdefault(code, name)
        return None if twin == name else twin

    def _screen_all(self, host: WorkerHost) -> Iterator[VariantResult]:
        built = [variant for variant in self.bench.variants if variant.name in self._builds]
        if self.bench.device == "cpu":  # whose cores it would share with what is timed
            self._wait_for_compilation()
        yield from self._screen_stage(host, [v for v in built if not self._is_timed(v)], 0)
        remaining = [variant for variant in built if self._is_timed(variant)]
        for stage in range(_STAGES):
            yield from self._screen_stage(host, remaining, stage)
            ranked = [result for result in self.ranked() if result.stage == stage]
            remaining = [self._variants[result.variant] for result in ranked[: max(FINALISTS, len(ranked) // 2)]]
            if not remaining or (stage and _is_decided(ranked)) or not self._has_time(len(remaining)):
                return

    @functools.cached_property
    def _width(self) -> int:
        """Variants of one batch: on a GPU what half of its memory holds, with the results of their graphs."""
        bench, width = self.bench, WIDTH[self.bench.device]
        if bench.device == "cpu":
            return width
        import torch

        arenas = (lay_out(bench.file, w, count_slots(bench.file, w, bench.device, BLOCK_SECONDS), "contiguous")
                  for w in bench.workloads)  # fmt: skip
        outputs = max(outputs.room for _, outputs, _ in arenas)
        memory = torch.cuda.get_device_properties(0).total_memory // 2
        return max(1, min(width, memory // (2 * outputs + CONTEXT_BYTES)))

    def _has_time(self, count: int) -> bool:
        """Return True if `count` more variants fit into the time, twice as long as in the stage before."""
        batches = -(-count // self._width)
        return time.monotonic() + 2 * batches * self._batch_seconds <= self._started + self.bench.seconds

    def _screen_stage(self, host: WorkerHost, variants: Sequence[Variant], stage: int) -> Iterator[VariantResult]:
        width = self._width
        for start in range(0, len(variants), width):
            batch = variants[start : start + width]
            started = time.monotonic()
            if start and started + self._batch_seconds > self._started + self.bench.seconds:
                if stage == 0:
                    message = f"the next batch does not fit into {self.bench.seconds:g} s"
                    for variant in variants[start:]:
                        yield VariantResult(variant=variant.name, state="not run", message=message)
                return
            yield from self._screen_batch(host, batch, stage)
            self._batch_seconds = time.monotonic() - started

    def _screen_batch(self, host: WorkerHost, batch: Sequence[Variant], stage: int) -> Iterator[VariantResult]:
        screen = self._open_screen(host, batch, stage)
        if stage == 0:
            screen.check()
        if screen.timed:
            seconds = _STAGE_SECONDS[self.bench.device] * (1 << stage)
            budget = TimingBudget(rounds=_ROUNDS, most=_MOST_ROUNDS << stage, seconds=seconds)
            screen.time([variant.name for variant in batch], budget)
        for variant in batch:
            yield self._result(variant.name, screen, stage)

    def _wait_for_compilation(self) -> None:
        if self._compiling:
            with self.stopwatch.measure("compile"):
                self._compiling.wait()

    def _time_baselines(self, host: WorkerHost, name: str) -> None:
        """Time the fastest variant beside the reference and `torch.compile`, which takes seconds to compile.

        A baseline that fails has no times.

        Raises:
            MachineFailed: the variant fails now.
        """
        self._close_screen()
        bench, variant = self.bench, self._variants[name]
        sources = {peer: SideSource((bench.file.path, peer), limits=_PATIENCE) for peer in BASELINES}
        sources[name] = SideSource(self._builds[name], variant.language, bench.limits)
        with Screen(
            bench.file, host, bench.device, sources, name, f"The variant {name}", (), bench.workloads,
            stopwatch=self.stopwatch,
        ) as screen:  # fmt: skip
            seconds = _STAGE_SECONDS[bench.device] * (1 << _STAGES)
            budget = TimingBudget(rounds=_ROUNDS, most=_MOST_ROUNDS, seconds=seconds)
            screen.time(BASELINES, budget)
            times = {workload: samples.seconds for workload, samples in screen.samples.items()}
        sides = [side for side in BASELINES if times and side not in screen.failures]
        self.baselines = tuple(
            statistics.geometric_mean({w: (s[name], s[side]) for w, s in times.items()}, side) for side in sides
        )
        self.baseline_seconds = {
            side: {workload: statistics.median(s[side]) for workload, s in times.items()} for side in sides
        }

    def _open_screen(self, host: WorkerHost, batch: Sequence[Variant], stage: int) -> Screen:
        """Return the screen that runs if it has all of the batch, else a new one: processes take long to start."""
        screen, names = self._screen, {variant.name for variant in batch}
        if screen and stage and names <= set(screen.remaining):
            return screen
        self._close_screen()
        bench = self.bench
        sources = {bench.anchor: self._anchor_source()}
        sources |= {v.name: SideSource(self._builds[v.name], v.language, bench.limits) for v in batch}
        timed = bench.workloads if all(map(self._is_timed, batch)) else ()
        self._screen = Screen(
            bench.file, host, bench.device, sources, bench.anchor, bench.anchor_title,
            checked=(*self.awkward, *bench.workloads) if stage == 0 else (), timed=timed,
            null=bool(timed), stopwatch=self.stopwatch,
        )  # fmt: skip
        return self._screen

    def _close_screen(self) -> None:
        screen, self._screen = self._screen, None
        if screen:
            screen.__exit__()

    def _anchor_source(self) -> SideSource:
        best = self.bench.best
        if best is None:
            return SideSource((self.bench.file.path, REFERENCE))
        return SideSource(self._builds[BEST], best.language, self.bench.limits)

    def _result(self, name: str, screen: Screen, stage: int) -> VariantResult:
        if name in screen.failures:
            return VariantResult(variant=name, state="wrong", message=screen.failures[name], stage=stage)
        resources = screen.resources.get(name, ()) or self._earlier_resources(name)
        if not screen.samples:
            return VariantResult(variant=name, state="correct", stage=stage, resources=resources)
        times = {workload: samples.seconds for workload, samples in screen.samples.items()}
        anchor = self.bench.anchor
        self.anchor_seconds = {w: statistics.median(sides[anchor]) for w, sides in times.items()}
        self.null_seconds = {w: statistics.median(sides[NULL]) for w, sides in times.items() if NULL in sides}
        mean = statistics.geometric_mean({w: (s[name], s[anchor]) for w, s in times.items()}, anchor)
        return VariantResult(
            variant=name,
            state="timed",
            stage=stage,
            seconds={workload: statistics.median(sides[name]) for workload, sides in times.items()},
            speedup=mean.speedup,
            interval=mean.interval,
            resources=resources,
        )

    def _earlier_resources(self, name: str) -> tuple[Resources, ...]:
        return self.results[name].resources if name in self.results else ()


def start_host(
    kind: str, variants: Sequence[Variant], hidden: Sequence[Path], compiled: Path | None = None
) -> WorkerHost:
    """Start the worker host for variants; it imports its libraries while the caller goes on.

    Args:
        kind: `cpu` or `gpu`.
        variants: what it will run.
        hidden: folders that no variant may read.
        compiled: folder for compiled kernels that the next host finds again.
    """
    interpreted = any(not is_timed(kind, variant) for variant in variants)
    if compiled:
        compiled_cache.prune_compiled(compiled)
    return WorkerHost("cuda" if kind == "gpu" else "cpu", interpreted, hidden, compiled)


def is_timed(kind: str, variant: Variant) -> bool:
    """Return True if the variant's language is timed on this kind of target, not only interpreted."""
    return kind in languages.get(variant.language).targets


def _is_decided(ranked: Sequence[VariantResult]) -> bool:
    """Return True if the fastest variant's interval lies above the second one's."""
    first, *others = (result.interval for result in ranked[:2])
    return first is not None and all(second is not None and first.low > second.high for second in others)


def _compiler_errors(error: BuildFailed) -> str:
    """Return the compiler's lines on one line; the message's first line only says that it does not compile."""
    lines = [line.strip() for line in str(error).replace("```", "").splitlines() if line.strip()]
    return " | ".join(lines[1:] or lines)


def _pick_awkward(workloads: Sequence[Workload], file: DefinitionFile) -> list[Workload]:
    """Pick the smallest, the middle and the largest of the odd workloads."""
    ordered = sorted(workloads, key=file.definition.elements)
    if len(ordered) <= AWKWARD:
        return ordered
    return [ordered[0], ordered[len(ordered) // 2], ordered[-1]]
