"""Optimizations of a whole program, measured one at a time."""
