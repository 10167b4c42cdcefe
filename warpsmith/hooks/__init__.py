"""Hooks that Claude Code runs before a tool is used and before an agent stops; they import little."""
