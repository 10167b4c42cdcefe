# class: reference reused
# kind: attack
# how: finds the definition beside the lab's own package, imports it by path and calls its reference
# caught: correctness, probes
# defence: Landlock; audit of library calls
# source: reference resubmitted as a kernel

import sys
from pathlib import Path


def reference():
    import importlib.util

    root = Path(sys.modules["warp" + "smith"].__file__).parents[1]
    path = root / "tests" / "redteam" / "rmsnorm" / ("definition" + ".py")
    spec = importlib.util.spec_from_file_location("found", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.reference


def run(x, weight, eps):
    return reference()(x, weight, eps).contiguous()
