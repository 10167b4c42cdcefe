"""Times the techniques of knowledge entries beside their plain alternatives, and writes one record.

Each technique is checked against float64 and runs in a process of its own with a time limit, so that one that
hangs costs only itself. All processes compile at once; one at a time uses the device. Times are of one call in a
CUDA graph.

    python -m benchmarks.techniques --out record.json [--only NAME ...]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
NAMES = tuple(yaml.safe_load((HERE / "predictions.yaml").read_text()))
"""Techniques, in the order in which they run."""


def main() -> int:
    """Run what the arguments name; return 1 if a technique failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, required=True, help="file of the record; rewritten after each technique"
    )
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="NAME", default=NAMES, help="these alone")
    parser.add_argument("--limit", type=float, default=30, help="seconds that a technique may take")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return _measure(given.only[0])
    record: dict[str, Any] = {"measured": f"{datetime.now(UTC):%Y-%m-%d %H:%M}", "sources": _hashes()}
    record["techniques"] = {}
    children = {name: _start(name) for name in given.only}
    for child in children.values():
        if child.stdout:
            child.stdout.readline()  # nobody compiles while another uses the device
    for name, child in children.items():
        record["techniques"][name] = _result(child, given.limit)
        given.out.write_text(json.dumps(record, indent=1) + "\n")
        print(_table(name, record["techniques"][name]), flush=True)
    return 1 if any(one["problem"] for one in record["techniques"].values()) else 0


def _start(name: str) -> subprocess.Popen[str]:
    """Start a process that compiles, and waits for its input to end before it uses the device."""
    command = [sys.executable, "-m", "benchmarks.techniques", "--child", "--out", "-", "--only", name]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def _result(child: subprocess.Popen[str], limit: float) -> dict[str, Any]:
    """Let the process use the device; return its rows, those before a failure too."""
    start = time.monotonic()
    problem = ""
    try:
        out, err = child.communicate("", timeout=limit)
        if child.returncode:
            problem = (err.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
    except subprocess.TimeoutExpired:
        child.kill()
        out, err = child.communicate()
        problem = f"stopped after {limit:g} s"
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    rows = [line for line in lines if "variant" in line]
    machine: dict[str, Any] = next((line for line in lines if "device" in line), {})
    return {"problem": problem, "seconds": round(time.monotonic() - start, 1), "machine": machine, "rows": rows}


def _measure(name: str) -> int:
    """Print the machine and a line for each timing, as JSON."""
    import torch

    from benchmarks.techniques.cases import SOURCES, TECHNIQUES
    from benchmarks.techniques.device import compile_source, quartiles

    compile_source(SOURCES.get(name, name))
    print("ready", flush=True)
    sys.stdin.read()
    torch.manual_seed(1)
    print(json.dumps(_machine()), flush=True)
    predicted = yaml.safe_load((HERE / "predictions.yaml").read_text())[name]
    for timing in TECHNIQUES[name]():
        middle, low, high = quartiles(timing.times)
        row: dict[str, Any] = {"case": timing.case, "variant": timing.variant, "us": round(middle, 3)}
        row |= {"quartiles": [round(low, 3), round(high, 3)], "error": timing.error, "bytes": timing.bytes}
        cases = {str(key): value for key, value in predicted[timing.case].items()}
        row["predicted_us"] = cases[timing.variant]
        print(json.dumps(row), flush=True)
    return 0


def _machine() -> dict[str, object]:
    import torch
    from cuda.bindings import driver, nvrtc

    return {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "driver": driver.cuDriverGetVersion()[1],
        "nvrtc": list(nvrtc.nvrtcVersion()[1:]),
    }


def _hashes() -> dict[str, str]:
    """Return the SHA-256 of each file of this folder."""
    paths = sorted(path for path in HERE.iterdir() if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def _table(name: str, result: dict[str, Any]) -> str:
    lines = [f"{name}: {result['seconds']} s {result['problem']}"]
    for row in result["rows"]:
        rate = f"{row['bytes'] / row['us'] / 1e6:5.2f} TB/s" if row["bytes"] else ""
        error = "" if row["error"] is None else f"error {row['error']:.1e}"
        times = f"{row['us']:9.2f} us [{row['quartiles'][0]:.2f}, {row['quartiles'][1]:.2f}]"
        times += f" predicted {row['predicted_us']:7.1f}"
        lines.append(f"  {row['case']:32s} {row['variant']:18s} {times:50s} {rate} {error}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
