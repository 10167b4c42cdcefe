"""Claude designer: each step that the lab leaves open goes to an agent of the plugin, in a session of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from pydantic import ValidationError

from warpsmith import files, languages, project
from warpsmith.campaign import texts
from warpsmith.campaign.history.solutions import Solution
from warpsmith.campaign.history.store import Campaign
from warpsmith.campaign.rounds import open_round
from warpsmith.campaign.rounds.due_phase import DuePhase
from warpsmith.campaign.rounds.state import CampaignState
from warpsmith.core.base import Model
from warpsmith.core.campaign import Plan, Selection
from warpsmith.core.spend import AgentPhase, Spend, Spent, format_usd
from warpsmith.core.text import describe_error
from warpsmith.driver import suspect
from warpsmith.driver.answers import message as answer_message
from warpsmith.driver.claude import agents as claude_agents
from warpsmith.driver.claude import prompts as claude_prompts
from warpsmith.driver.claude import query as claude_query
from warpsmith.driver.claude.agents import Agent
from warpsmith.driver.claude.query import Question, RunSettings
from warpsmith.driver.claude.reply import AgentReply
from warpsmith.driver.contenders.recipe import Recipe
from warpsmith.driver.proposal import LessonProposal
from warpsmith.errors import AgentStopped, Misuse
from warpsmith.lab.machine import hardware

if TYPE_CHECKING:
    from warpsmith.core.text import Tell
    from warpsmith.driver.answers.models import ReviewAnswer

M = TypeVar("M", bound=Model)

READ, WRITE = ("Read", "Grep", "Glob", "Bash", "Skill"), ("Write", "Edit")
"""Tools of the agents: none of them starts another agent or asks a person."""

LOOK_UP = (
    "Bash(warpsmith knowledge search *)",
    "Bash(warpsmith knowledge show *)",
    "Bash(warpsmith status*)",
    "Bash(warpsmith hardware*)",
    "Skill",
)
"""Permission rules of the orchestrator."""


def target_languages(owner: project.Project, target: str) -> list[str]:
    """List the lab's languages that can be timed on a target; raises Misuse if the target is unknown."""
    kind = hardware.read_target_page(owner, target).target.kind
    return [name for name in languages.names() if kind in languages.get(name).targets]


def first_language(owner: project.Project, target: str) -> str:
    """Return the only language that fits a target.

    Raises:
        Misuse: several languages fit the target, or none.
    """
    choices = target_languages(owner, target)
    if len(choices) != 1:
        raise Misuse(f"Name the --language to start in on {target}; these fit: {', '.join(choices) or 'none'}.")
    return choices[0]


