"""Programs that NVRTC compiled, kept on disk: a user's process waits for each of them once."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

MOST_BYTES = 256 << 20
"""What is kept; beyond, what was read longest ago goes."""

_NAMES = b" names"


def compiled(folder: Path, code: str, options: Any, names: Sequence[str], compile_: Callable[[], Any]) -> Any:  # noqa: ANN401
    """A program as `cubin`, from the folder where it is there and readable, else compiled and put there.

    Args:
        folder: of `cuda.core.utils.FileStreamProgramCache`; made where it is not there.
        code: in CUDA C++.
        options: `cuda.core.ProgramOptions`.
        names: expressions that kernels are asked for by: `rows<float>`.
        compile_: compiles.

    Returns:
        `cuda.core.ObjectCode`.
    """
    utils, core = importlib.import_module("cuda.core.utils"), importlib.import_module("cuda.core")
    try:
        key = utils.make_program_cache_key(
            code=code, code_type="c++", options=options, target_type="cubin", name_expressions=names,
            extra_digest=_headers(options),
        )  # fmt: skip
    except ValueError:  # options with effects of their own, such as writing precompiled headers
        return compile_()
    with suppress(OSError), utils.FileStreamProgramCache(folder, max_size_bytes=MOST_BYTES) as cache:
        cubin, mapping = cache.get(key), cache.get(key + _NAMES)
        if cubin is not None and mapping is not None:
            named = {name: mangled.encode() for name, mangled in json.loads(mapping).items()}
            return core.ObjectCode.from_cubin(cubin, symbol_mapping=named)
    made = compile_()
    with suppress(OSError), utils.FileStreamProgramCache(folder, max_size_bytes=MOST_BYTES) as cache:
        mapping = {name: mangled.decode() for name, mangled in made.symbol_mapping.items()}
        cache[key], cache[key + _NAMES] = made, json.dumps(mapping).encode()
    return made


def _headers(options: Any) -> bytes:  # noqa: ANN401 - cuda.core's
    """Tells folders of headers apart, and versions of them by the sizes and times of their files."""
    given = getattr(options, "include_path", None) or ()
    seen = hashlib.sha256()
    for folder in (given,) if isinstance(given, str | Path) else given:
        seen.update(f"{folder}\n".encode())
        with suppress(OSError):
            for file in sorted(Path(folder).iterdir()):
                known = file.stat()
                seen.update(f"{file.name} {known.st_size} {known.st_mtime_ns}\n".encode())
    return seen.digest()
