"""The claude designer: each open question of the loop goes to an agent of the plugin, in a session of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from pydantic import ValidationError

from warpsmith import files, languages, project
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds.state import State
from warpsmith.campaign.rounds.steps import NextStep
from warpsmith.core.base import Model
from warpsmith.core.campaign import Plan, Selection
from warpsmith.core.problem import problem
from warpsmith.core.spend import AgentPhase, Spend, Spent, dollars
from warpsmith.driver import suspect
from warpsmith.driver.claude import agents as claude_agents
from warpsmith.driver.claude import prompts as claude_prompts
from warpsmith.driver.claude import query as claude_query
from warpsmith.driver.claude.agents import Agent
from warpsmith.driver.claude.heard import Heard
from warpsmith.driver.claude.query import Question, Session
from warpsmith.driver.contracts import registry as contracts
from warpsmith.driver.contracts import review as contract_review
from warpsmith.driver.proposal import LessonProposal
from warpsmith.driver.routing import BY_LANGUAGE
from warpsmith.errors import AgentStopped, Misuse
from warpsmith.lab.machine import hardware

if TYPE_CHECKING:
    from warpsmith.driver.contracts.models import ReviewContract

M = TypeVar("M", bound=Model)

READ, WRITE = ("Read", "Grep", "Glob", "Bash", "Skill"), ("Write", "Edit")
"""Tools: no agent starts another one, or asks a person."""

LOOK_UP = (
    "Bash(warpsmith knowledge search *)",
    "Bash(warpsmith knowledge show *)",
    "Bash(warpsmith status*)",
    "Bash(warpsmith hardware*)",
    "Skill",
)
"""What the orchestrator may run."""


def fitting(here: project.Project, target: str) -> list[str]:
    """The lab's languages that can be timed on a target; raises Misuse for an unknown one."""
    kind = hardware.read(here, target).target.kind
    return [name for name in languages.names() if kind in languages.get(name).targets]


def first_language(here: project.Project, target: str) -> str:
    """The language that a campaign on a target starts in.

    Raises:
        Misuse: more than one fits, or none.
    """
    choices = fitting(here, target)
    if len(choices) != 1:
        raise Misuse(f"Name the --language to start in on {target}; there are: {', '.join(choices) or 'none'}.")
    return choices[0]


