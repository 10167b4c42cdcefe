"""What Claude Code asks before a tool runs and before an agent stops. Standard library only: see `__main__`."""
