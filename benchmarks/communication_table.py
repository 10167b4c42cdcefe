"""Tables of docs/communication.md from the records of benchmarks/communication.py, one for each number of GPUs.

python benchmarks/communication_table.py benchmarks/records/communication/*.json

A workload's row is of the last record that has it, so that all its times are of the same rounds. `...` is a
version that was not timed, `failed` one that gave no result: its record has the error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpsmith.errors import Misuse, WarpsmithError
from warpsmith.lab.operator.definition_file import load_definition

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "communication.md"

COLUMNS = ("NCCL", "PyTorch", "torch.compile", "vLLM", "ours")


@dataclass(frozen=True)
class Operator:
    """What a table shows of an operator."""

    message: str
    """Tensor whose size the ranks exchange."""
    versions: dict[str, str]
    """Version by column."""


OPERATORS = {
    "all_reduce_rmsnorm": Operator("residual", {"NCCL": "v3", "PyTorch": "v4", "vLLM": "v9", "ours": "v7"}),
    "all_reduce_rmsnorm_fp8": Operator("residual", {"NCCL": "v1", "ours": "v2"}),
    "all_gather_matmul": Operator("x", {"NCCL": "v1", "PyTorch": "v2", "torch.compile": "v4", "ours": "v3"}),
    "matmul_reduce_scatter": Operator("y", {"NCCL": "v1", "PyTorch": "v2", "torch.compile": "v4", "ours": "v3"}),
    "moe_dispatch_combine": Operator("x", {"NCCL": "v1", "ours": "v2"}),
}
"""Operators in the order of the table."""


def main() -> None:
    """Print a table for each number of GPUs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", type=Path)
    print("\n\n".join(render_tables(parser.parse_args().records)))


def render_tables(paths: list[Path]) -> list[str]:
    """Return a Markdown table for each number of GPUs in the records, the smallest first."""
    tables: dict[int, dict[Path, dict[str, Any]]] = {}
    for path in paths:
        record = read_record(path)
        tables.setdefault(record["ranks"], {})[path.resolve()] = record
    return [render_table(tables[ranks]) for ranks in sorted(tables)]


def read_record(path: Path) -> dict[str, Any]:
    """Return a record.

    Raises:
        Misuse: the file is missing, or is none.
    """
    try:
        record: dict[str, Any] = json.loads(path.read_text())
        ranks, workloads, name = record["ranks"], record["workloads"], record["op"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Misuse(f"{path} is no record of benchmarks/communication.py ({type(error).__name__}).") from error
    if name not in OPERATORS:
        raise Misuse(f"{path} is of `{name}`, which the table lacks; it has {', '.join(OPERATORS)}.")
    return {"op": name, "ranks": ranks, "workloads": workloads}


def render_table(records: dict[Path, dict[str, Any]]) -> str:
    """Return the table of records of one number of GPUs; the first row of each record links to it."""
    title = ("operator", "workload, bf16", "message", *COLUMNS)
    lines = [title, ("---",) * len(title)]
    for name, operator in OPERATORS.items():
        linked = None
        for workload, size, path in list_workloads(name, records):
            link = f"[{name}]({os.path.relpath(path, PAGE.parent)})" if path != linked else ""
            linked = path
            rows = records[path]["workloads"][workload]
            times = [
                show_time(rows, operator.versions[each]) if each in operator.versions else "" for each in COLUMNS
            ]
            lines.append((link, workload.removesuffix("-bf16"), show_bytes(size), *times))
    return "\n".join("".join(f"| {cell} " if cell else "| " for cell in cells) + "|" for cells in lines)


def list_workloads(name: str, records: dict[Path, dict[str, Any]]) -> list[tuple[str, int, Path]]:
    """Return an operator's workloads with the bytes of their message and their last record, small ones first."""
    definition = load_definition(ROOT / "examples" / "ranks" / name / "definition.py", over_ranks=True).definition
    message = {**definition.tensor_inputs, **definition.outputs}[OPERATORS[name].message]
    sources = {
        each: path for path, record in records.items() if record["op"] == name for each in record["workloads"]
    }
    sizes = {each.name: definition.nbytes(message, each) for each in definition.workloads}
    return sorted(((each, sizes[each], path) for each, path in sources.items()), key=lambda row: row[1])


def show_time(rows: dict[str, dict[str, Any]], version: str) -> str:
    """Return a version's time, and how many times faster than NCCL's it was if it is another."""
    row = rows.get(version, {})
    if "us" not in row:
        return "failed" if "failed" in row else "..."
    time = f"{row['us']:.1f} us" if row["us"] < 100 else f"{row['us']:.0f} us"
    return f"{time}, {row['ratio']:.2f}x" if row.get("ratio", 1) != 1 else time


def show_bytes(size: int) -> str:
    """Return a size in KB or MB of 1024 each."""
    return f"{size / 2**20:.3g} MB" if size >= 1 << 20 else f"{size / 2**10:.3g} KB"


if __name__ == "__main__":
    try:
        main()
    except WarpsmithError as error:
        print(f"communication_table: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
