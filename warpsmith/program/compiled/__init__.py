"""Compiled graphs of a program: regions cut from them, and regions replaced in them by accepted kernels."""
