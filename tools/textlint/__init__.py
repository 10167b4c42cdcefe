"""Linter of the repository's texts: ties skills, agents and docs to the real commands, files and fields."""
