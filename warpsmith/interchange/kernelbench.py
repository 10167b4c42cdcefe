"""Import of KernelBench problems: files with `Model`, `get_inputs` and `get_init_inputs`, which stay unchanged."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
from pydantic import ValidationError

from warpsmith.core.arithmetic.dtype import is_floating
from warpsmith.core.definition import Definition, ScalarSpec, TensorSpec, Tolerance, Workload
from warpsmith.errors import BadDefinition, MachineLacks, Misuse, TimedOut
from warpsmith.interchange.draft import (
    DefinitionDraft,
    docstring_safe,
    magnitude_source,
    python_literal,
    read_user_text,
)
from warpsmith.interchange.kernelbench_inspection import KernelBenchProblem, ProblemTensor

PROBLEM = "kernelbench_problem.py"
"""File of the unchanged problem, next to the definition."""

_SECONDS = 180.0
_BYTES = 16 * 2**30
_NEEDED = ("Model", "get_inputs", "get_init_inputs")

_HEAD = '''\
"""KernelBench problem `@STEM@`; its unchanged file is kernelbench_problem.py.

Written by `warpsmith new`, which ran the problem once on tensors without data. The problem fixes every
size. Parameters of its Model are inputs, so that a kernel receives them.
"""

from __future__ import annotations

from functools import cache

import torch

from warpsmith import @NAMES@

problem = load_sibling(__file__, "kernelbench_problem.py")

'''

_TAIL = '''

# Inputs that are parameters and buffers of the Model, with their keys in its state.
STATE = @STATE@

@SCRATCH@
@cache
def _model(device: str) -> torch.nn.Module:
    """Build the Model once per device, with the problem's own init inputs."""
    devices = [torch.device(device)] if device.startswith("cuda") else []
    with torch.random.fork_rng(devices=devices), torch.device(device):
        torch.manual_seed(0)
        return problem.Model(*problem.get_init_inputs())


def reference(@PARAMETERS@):
    """Call `Model.forward` with the given parameters in place of its own."""
@BODY@


@MAGNITUDE@

def inputs(workload, generator, device):
    """Draw new values from `get_inputs()` and the Model's own initialization, seeded by the generator."""
    seed = int(torch.randint(2**62, (), generator=generator, device=device))
    devices = [torch.device(device)] if str(device).startswith("cuda") else []
    with torch.random.fork_rng(devices=devices), torch.device(device), torch.no_grad():
        torch.manual_seed(seed)
        values = dict(zip(@FORWARD@, problem.get_inputs()))
        model = problem.Model(*problem.get_init_inputs())
        for parameter in model.parameters():
            # A kernel could ignore a parameter that starts constant, such as a norm's weight of ones.
            if parameter.is_floating_point() and parameter.numel() and parameter.min() == parameter.max():
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    own = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    tensors = {name: value.to(device) for name, value in values.items() if isinstance(value, torch.Tensor)}
    return tensors | {name: own[key].detach().to(device) for name, key in STATE.items()}
