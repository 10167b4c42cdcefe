"""JSON Schema of the models that are stored on disk; field docstrings are the descriptions."""

from __future__ import annotations

from typing import Any

from warpsmith.backups.models import JournalAction
from warpsmith.core.base import Model
from warpsmith.core.campaign import (
    Closure,
    Lesson,
    Manifest,
    Masks,
    Plan,
    RoundOutcome,
    RoundRecord,
    Selection,
    Strike,
)
from warpsmith.core.definition import Definition
from warpsmith.core.evaluation import Evaluation
from warpsmith.core.evidence import Rerun
from warpsmith.core.hardware import Measurement, Target
from warpsmith.core.knowledge import EntryMatter, PriorArtTable, SymptomTable, SynonymTable
from warpsmith.core.profile import Profile
from warpsmith.core.race import RaceRecord
from warpsmith.core.repo import RepoEvaluation, RepoManifest, RepoRecord, Workspace
from warpsmith.core.spend import Spending
from warpsmith.core.trial import TrialPlan, TrialRecord, TrialsTotal
from warpsmith.lab.gate_tests.false_win_models import FalseWins
from warpsmith.lab.gate_tests.models import RedTeamReport
from warpsmith.lab.performance_map.models import PerformanceMap
from warpsmith.lab.tuning.models import Tuning
from warpsmith.port.models import PortRecord
from warpsmith.profiling.assembly.models import Assembly
from warpsmith.profiling.counters import Counters
from warpsmith.program.analysis.models import Analysis
from warpsmith.program.compiled.models import StepRegions
from warpsmith.program.operators.models import Extraction, StepOperators
from warpsmith.program.operators.transfer_record import Transfer
from warpsmith.program.trials.goal import ProgramGoal

MODELS: dict[str, type[Model]] = {
    "definition": Definition,
    "target": Target,
    "measurement": Measurement,
    "manifest": Manifest,
    "profile": Profile,
    "selection": Selection,
    "plan": Plan,
    "evaluation": Evaluation,
    "outcome": RoundOutcome,
    "lesson": Lesson,
    "spending": Spending,
    "record": RoundRecord,
    "strike": Strike,
    "rerun": Rerun,
    "masks": Masks,
    "closure": Closure,
    "entry": EntryMatter,
    "symptoms": SymptomTable,
    "synonyms": SynonymTable,
    "prior-art": PriorArtTable,
    "counters": Counters,
    "assembly": Assembly,
    "false-wins": FalseWins,
    "redteam": RedTeamReport,
    "race": RaceRecord,
    "map": PerformanceMap,
    "port": PortRecord,
    "tuning": Tuning,
    "backup": JournalAction,
    "analysis": Analysis,
    "trial-plan": TrialPlan,
    "trial": TrialRecord,
    "trials-total": TrialsTotal,
    "program-goal": ProgramGoal,
    "operators": StepOperators,
    "extraction": Extraction,
    "regions": StepRegions,
    "transfer": Transfer,
    "repo-manifest": RepoManifest,
    "repo-judgement": RepoEvaluation,
    "repo-record": RepoRecord,
    "workspace": Workspace,
}
"""Every kind of file that Warpsmith writes or reads, by the name that `warpsmith schema` takes."""


def json_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of one model in `MODELS`."""
    return MODELS[name].model_json_schema()