class Claude:
    """Asks the plugin's agents through claude-agent-sdk and keeps what each question cost."""

    name = "claude"
    tries = 2

    def __init__(
        self,
        campaign: Campaign,
        model: str | None = None,
        budget: float | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take a seat at a campaign.

        Args:
            campaign: whose questions are asked.
            model: for all agents; None: the one that each agent's page names.
            budget: dollars that this run may cost; None: no limit.
            tell: takes one line about what an agent does.
        """
        self._campaign = campaign
        self._session = Session(campaign.project.root, project.SHIPPED, campaign.name, model)
        self._budget = budget
        self._tell = tell
        self._spends: list[Spend] = []
        self._answer = ""
        self._finding: tuple[int, str] = (0, "")

    @property
    def spent(self) -> Spent:
        """What this run has cost."""
        return Spent.of(self._spends)

    @property
    def cost(self) -> str:
        """What this run has cost, as `$0.12`."""
        return self.spent.cost

    def select(self, state: State, step: NextStep, refused: str = "") -> Selection:
        """The only language that fits the target, else the orchestrator's choice."""
        choices = fitting(state.campaign.project, state.campaign.manifest.target)
        if len(choices) == 1:
            return Selection(language=choices[0], because="It is the only one that the lab has for this target.")
        prompt = claude_prompts.select(state, step, choices, self._sent_back(refused))
        return self._propose("SELECT", prompt, Selection)

    def plan(self, state: State, step: NextStep, refused: str = "") -> Plan:
        """The orchestrator's hypothesis."""
        prompt = claude_prompts.plan(state, step, self._sent_back(refused))
        return self._propose("STRATEGIZE", prompt, Plan, "optimization-catalog")

    def design(self, state: State, step: NextStep, path: Path, refused: str = "") -> None:
        """The specialist's version; a draft that a stopped session left is shown to the next one."""
        solution = state.solution
        if solution is None:
            raise Misuse(f"{state.campaign.name}: no language is selected.")
        draft, before = self._draft(solution), path.read_bytes() if path.is_file() else None
        shown = state.campaign.project.relative(draft) if draft.is_file() else ""
        prompt = claude_prompts.design(state, shown, self._sent_back(refused))
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            heard = self._ask(
                Question(
                    phase="DESIGN",
                    agent=self._agent(self._designer(solution.language)),
                    prompt=prompt,
                    tools=(*READ, *WRITE),
                    rules=(*self._reading(), *self._writing(path), "Bash(warpsmith *)", "Skill"),
                    max_turns=100,
                )
            )
        except BaseException:
            _set_aside(path, before, draft)
            raise
        self._answer = heard.text

    def learn(self, state: State, step: NextStep, refused: str = "") -> LessonProposal:
        """The orchestrator's lesson, after an accepted version with the reviewer's finding before it."""
        finding = self._review(state)
        prompt = claude_prompts.learn(state, step, finding, self._sent_back(refused))
        return self._propose("LEARN", prompt, LessonProposal, "learn-from-round")

    def finished(self, state: State) -> str | None:
        """Never: stop conditions and the budget end a run."""
        return None

    def _review(self, state: State) -> str:
        """The reviewer's finding on an accepted version, asked for once a round; empty where there is none.

        One that calls the version SUSPECT is kept, and the loop strikes the round when it is closed.
        """
        if state.open.outcome is None or not state.open.outcome.verdict.accepted:
            return ""
        if self._finding[0] != state.number:
            review = self._reviewed(state)
            if review.verdict == contract_review.SUSPECT:
                places = ", ".join(f"{cheat.file}:{cheat.line}" for cheat in review.cheats)
                suspect.keep(state.campaign, state.number, f"Reviewer: {review.because} ({places})")
            self._finding = (state.number, contracts.render(review))
        return self._finding[1]

    def _reviewed(self, state: State) -> ReviewContract:
        """The reviewer's answer; one that does not fit its form is sent back.

        Raises:
            AgentStopped: none of its answers fits: what nobody can read is no review.
        """
        refused = ""
        for _ in range(self.tries):
            heard = self._ask(
                Question(
                    phase="LEARN",
                    agent=self._agent("reviewer"),
                    prompt=claude_prompts.review(state, self._sent_back(refused)),
                    tools=READ,
                    rules=self._reading(),
                    max_turns=40,
                )
            )
            self._answer = heard.text
            try:
                return cast("ReviewContract", contracts.parse("review", heard.text))
            except Misuse as error:
                refused = str(error)
        why = " ".join(refused.split())
        raise AgentStopped(f"LEARN: the lab refused {self.tries} answers of the reviewer, the last one: {why}")

    def _propose(self, phase: AgentPhase, prompt: str, form: type[M], *skills: str) -> M:
        """The orchestrator's answer in a form; raises Misuse where it has none, or one that does not validate."""
        heard = self._ask(
            Question(
                phase=phase,
                agent=self._agent("orchestrator", *skills),
                prompt=prompt,
                tools=READ,
                rules=(*self._reading(), *LOOK_UP),
                max_turns=40,
                form=form,
            )
        )
        given = heard.result.structured_output if heard.result else None
        self._answer = json.dumps(given) if given is not None else heard.text
        if given is None:
            raise Misuse("The session ended without an answer in the form that was asked for.")
        try:
            return form.model_validate(given)
        except ValidationError as error:
            raise Misuse(f"The answer does not validate: {problem(error)}.") from error

    def _ask(self, question: Question) -> Heard:
        """Ask one agent and keep what it cost.

        Raises:
            AgentStopped: the budget is spent, or the session ended in an error.
            KeyboardInterrupt: a person ended it.
        """
        self._tell(f"{question.phase}  {question.agent.name}")
        heard = claude_query.ask(self._session, question, self._left(), self._tell)
        spend = heard.spend(question.phase, question.agent.name)
        self._spends.append(spend)
        self._campaign.add_spend(spend)
        if spend.ended == "interrupted":
            raise KeyboardInterrupt
        if spend.ended == "budget":
            raise self._out_of_budget()
        if spend.ended in ("api", "died"):
            raise AgentStopped(
                f"{question.phase}: {question.agent.name} ended without an answer: {heard.complaint}"
            )
        return heard

    def _agent(self, name: str, *skills: str) -> Agent:
        return claude_agents.load(self._session.plugin, name, skills)

    def _left(self) -> float | None:
        if self._budget is None:
            return None
        left = self._budget - self.spent.usd
        if left <= 0:
            raise self._out_of_budget()
        return left

    def _out_of_budget(self) -> AgentStopped:
        return AgentStopped(f"The budget of {dollars(self._budget or 0)} is spent.")

    def _sent_back(self, refused: str) -> str:
        return claude_prompts.sent_back(self._answer, refused) if refused else ""

    def _designer(self, language: str) -> str:
        """The specialist of a language where the plugin has one."""
        row = BY_LANGUAGE.get(language)
        there = row is not None and (self._session.plugin / "agents" / f"{row.agent}.md").is_file()
        return row.agent if row and there else "kernel-designer"

    def _reading(self) -> tuple[str, ...]:
        """What agents read outside of the project: the plugin's pages and the lab's headers."""
        package = Path(project.__file__).parent
        return tuple(f"Read(/{folder}/**)" for folder in (self._session.plugin, package))

    def _writing(self, path: Path) -> tuple[str, ...]:
        """A designer writes one file, and scratch. A rule's path that begins with two slashes is absolute."""
        return f"Edit(/{path})", f"Edit(/{self._session.root}/.warpsmith/**)"

    def _draft(self, solution: Solution) -> Path:
        return self._campaign.open / f"draft-{solution.snapshot}"


def _set_aside(path: Path, before: bytes | None, draft: Path) -> None:
    """Move what a stopped session wrote out of the version's place: there it would count as finished."""
    now = path.read_bytes() if path.is_file() else None
    if now is None or now == before:
        return
    files.write(draft, now)
    if before is None:
        path.unlink()
    else:
        files.write(path, before)
