"""Commands for whole programs."""
