"""What screenplays are made of: a small project, and scripted roles that follow what they are told.

A role reads what the real command or the real brief said and acts on it, so a screenplay breaks where a text, a
command, a hook or a permission does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from messages_api import Actor, Block, Call, anyone, bash, saying, text, tool

DUE = r"^(?:Next: )?\S+: round \d+, (\w+) \(.*\n(?:  .*\n)*?  command +(.*)"
"""What a command says is due: phase and command."""

PROFILER = saying("You are Warpsmith's profiler.")
REVIEWER = saying("You are Warpsmith's reviewer.")
CPP = saying("You are Warpsmith's C++ specialist.")
DESIGNER = saying("You are Warpsmith's kernel designer.")

DEFINITION = '''"""scale: y = 2 x, small enough to be judged in a moment."""

from warpsmith.core.definition import Definition, TensorSpec, Tolerance, Workload

definition = Definition(
    name="scale",
    description="Twice x.",
    op_type="elementwise",
    axes={"n": "elements"},
    inputs={"x": TensorSpec(shape=("n",))},
    outputs={"y": TensorSpec(shape=("n",))},
    tolerance=Tolerance(),
    flops="n",
    workloads=(Workload(name="256k", axes={"n": 1 << 18}), Workload(name="odd", axes={"n": 67}, set="odd")),
)


def reference(x):
    return x * 2
'''


def kernel(value: str) -> str:
    """A version: a loop over the elements that stores `value` of `a[i]`."""
    return (
        "#include <warpsmith.hpp>\n"
        'extern "C" void run(const Tensor& x, Tensor& y) {\n'
        "  const float* a = x.data<float>();\n"
        "  float* b = y.data<float>();\n"
        f"  for (int64_t i = 0; i < x.size(0); ++i) {{ {value} }}\n"
        "}\n"
    )


SLOW = kernel("volatile float s = a[i]; for (int k = 0; k < 8; ++k) s = s; b[i] = s * 2;")
WRONG = kernel("b[i] = a[i] * 2.5f;")
FAST = kernel("b[i] = a[i] * 2;")


def make_project(folder: Path) -> Path:
    """A project with one operator."""
    path = folder / "kernels" / "scale" / "definition.py"
    path.parent.mkdir(parents=True)
    path.write_text(DEFINITION)
    (folder / "warpsmith.toml").write_text("")
    return folder


def spawn(agent: str, prompt: str) -> Block:
    """A call of the Agent tool, in the foreground."""
    return tool("Agent", subagent_type=agent, description="a step", prompt=prompt, run_in_background=False)


@dataclass
class Orchestrator:
    """Does what `warpsmith next` says, with a hypothesis and a lesson that it is given."""

    opening: list[Sequence[Block]] = field(default_factory=list)
    """Turns before the loop."""
    log: list[str] = field(default_factory=list)
    """The step of each turn."""
    answers: dict[str, str] = field(default_factory=dict)
    """What each agent last answered."""
    waiting: str = ""
    """The agent that was sent off."""
    judge: str = ""
    """Command that judges the version once its file stands."""
    due: tuple[str, str, str] | None = None
    """Phase, command and text of what the last command said is due; None if an agent did it since."""

    def __call__(self, call: Call) -> Sequence[Block]:
        if self.opening:
            return self.opening.pop(0)
        last = call.last
        for due in re.finditer(DUE, last, re.MULTILINE):  # the last one counts
            self.due = due[1], due[2], due[0]
        if judge := re.search(r"Once the file stands: `(.*)`", last):
            self.judge = judge[1]
        if self.waiting:
            agent, self.waiting = self.waiting, ""
            self.answers[agent] = last
            if agent == "warpsmith:cpp-specialist":
                self.due = "VERIFY", self.judge, ""
            elif agent == "warpsmith:profiler":
                self.due = None
        elif task := re.search(r"^## Task:.*?(?=^Next: |\Z)", last, re.MULTILINE | re.DOTALL):
            return self._send("warpsmith:cpp-specialist", task[0])
        elif re.search(r"^ACCEPT: gain [+-].*\nbest: ", last, re.MULTILINE):  # a gain, not a baseline
            return self._send("warpsmith:reviewer", f"Review the version that was accepted: {last}")
        elif "report.md (" in last:
            return [text(f"MARK-DONE {last.splitlines()[-1]}")]
        return self._step(*self.due) if self.due else [bash("warpsmith next")]

    def _step(self, phase: str, command: str, said: str) -> Sequence[Block]:
        """Do a phase, and in the same call those that need no thought in between."""
        campaign, self.due = command.rpartition(" --campaign ")[2], None
        chained = {"SELECT": ("STRATEGIZE", "DESIGN"), "REPORT": ("REPORT",) if " race " in command else ()}
        if command.startswith("warpsmith profile") and phase == "VERIFY":
            chained["VERIFY"] = ("EVALUATE",)
        self.log += [phase, *chained.get(phase, ())]
        if phase == "PROFILE":
            return self._send("warpsmith:profiler", said)
        if phase == "DESIGN":
            return [bash("warpsmith brief")]
        commands = [self._filled(command)]
        if phase == "SELECT":
            commands += [
                self._filled(f"warpsmith plan --campaign {campaign}"),
                f"warpsmith brief --campaign {campaign}",
            ]
        if chained.get(phase) == ("EVALUATE",):
            commands.append(f"warpsmith evaluate --campaign {campaign}")
        if chained.get(phase) == ("REPORT",):
            commands.append(f"warpsmith report --campaign {campaign}")
        return [bash(" && ".join(commands))]

    def _filled(self, command: str) -> str:
        """The command with the words of a plan or a lesson put in."""
        campaign = command.rpartition(" --campaign ")[2]
        if command.startswith("warpsmith select"):
            command = (
                f'warpsmith select --language cpp --because "Loops are all that it needs." --campaign {campaign}'
            )
        if command.startswith("warpsmith plan"):
            command = (
                'warpsmith plan --hypothesis "A plain loop that the compiler vectorises is faster."'
                " --category compute --predict 0.5 --metric vectorized_loops --change 1 --entry simd-vectorization"
                f' --searched "knowledge search vectorise" --campaign {campaign}'
            )
        if command.startswith("warpsmith learn"):
            command = (
                f'warpsmith learn --nothing "What the entry says already was seen again." --campaign {campaign}'
            )
        return command

    def _send(self, agent: str, prompt: str) -> Sequence[Block]:
        self.waiting = agent
        return [spawn(agent, prompt)]


def profiler() -> Actor:
    """Runs the command that it was given, and answers with the values that the lab printed."""

    def turn(call: Call) -> Sequence[Block]:
        if call.results and not call.results[-1][0]:
            return [text(profile_answer(json.loads(call.last)))]
        command = re.search(r"warpsmith profile \S+(?: --campaign \S+)?", call.said_by("user"))
        assert command, call.said_by("user")
        return [bash(f"{command[0]} --json")]

    return Actor("profiler", PROFILER, [turn], loop=True)


def json_block(answer: Mapping[str, object]) -> str:
    """An agent's answer."""
    return f"```json\n{json.dumps(answer, indent=2)}\n```"


