"""JSON Schema of the models that are stored on disk; field docstrings are the descriptions."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warpsmith.core.base import Model

MODELS = {
    "definition": "core.definition.Definition",
    "target": "core.hardware.Target",
    "measurement": "core.hardware.Measurement",
    "manifest": "core.campaign.Manifest",
    "profile": "core.profile.Profile",
    "selection": "core.campaign.Selection",
    "plan": "core.campaign.Plan",
    "evaluation": "core.evaluation.Evaluation",
    "outcome": "core.campaign.RoundOutcome",
    "lesson": "core.campaign.Lesson",
    "spending": "core.spend.Spending",
    "record": "core.campaign.RoundRecord",
    "rank-round": "campaign.rounds.rank_rounds.RankRound",
    "strike": "core.campaign.Strike",
    "rerun": "core.evidence.Rerun",
    "rank-race": "campaign.rounds.rank_race.RankRace",
    "retiming": "core.evidence.Retiming",
    "masks": "core.campaign.Masks",
    "closure": "core.campaign.Closure",
    "entry": "core.knowledge.EntryMatter",
    "symptoms": "core.knowledge.SymptomTable",
    "synonyms": "core.knowledge.SynonymTable",
    "prior-art": "core.knowledge.PriorArtTable",
    "counters": "profiling.counters.Counters",
    "assembly": "profiling.assembly.models.Assembly",
    "false-wins": "lab.gate_tests.false_win_models.FalseWins",
    "redteam": "lab.gate_tests.models.RedTeamReport",
    "race": "core.race.RaceRecord",
    "map": "lab.performance_map.models.PerformanceMap",
    "port": "port.models.PortRecord",
    "tuning": "lab.tuning.models.Tuning",
    "backup": "backups.models.JournalAction",
    "analysis": "program.analysis.models.Analysis",
    "trial-plan": "core.trial.TrialPlan",
    "trial": "core.trial.TrialRecord",
    "trials-total": "core.trial.TrialsTotal",
    "program-goal": "program.trials.goal.ProgramGoal",
    "operators": "program.operators.models.StepOperators",
    "extraction": "program.operators.models.Extraction",
    "regions": "program.compiled.models.StepRegions",
    "autopilot": "program.autopilot.models.AutopilotPlan",
    "transfer": "program.operators.transfer_record.Transfer",
    "repo-manifest": "core.repo.RepoManifest",
    "repo-judgement": "core.repo.RepoEvaluation",
    "repo-record": "core.repo.RepoRecord",
    "workspace": "core.repo.Workspace",
}
"""Every kind of file that Warpsmith writes or reads, by the name that `warpsmith schema` takes, and where in the
package its model is; one schema needs the import of one module."""


def model_of(name: str) -> type[Model]:
    """Return one model in `MODELS`."""
    module, _, model = MODELS[name].rpartition(".")
    chosen: type[Model] = getattr(importlib.import_module(f"warpsmith.{module}"), model)
    return chosen


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of one model in `MODELS`."""
    return model_of(name).model_json_schema()
