"""Check the plugin with Claude Code's own validator: `python -m tools.plugin_check`.

Every warning is an error, but two. The manifest names no version on purpose: Claude Code then takes the commit as
the version, so every landing reaches those who update. And the marketplace's source is `plugin/`, whose links name
what an installation copies: the validator follows no link, and checks the files themselves at the root.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

from tools.claude_cli import claude_command

ROOT = Path(__file__).resolve().parent.parent

_EXPECTED = re.compile(r"No version specified\.|.*\bis (or traverses a symlink|a link \(a symlink)\b", re.DOTALL)


def list_plugin_faults(folder: Path) -> list[str]:
    """Return what the validator finds in a plugin's folder, one sentence each."""
    with tempfile.TemporaryDirectory(prefix="claude-home-") as home:
        process = claude_command(Path(home), "plugin", "validate", "--json", str(folder))
    try:
        report = json.loads(process.stdout)
    except ValueError:
        return [process.stdout + process.stderr]
    checked = [report["manifest"], *report["contents"]]
    findings = [finding for part in checked for finding in (*part["errors"], *part["warnings"])]
    return [
        f"{finding['path']}: {finding['message']}"
        for finding in findings
        if not _EXPECTED.match(finding["message"])
    ]


def main() -> None:
    """Print the faults; exit code 1 if there is one."""
    faults = list_plugin_faults(ROOT)
    sys.stderr.write("".join(f"{fault}\n" for fault in faults))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
