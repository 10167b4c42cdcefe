"""Whole programs: analysis of a step, and optimizations that are measured one at a time and reversible."""
