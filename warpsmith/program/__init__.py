"""Whole programs: where a step's time goes, and its optimizations, one at a time, measured and reversible."""
