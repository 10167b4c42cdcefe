"""Commands that profile."""