class ClaudeDesigner:
    """Ask the plugin's agents through claude-agent-sdk and record the cost of each question."""

    name = "claude"
    tries = 2
    fixes = True

    def __init__(
        self,
        campaign: Campaign,
        model: str | None = None,
        budget: float | None = None,
        tell: Tell = lambda _: None,
    ) -> None:
        """Prepare to answer the steps of a campaign.

        Args:
            campaign: the campaign.
            model: model of all agents; None: the model that each agent's page names.
            budget: most dollars that this run may cost; None: no limit.
            tell: receives one line for each thing that an agent does.
        """
        self._campaign = campaign
        self._settings = RunSettings(campaign.project.root, project.SHIPPED, campaign.name, model)
        self._budget = budget
        self._tell = tell
        self._spends: list[Spend] = []
        self._reserved = 0.0
        """Dollars that the designers of contenders may still cost."""
        self._answer = ""
        self._last_review: tuple[int, str] = (0, "")

    @property
    def spent(self) -> Spent:
        """Return the cost of this run."""
        return Spent.of(self._spends)

    @property
    def cost(self) -> str:
        """Return the cost of this run, as `$0.12`."""
        return self.spent.cost

    def select(self, state: CampaignState, step: DuePhase, refused: str = "") -> Selection:
        """Return the only language that fits the target, else the orchestrator's choice."""
        choices = target_languages(state.campaign.project, state.campaign.manifest.target)
        if len(choices) == 1:
            return Selection(
                language=choices[0], because="It is the only language that the lab has for this target."
            )
        prompt = claude_prompts.selection_prompt(state, step, choices, self._refusal(refused))
        return self._propose("SELECT", prompt, Selection)

    def plan(self, state: CampaignState, step: DuePhase, refused: str = "") -> Plan:
        """Return the orchestrator's plan."""
        prompt = claude_prompts.plan_prompt(state, step, self._refusal(refused))
        return self._propose("STRATEGIZE", prompt, Plan, "optimization-catalog")

    def plan_beside(
        self, state: CampaignState, step: DuePhase, others: Sequence[Plan], refused: str = ""
    ) -> Plan | None:
        """Return the orchestrator's plan; the notes of `step` name the others."""
        return self.plan(state, step, refused)

    def recipe(self, left: int) -> Recipe:
        """Return what creates a designer like this one with its share of what is left of the budget."""
        budget = self._budget_left()
        share = None if budget is None else budget / left
        self._reserved += share or 0.0
        arguments: dict[str, str | float | None] = {"model": self._settings.model}
        return Recipe(factory=f"{__name__}:create_claude_designer", arguments=arguments, budget=share)

    def charge(self, recipe: Recipe | None, spends: Sequence[Spend]) -> None:
        """Count what a contender's designer has cost in place of what was reserved for it."""
        self._reserved -= (recipe.budget or 0.0) if recipe else 0.0
        self._spends += spends

    def design(self, state: CampaignState, step: DuePhase, path: Path, refused: str = "") -> None:
        """Have the specialist write the version. A draft of an interrupted session is named to the next one."""
        solution = state.solution
        if solution is None:
            raise Misuse(f"{state.campaign.name}: no language is selected.")
        draft, before = self._draft(solution), path.read_bytes() if path.is_file() else None
        draft_name = state.campaign.project.relative(draft) if draft.is_file() else ""
        prompt = claude_prompts.design_prompt(state, draft_name, self._refusal(refused))
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            reply = self._ask(
                Question(
                    phase="DESIGN",
                    agent=self._agent(self._designer_of(solution.language)),
                    prompt=prompt,
                    tools=(*READ, *WRITE),
                    rules=(*self._read_rules(), *self._write_rules(path), "Bash(warpsmith *)", "Skill"),
                    max_turns=100,
                )
            )
        except BaseException:
            _set_aside(path, before, draft)
            raise
        self._answer = reply.text

    def learn(self, state: CampaignState, step: DuePhase, refused: str = "") -> LessonProposal:
        """Return the orchestrator's lesson; an accepted version is reviewed first."""
        review = self._review(state)
        prompt = claude_prompts.lesson_prompt(state, step, review, self._refusal(refused))
        return self._propose("LEARN", prompt, LessonProposal, "learn-from-round")

    def finished(self, state: CampaignState) -> str | None:
        """Return None: stop conditions and the budget end a run."""
        return None

    def _review(self, state: CampaignState) -> str:
        """Return the review of a version that stands, made once a round; empty if it does not.

        If the verdict is SUSPECT, the finding is recorded and the loop strikes the round after it is closed.
        """
        if state.open.outcome is None or not state.open.outcome.verdict.stands:
            return ""
        if self._last_review[0] != state.number:
            review = self._request_review(state)
            if review.verdict == "SUSPECT":
                lines = ", ".join(f"{cheat.file}:{cheat.line}" for cheat in review.cheats)
                suspect.record_suspect(state.campaign, state.number, f"Reviewer: {review.reason} ({lines})")
            self._last_review = (state.number, answer_message.render_answer(review))
        return self._last_review[1]

    def _request_review(self, state: CampaignState) -> ReviewAnswer:
        """Return the reviewer's answer; an answer that is not valid is sent back.

        Raises:
            AgentStopped: none of its answers is valid.
        """
        refused = ""
        for _ in range(self.tries):
            reply = self._ask(
                Question(
                    phase="LEARN",
                    agent=self._agent("reviewer"),
                    prompt=claude_prompts.review_prompt(state, self._refusal(refused)),
                    tools=READ,
                    rules=self._read_rules(),
                    max_turns=40,
                )
            )
            self._answer = reply.text
            try:
                review = cast("ReviewAnswer", answer_message.read_answer("review", reply.text))
                recorded = open_round.round_quantities(state)
                texts.refuse_faults(state.campaign.project, answer_message.answer_texts(review), recorded, True)
                return review
            except Misuse as error:
                refused = str(error)
        last = " ".join(refused.split())
        raise AgentStopped(f"LEARN: the lab refused {self.tries} answers of the reviewer, the last one: {last}")

    def _propose(self, phase: AgentPhase, prompt: str, model: type[M], *skills: str) -> M:
        """Return the orchestrator's answer as a model; raises Misuse if there is none or it does not validate."""
        reply = self._ask(
            Question(
                phase=phase,
                agent=self._agent("orchestrator", *skills),
                prompt=prompt,
                tools=READ,
                rules=(*self._read_rules(), *LOOK_UP),
                max_turns=40,
                schema=model,
            )
        )
        data = reply.result.structured_output if reply.result else None
        self._answer = json.dumps(data) if data is not None else reply.text
        if data is None:
            raise Misuse("The session ended without an answer that fits the given schema.")
        try:
            return model.model_validate(data)
        except ValidationError as error:
            raise Misuse(f"The answer does not validate: {describe_error(error)}.") from error

    def _ask(self, question: Question) -> AgentReply:
        """Ask one agent and record the cost.

        Raises:
            AgentStopped: the budget is spent, or the session ended in an error.
            KeyboardInterrupt: a person interrupted the session.
        """
        self._tell(f"{question.phase}  {question.agent.name}")
        reply = claude_query.ask_agent(self._settings, question, self._budget_left(), self._tell)
        spend = reply.spend(question.phase, question.agent.name)
        self._spends.append(spend)
        self._campaign.add_spend(spend)
        if spend.ended == "interrupted":
            raise KeyboardInterrupt
        if spend.ended == "budget":
            raise self._out_of_budget()
        if spend.ended in ("api", "died"):
            raise AgentStopped(
                f"{question.phase}: {question.agent.name} ended without an answer: {reply.complaint}"
            )
        return reply

    def _agent(self, name: str, *skills: str) -> Agent:
        return claude_agents.load_agent(self._settings.plugin, name, skills)

    def _budget_left(self) -> float | None:
        if self._budget is None:
            return None
        left = self._budget - self.spent.usd - self._reserved
        if left <= 0:
            raise self._out_of_budget()
        return left

    def _out_of_budget(self) -> AgentStopped:
        return AgentStopped(f"The budget of {format_usd(self._budget or 0)} is spent.")

    def _refusal(self, refused: str) -> str:
        return claude_prompts.refusal_prompt(self._answer, refused) if refused else ""

    def _designer_of(self, language: str) -> str:
        """Return the specialist of a language, or the general designer if the plugin has none."""
        agent = languages.get(language).agent
        exists = (self._settings.plugin / "agents" / f"{agent}.md").is_file()
        return agent if exists else "kernel-designer"

    def _read_rules(self) -> tuple[str, ...]:
        """Return the rules to read the plugin's pages and the lab's headers outside of the project."""
        package = Path(project.__file__).parent
        return tuple(f"Read(/{folder}/**)" for folder in (self._settings.plugin, package))

    def _write_rules(self, path: Path) -> tuple[str, ...]:
        """Return the rules that let a designer write one file and scratch files. `//` begins an absolute path."""
        return f"Edit(/{path})", f"Edit(/{self._settings.root}/.warpsmith/**)"

    def _draft(self, solution: Solution) -> Path:
        return self._campaign.open / f"draft-{solution.snapshot}"


def create_claude_designer(
    campaign: Campaign, tell: Tell, model: str | None = None, budget: float | None = None
) -> ClaudeDesigner:
    """Create the designer of a contender in a process of its own."""
    return ClaudeDesigner(campaign, model, budget, tell)


def _set_aside(path: Path, before: bytes | None, draft: Path) -> None:
    """Move an unfinished file away from the version's path, where it would count as finished."""
    current = path.read_bytes() if path.is_file() else None
    if current is None or current == before:
        return
    files.write_file(draft, current)
    if before is None:
        path.unlink()
    else:
        files.write_file(path, before)