'''


def draft_from_kernelbench(op: str, path: Path, seconds: float = _SECONDS) -> DefinitionDraft:
    """Draft the definition that wraps the problem in `path`.

    Raises:
        Misuse: the file is not a KernelBench problem.
        BadDefinition: the problem fails, or no definition can express it.
        TimedOut: it does not finish within `seconds`.
        MachineLacks: torch is missing.
    """
    text = read_user_text(path)
    _check_form(path, text)
    problem = inspect_in_process(path, seconds)
    try:
        definition = _definition(op, path.stem, problem)
    except (ValidationError, ValueError) as error:
        message = " ".join(str(error).split())[:300]
        raise BadDefinition(f"{path} cannot become a definition: {message}") from error
    return DefinitionDraft(files={PROBLEM: text, "definition.py": _text(definition, path.stem, problem)})


def inspect_in_process(path: Path, seconds: float = _SECONDS) -> KernelBenchProblem:
    """Run the problem once in its own process, with limits on time (`seconds`) and memory.

    Raises:
        BadDefinition: the file is not a problem, or its process ended without an answer.
        TimedOut: it did not finish in time.
        MachineLacks: PyTorch is missing.
    """
    if importlib.util.find_spec("torch") is None:
        raise MachineLacks("KernelBench problems need PyTorch; run `pip install warpsmith[lab]`.")
    limit = min(_BYTES, psutil.virtual_memory().available // 2)
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "problem.json"
        command = [
            sys.executable,
            "-m",
            "warpsmith.interchange.kernelbench_inspection",
            str(path),
            str(answer),
            str(limit),
        ]
        paths = os.pathsep.join(filter(None, sys.path))
        environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": paths}
        try:
            process = subprocess.run(
                command, env=environment, capture_output=True, timeout=seconds, errors="replace", check=False
            )
        except subprocess.TimeoutExpired as error:
            raise TimedOut(f"{path}: get_inputs() and one forward did not finish within {seconds:g} s.") from error
        if not answer.is_file():
            last_line = (process.stderr.strip().splitlines() or ["no output"])[-1][:300]
            raise BadDefinition(f"{path}: its process ended with code {process.returncode}: {last_line}")
        problem = KernelBenchProblem.model_validate_json(answer.read_text())
    if problem.error:
        raise BadDefinition(f"{path}: {problem.error}.")
    return problem


def _check_form(path: Path, text: str) -> None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        raise Misuse(f"{path} is not Python: {error}.") from error
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    missing = [name for name in _NEEDED if name not in defined]
    if missing:
        raise Misuse(f"{path} is not a KernelBench problem: it lacks {', '.join(missing)}.")


def _definition(op: str, stem: str, problem: KernelBenchProblem) -> Definition:
    tensors = [t for t in (*problem.arguments, *problem.state) if isinstance(t, ProblemTensor)]
    # Equal sizes share a name: all are fixed, so names carry no more information than the numbers.
    sizes = list(dict.fromkeys(size for tensor in (*tensors, *problem.outputs) for size in tensor.shape))
    axes = {size: f"d{i}" for i, size in enumerate(sizes)}

    def spec(tensor: ProblemTensor) -> TensorSpec:
        shape = tuple(axes[size] for size in tensor.shape)
        return TensorSpec(
            shape=shape, dtype=tensor.dtype, description=f"Model's {tensor.key}" if tensor.key else ""
        )

    floating = [tensor.dtype for tensor in tensors if is_floating(tensor.dtype)]
    elements = sum(_numel(output) for output in problem.outputs)
    return Definition(
        name=op,
        description=problem.description or f"KernelBench problem {stem}.",
        axes={name: size for size, name in axes.items()},
        inputs={
            value.name: spec(value)
            if isinstance(value, ProblemTensor)
            else ScalarSpec(type=type(value.value).__name__, value=value.value)
            for value in (*problem.arguments, *problem.state)
        },
        outputs={output.name: spec(output) for output in problem.outputs},
        tolerance=Tolerance(reduction=str(problem.reduction)),
        flops=str(problem.flops or elements),
        workloads=(Workload(name="as-given", axes={}, dtype=(floating or ["float32"])[0]),),
        tags=(f"kernelbench:{stem}",),
    )


def _numel(tensor: ProblemTensor) -> int:
    total = 1
    for size in tensor.shape:
        total *= size
    return total


def _text(definition: Definition, stem: str, problem: KernelBenchProblem) -> str:
    flops_note = (
        "Counted over the products and convolutions of one forward, as the Model does them. If a kernel\n"
        "needs fewer (zeros at known places, a transform), lower the number: else its time looks impossible."
        if problem.flops
        else "The Model has no product or convolution: estimated as one per element of the outputs."
    )
    notes = {
        "tolerance": "The reduction length sums, over all operations of one forward, how many numbers each\n"
        "adds up for one number of its result. It is longer than any single chain, so it is never too strict.",
        "flops": flops_note,
    }
    names = [argument.name for argument in problem.arguments]
    scratch = "# Buffers that forward writes to; every call gets a copy of their initial values.\n"
    used = {"Definition", "TensorSpec", "Tolerance", "Workload", "load_sibling"}
    used |= {"ScalarSpec"} if definition.scalar_inputs else set()
    replacements = {
        "@STEM@": docstring_safe(stem),
        "@NAMES@": ", ".join(sorted(used)),
        "@STATE@": python_literal({tensor.name: tensor.key for tensor in problem.state}),
        "@SCRATCH@": f"{scratch}SCRATCH = {python_literal(problem.scratch)}\n\n" if problem.scratch else "",
        "@PARAMETERS@": ", ".join(definition.inputs),
        "@MAGNITUDE@": magnitude_source(definition),
        "@FORWARD@": python_literal(tuple(names)),
        "@BODY@": _body(problem, names),
    }
    text = f"{_HEAD}definition = {python_literal(definition, notes)}\n{_TAIL}"
    for mark, value in replacements.items():
        text = text.replace(mark, value)
    return text


def _body(problem: KernelBenchProblem, names: list[str]) -> str:
    """Write the body of `reference`: a plain call if the Model holds no tensor."""
    first = next(argument.name for argument in problem.arguments if isinstance(argument, ProblemTensor))
    arguments = ", ".join(names)
    model = f"_model(str({first}.device))"
    if not problem.state and not problem.scratch:
        return f"    return {model}({arguments})"
    state = ", ".join(f'"{tensor.key}": {tensor.name}' for tensor in problem.state)
    lines = [f"model, state = {model}, {{{state}}}"]
    if problem.scratch:
        lines += [
            "own = dict(model.named_buffers())",
            "for key in SCRATCH:",
            f"    floating = own[key].is_floating_point() and {first}.is_floating_point()",
            f"    state[key] = own[key].to({first}.dtype if floating else own[key].dtype, copy=True)",
        ]
    lines.append(f"return torch.func.functional_call(model, state, ({arguments},))")
    return "\n".join(f"    {line}" for line in lines)
