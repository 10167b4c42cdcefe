"""The linter of the repository's texts: what a reader, Claude Code or a model would trip over."""