def profile_answer(profile: dict[str, Any]) -> str:
    """The profiler's answer, from the model that `warpsmith profile --json` prints."""
    fields = ("stages", "bottleneck", "root_cause", "opportunities")
    version = f"{profile['language']}/{profile['version']}"
    return json_block(
        {"op": "scale", "version": version, "target": "cpu"} | {name: profile[name] for name in fields}
    )


def designer(sources: list[str], when: Callable[[Call], bool] = CPP) -> Actor:
    """Writes the file that the brief names, checks it, and answers."""
    left = list(sources)

    def turn(call: Call) -> Sequence[Block]:
        path = re.search(r"kernels/scale/cpp/v(\d+)\.cpp", call.said_by("user").partition("### Constraints")[2])
        assert path, call.said_by("user")[-2000:]
        if not call.results:
            return [tool("Write", file_path=path[0], content=left.pop(0))]
        if len(call.results) == 1:
            return [bash(f"warpsmith judge {path[0]} --check")]
        return [text(version_answer(path[0], int(path[1]), call.last))]

    return Actor("designer", when, [turn], loop=True)


def version_answer(path: str, number: int, checked: str) -> str:
    """The designer's answer."""
    return json_block(
        {
            "op": "scale",
            "version": f"cpp/v{number}",
            "changes": ["The loop that the brief asks for."],
            "correctness": "PASS" if "PASS" in checked else "FAIL",
            "files": [path],
            "command": f"warpsmith judge {path} --check",
            "workloads": [{"name": "256k", "reason": "the only workload that is timed"}],
            "devlog": "devlog/scale",
        }
    )


def review_answer(number: int, *cheats: dict[str, object], reason: str = "A plain loop.") -> str:
    """The reviewer's answer; SUSPECT with a cheat."""
    return json_block(
        {
            "op": "scale",
            "version": f"cpp/v{number}",
            "cheats": list(cheats),
            "transfer": ["The loop has no state; the gain holds at every size."],
            "verdict": "SUSPECT" if cheats else "CLEAN",
            "reason": reason,
        }
    )


def reviewer(number: int) -> Actor:
    """Reads the version and finds nothing."""
    turns = [[tool("Read", file_path=f"kernels/scale/cpp/v{number}.cpp")], [text(review_answer(number))]]
    return Actor("reviewer", REVIEWER, turns)


def main(*turns: Sequence[Block] | Callable[[Call], Sequence[Block]], loop: bool = False) -> Actor:
    """The main thread."""
    return Actor("main", anyone, list(turns), loop=loop)
