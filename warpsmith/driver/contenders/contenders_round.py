"""STRATEGIZE and DESIGN of a round with several contenders, which leaves the plan and the version of one.

Plans are asked for one after the other, so that each sees those before it. Designs and checks run at once. Screens
begin when all have ended, so that nothing else runs beside what is timed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from warpsmith import languages
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.jobs.screening import ScreenOrder
from warpsmith.campaign.rounds import open_round
from warpsmith.campaign.rounds.due_phase import DuePhase
from warpsmith.campaign.rounds.state import CampaignState, read_state
from warpsmith.core.campaign import Contender, ContenderEnd, Contenders, Plan, ScreenedSpeedup
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.text import Tell
from warpsmith.driver.contenders import choose, design, difference, fork, screen
from warpsmith.driver.contenders.recipe import Recipe
from warpsmith.driver.designer import ContenderDesigner
from warpsmith.errors import AgentStopped, MachineFailed, Misuse
from warpsmith.execution.job import ScreenResult, ScreenResults
from warpsmith.lab.machine import device_lease, hardware
from warpsmith.lab.machine.processes import Processes, read_error
from warpsmith.ledger.store import write_model

SCREEN_SECONDS = 60.0
"""Wall time of one screen at most, as `warpsmith try` has by default."""


@dataclass
class _Design:
    """A contender while its round is open."""

    number: int
    fork: Campaign
    plan: Plan
    source: Path | None = None
    check: Evaluation | None = None
    end: ContenderEnd = "failed"
    reason: str = ""
    times: ScreenedSpeedup | None = None


@dataclass(frozen=True)
class ContendersRound:
    """The contenders of the open round of a campaign, which the caller holds."""

    campaign: Campaign
    """The campaign, at STRATEGIZE of a round that has a best version."""
    designer: ContenderDesigner
    """Designer of the plans, whose recipe creates the designers of the versions."""
    count: int
    """Number of contenders at most."""
    step: DuePhase
    """The phase that is due."""
    report: Tell
    """Receives a line about each contender and about the choice."""
    tell: Tell = field(default=lambda _: None)
    """Receives progress."""

    def run(self) -> Plan:
        """Design, check and screen the contenders; record them and take the plan of the chosen one.

        Raises:
            AgentStopped: there is no plan that the lab takes, or no designer left a version.
            MachineFailed: the machine failed at all checks, or at a screen.
            KeyboardInterrupt: a person interrupted it; all designers have ended, and what was finished stays.
        """
        state = read_state(self.campaign)
        designs = self._design_all(state)
        self._read_checks(state, designs)
        self._screen_all(state, designs)
        chosen = _choose(designs)
        chosen.end, chosen.reason = "chosen", _describe_choice(chosen, designs, state.best_name or "")
        for each in designs:
            self.report(f"contender {each.number}/{len(designs)}: {_result_text(each)}")
        copies = {name: content for each in designs for name, content in _copies(each).items()}
        contenders = Contenders(chosen=chosen.number, contenders=tuple(map(_record, designs)))
        open_round.record_contenders(self.campaign, contenders, copies)
        fork.adopt_forks(
            self.campaign
        )  # after the plan, since when the record counts the variants that were tried
        return chosen.plan

    def _design_all(self, state: CampaignState) -> list[_Design]:
        """Plan the contenders, and design and check each in a process of its own."""
        designs: list[_Design] = []
        with self._count_costs(designs) as recipes, Processes(self.tell) as processes:
            for number in range(1, self.count + 1):
                own = fork.fork_campaign(state, number)
                plan = own.read_part("plan", Plan) or self._ask_plan(own, [each.plan for each in designs])
                if plan is None:
                    break
                designs.append(_Design(number, own, plan))
                if design.read_check(own) is None:
                    left = self.count + 1 - number
                    recipes[number] = self.designer.recipe(left + 1)  # a share is for the review and the lesson
                    write_model(own.project.root / design.RECIPE, recipes[number])
                    processes.start(f"contender {number}", design.__name__, own.project.root)
            processes.wait()
        if not designs:
            raise AgentStopped(f"STRATEGIZE: the {self.designer.name} designer has no plan left.")
        return designs

    @contextmanager
    def _count_costs(self, designs: list[_Design]) -> Iterator[dict[int, Recipe]]:
        """Add what the designers cost to the open round once their processes have ended, however they did."""
        recipes: dict[int, Recipe] = {}
        try:
            yield recipes
        finally:
            recorded = list(self.campaign.spent())
            for each in designs:
                spends = []
                for spend in each.fork.spent():
                    if spend in recorded:  # two forks may have equal ones, each of which counts
                        recorded.remove(spend)
                    else:
                        spends.append(spend)
                        self.campaign.add_spend(spend)
                self.designer.charge(recipes.get(each.number), spends)

    def _ask_plan(self, own: Campaign, others: Sequence[Plan]) -> Plan | None:
        """Ask for the next plan and record it in its fork; return None if there is none but those before."""
        notes = [
            f"Contender {number} of this round tries, at the same time: {other.hypothesis.rstrip('.')}"
            f" ({other.metric} {other.expected_change:+g})."
            for number, other in enumerate(others, start=1)
        ]
        if others:
            notes.append("Plan another hypothesis, not the same with another constant.")
        step = self.step.model_copy(update={"notes": (*self.step.notes, *notes)})
        refused = ""
        try:
            for _ in range(self.designer.tries):
                try:
                    plan = self.designer.plan_beside(read_state(own), step, others, refused)
                    if plan is None:
                        return None
                    difference.refuse_equal_plan(plan, others)
                    open_round.record_plan(own, plan)
                    return plan
                except Misuse as error:
                    refused = str(error)
            raise AgentStopped(f"STRATEGIZE: the lab refused {self.designer.tries} proposals, the last: {refused}")
        except AgentStopped as error:
            if not others:
                raise
            self.report(f"{len(others)} contenders instead of {self.count}: {error}")
            return None

    def _read_checks(self, state: CampaignState, designs: Sequence[_Design]) -> None:
        """Take over what the designers left."""
        for each in designs:
            each.check = design.read_check(each.fork)
            if each.check is None:
                each.reason = str(read_error(each.fork.project.root))
                continue
            solution = read_state(each.fork).solution
            each.source = solution.path if solution else None
            each.reason = each.check.decision.reason
            if each.check.correct:
                each.end, each.reason = "correct", "it is right; it was not timed"
        if not any(each.check for each in designs):
            raise read_error(designs[0].fork.project.root)
        language = languages.get(state.open.selection.language if state.open.selection else "")
        sources = {each.number: each.source for each in designs if each.source}
        for number, first in difference.list_equal_sources(language, sources).items():
            _refuse(designs, number, f"it differs at most in comments and layout from contender {first}")

    def _screen_all(self, state: CampaignState, designs: Sequence[_Design]) -> None:
        """Time those that are right: on all devices at once, then the fastest of several devices on one."""
        right = [each.number for each in designs if each.end == "correct"]
        if len(right) < 2:
            return
        shares = choose.share_out(right, self._count_devices(designs))
        self._take_times(designs, self._screen(state, designs, shares), "screened")
        times = {each.number: each.times for each in designs if each.times}
        raced = choose.choose_raced(times)
        if len(shares) > 1 and len(raced) > 1:
            for each in designs:
                each.times = None if each.number in raced else each.times
            self._take_times(designs, self._screen(state, designs, [raced]), "raced")

    def _count_devices(self, designs: Sequence[_Design]) -> int:
        """Count the devices that screens can hold at once: here, or as the checks of contenders found there."""
        manifest = self.campaign.manifest
        if manifest.context is None:
            target = hardware.read_target_page(self.campaign.project, manifest.target).target
            return device_lease.count_devices(target)
        return max((each.check.provenance.context_devices or 1 for each in designs if each.check), default=1)

    def _screen(
        self, state: CampaignState, designs: Sequence[_Design], shares: Sequence[Sequence[int]]
    ) -> ScreenResults:
        """Screen each share on a device of its own."""
        manifest, selection = self.campaign.manifest, state.open.selection
        paths = {each.number: str(each.source) for each in designs}
        folders = [fork.forks_folder(self.campaign) / f"screen-{index}" for index in range(len(shares))]
        with Processes(self.tell) as processes:
            for folder, share in zip(folders, shares, strict=True):
                order = ScreenOrder(
                    root=str(self.campaign.project.root),
                    manifest=manifest,
                    best=state.best_name or "",
                    language=selection.language if selection else "",
                    sets=("representative", "full") if manifest.shapes == "full" else ("representative",),
                    seconds=SCREEN_SECONDS,
                    paths={number: paths[number] for number in share},
                )
                (folder / screen.RESULTS).unlink(missing_ok=True)
                write_model(folder / screen.ORDER, order)
                processes.start("screen", screen.__name__, folder)
            processes.wait()
        results: dict[int, ScreenResult] = {}
        for folder in folders:
            if not (folder / screen.RESULTS).is_file():
                raise MachineFailed(f"A screen of contenders ended without times: {read_error(folder)}")
            results |= ScreenResults.model_validate_json((folder / screen.RESULTS).read_bytes()).results
        return ScreenResults(results=results)

    def _take_times(self, designs: Sequence[_Design], results: ScreenResults, end: ContenderEnd) -> None:
        for number, result in results.results.items():
            each = next(each for each in designs if each.number == number)
            if result.times:
                each.times, each.end = result.times, end
                each.reason = f"{_speedup_text(result.times)} over the best version"
            elif result.equal:
                _refuse(designs, number, f"its machine code is that of another one: {result.failure}")
            elif result.failure:
                each.end, each.reason = "failed", f"in the screen: {result.failure}"


def _choose(designs: Sequence[_Design]) -> _Design:
    """Choose the fastest of the last screen, else the first that is right, else the first with a version."""
    raced = [each for each in designs if each.end == "raced"]
    timed = raced or [each for each in designs if each.times]
    if timed:
        return max(timed, key=lambda each: each.times.speedup if each.times else 0.0)
    right = [each for each in designs if each.end == "correct"]
    return next(iter(right or [each for each in designs if each.source]))


def _describe_choice(chosen: _Design, designs: Sequence[_Design], best: str) -> str:
    if chosen.times is None:
        reason = "it alone is right" if chosen.end == "correct" else f"no other is better: {chosen.reason}"
        return f"{reason}; the gate judges it"
    timed = sum(each.times is not None for each in designs)
    return f"the fastest of {timed}, {_speedup_text(chosen.times)} over {best} in its screen; the gate judges it"


def _result_text(each: _Design) -> str:
    """Return the result of a contender in a line that says the most first."""
    if each.times is None:
        return f"{each.end}: {each.reason}"
    return f"{each.end}, {_speedup_text(each.times)}: {each.plan.hypothesis}"


def _speedup_text(times: ScreenedSpeedup) -> str:
    return f"{times.speedup:.2f}x [{times.interval.low:.2f}, {times.interval.high:.2f}]"


def _refuse(designs: Sequence[_Design], number: int, reason: str) -> None:
    each = next(each for each in designs if each.number == number)
    each.end, each.reason, each.times = "refused", reason, None


def _copies(each: _Design) -> Mapping[str, bytes]:
    """Return the files that stay of a contender, by their names beside the record."""
    check = {f"contender-{each.number}.json": _check_bytes(each.check)} if each.check else {}
    return {**check, _copy_name(each): each.source.read_bytes()} if each.source else check


def _check_bytes(check: Evaluation) -> bytes:
    return check.model_dump_json(indent=2).encode() + b"\n"


def _copy_name(each: _Design) -> str:
    return f"contender-{each.number}{each.source.suffix if each.source else ''}"


def _record(each: _Design) -> Contender:
    return Contender(
        number=each.number,
        plan=each.plan,
        copy_name=_copy_name(each) if each.source else None,
        sha256=each.check.provenance.solution_sha256 if each.check else None,
        end=each.end,
        reason=each.reason,
        screen=each.times,
    )
